# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares files with what the revision says of them. PRIVATE to the collection: it can change at any time.

Threads are enough to use every core: hashlib gives up the interpreter lock while it works on a large block.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import errno
import hashlib
import json
import os
import stat
import typing as t

from .errors import CheckpointError
from .manifest import INDEX, Seen, WantedFile

_BLOCK = 4 * 1024 * 1024
_LARGEST_HEADER = 100_000_000


@dataclasses.dataclass(frozen=True)
class Problem:
    """A file that is not what it should be."""

    file: WantedFile
    expected: str
    got: str

    def as_dict(self) -> dict[str, str]:
        return {"file": self.file.path, "expected": self.expected, "got": self.got}

    def __str__(self) -> str:
        return f"{self.file.path}: expected {self.expected}, got {self.got}"


@dataclasses.dataclass(frozen=True)
class Right:
    """A file whose content was read and is right; `file` carries its SHA-256 in any case."""

    file: WantedFile
    seen: Seen


def check_files(
    folder: str,
    files: t.Iterable[WantedFile],
    *,
    threads: int = 0,
    durable: bool = False,
    read: t.Callable[[int], None] = lambda count: None,
) -> tuple[list[Right], list[Problem]]:
    """Reads every file and sorts them into right ones and problems, in the given order.

    `threads` 0 means one per core, at most 16. `durable` brings the files to the disk before they are
    vouched for. `read` is told the bytes as they are read, from any thread.
    """
    count = threads or min(len(os.sched_getaffinity(0)), 16)
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        tasks = [pool.submit(_check, folder, file, durable, read) for file in files]
        done = [task.result() for task in tasks]
    right = [result for result in done if isinstance(result, Right)]
    return right, [result for result in done if isinstance(result, Problem)]


def check_sizes(folder: str, files: t.Iterable[WantedFile]) -> list[Problem]:
    """The files that are missing or of the wrong size; nothing is read."""
    problems = []
    for file in files:
        try:
            status = os.lstat(os.path.join(folder, file.path))
        except OSError:
            problems.append(Problem(file, f"{file.size} bytes", "no such file"))
            continue
        if not stat.S_ISREG(status.st_mode):
            problems.append(Problem(file, "a regular file", stat.filemode(status.st_mode)))
        elif status.st_size != file.size:
            problems.append(Problem(file, f"{file.size} bytes", f"{status.st_size} bytes"))
    return problems


def _check(folder: str, file: WantedFile, durable: bool, read: t.Callable[[int], None]) -> Right | Problem:
    wrong = check_sizes(folder, [file])
    if wrong:
        return wrong[0]
    try:
        descriptor = os.open(os.path.join(folder, file.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as stream:
            if durable:
                _sync(descriptor)
            before = Seen.of(os.fstat(descriptor))
            sha256, git_oid = _digests(stream, file, read)
            after = Seen.of(os.fstat(descriptor))
    except OSError as error:
        return Problem(file, "a readable file", str(error))
    if before != after:
        return Problem(file, "a file at rest", "a file that changed while it was read")
    if file.sha256 and sha256 != file.sha256:
        return Problem(file, f"sha256 {file.sha256}", f"sha256 {sha256}")
    if not file.sha256 and git_oid != file.git_oid:
        return Problem(file, f"git blob {file.git_oid}", f"git blob {git_oid}")
    return Right(dataclasses.replace(file, sha256=sha256), after)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network and overlay file systems know no fsync: there the stamp is as durable as they are
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EROFS):
            raise


def _digests(stream: t.IO[bytes], file: WantedFile, read: t.Callable[[int], None]) -> tuple[str, str]:
    """SHA-256, and the git blob id where that is what the Hub vouches for."""
    sha256 = hashlib.sha256()
    # SHA-1 is what git names blobs by; where it is all that the Hub gives, it finds damage and not malice
    blob = None if file.sha256 else _sha1(f"blob {file.size}\0".encode())
    block = bytearray(min(_BLOCK, max(file.size, 1)))
    view = memoryview(block)
    while True:
        count: int = t.cast(t.Any, stream).readinto(block)
        if not count:
            return sha256.hexdigest(), blob.hexdigest() if blob else ""
        sha256.update(view[:count])
        if blob:
            blob.update(view[:count])
        read(count)


def _sha1(start: bytes) -> hashlib._Hash:
    try:
        return hashlib.sha1(start, usedforsecurity=False)
    except TypeError:  # pragma: no cover - Python built without the keyword
        return hashlib.sha1(start)


def check_meaning(folder: str, files: t.Iterable[WantedFile]) -> None:
    """Refuses, with CheckpointError, a revision that is broken as published.

    Every shard that the index names must be one of the revision's files, and the header of every safetensors
    file must describe exactly the bytes that follow it. SGLang starts without a missing shard, and answers
    nonsense.
    """
    listed = {file.path for file in files}
    for path in sorted(listed):
        if os.path.basename(path) == INDEX:
            _check_index(folder, path, listed)
        elif path.endswith(".safetensors"):
            _check_header(folder, path)


def _check_index(folder: str, path: str, listed: set[str]) -> None:
    try:
        with open(os.path.join(folder, path), "rb") as stream:
            shards = set(json.load(stream)["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} has no readable weight_map ({error!r}): another revision is needed.") from error
    base = os.path.dirname(path)
    missing = sorted(shard for shard in shards if os.path.join(base, str(shard)) not in listed)
    if missing:
        raise CheckpointError(
            f"{path} names what the revision does not hold ({len(missing)}: {', '.join(missing[:5])}): "
            "the model would start with weights missing. Pin another revision.",
            [{"file": name, "expected": f"named by {path}", "got": "not in the revision"} for name in missing],
        )


def _check_header(folder: str, path: str) -> None:
    with open(os.path.join(folder, path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(8), "little")
        try:
            if not 2 <= length <= min(_LARGEST_HEADER, size - 8):
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            tensors = json.loads(stream.read(length))
            ends = [row["data_offsets"][1] for name, row in tensors.items() if name != "__metadata__"]
            if max(ends, default=0) != size - 8 - length:
                raise ValueError(f"{max(ends, default=0)} bytes of tensors, {size - 8 - length} bytes of data")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise CheckpointError(
                f"{path} is as published, but no sound safetensors file ({error}). Pin another revision."
            ) from error
