# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a checkpoint lies, and how it gets there in one step. PRIVATE to the collection: it can change
at any time.

    <path>                                    the link that the engine is given
    <store>/<owner--name>/<revision>/         the files of one revision, the manifest and the stamp
    <store>/.staging/<owner--name>--<revision>/{files,home}    a revision on its way
    <store>/.staging/<owner--name>--<revision>.lock            held by the one run that works on it

The staging folder is on the store's own file system, so that the last step is a rename.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import grp
import os
import pathlib
import pwd
import shutil
import stat
import time
import typing as t

from .._host.files import PREFIX, SUFFIX, put
from .errors import Busy, CheckpointError
from .manifest import DOWNLOADS, TRASH

FOLDER_MODE = 0o755
FILE_MODE = 0o644


@dataclasses.dataclass(frozen=True)
class Place:
    """The paths of one revision of one repository behind the link `path`."""

    path: str
    store: str
    repository: str
    revision: str

    @property
    def target(self) -> str:
        return os.path.join(self.store, self._name, self.revision)

    @property
    def staging(self) -> str:
        return os.path.join(self.store, ".staging", f"{self._name}--{self.revision}")

    @property
    def files(self) -> str:
        return os.path.join(self.staging, "files")

    @property
    def home(self) -> str:
        return os.path.join(self.staging, "home")

    @property
    def listing(self) -> str:
        return os.path.join(self.staging, "listing.json")

    @property
    def log(self) -> str:
        return os.path.join(self.staging, "hf.log")

    @property
    def lock(self) -> str:
        return f"{self.staging}.lock"

    @property
    def _name(self) -> str:
        return self.repository.replace("/", "--")

    def linked(self) -> str | None:
        """What the link points to, None if there is none. Raises CheckpointError for anything else."""
        try:
            return os.readlink(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise CheckpointError(f"{self.path} cannot be looked at: {error.strerror}.") from error
        raise CheckpointError(
            f"{self.path} is not a link, and nothing of yours is overwritten. If it is a copy of {self.repository} "
            f"at {self.revision}, move it to {self.target}: what is right of it will be used. Else move it away."
        )

    def point(self) -> None:
        """Makes the link point to the target, in one step."""
        make_folder(os.path.dirname(self.path))
        fresh = f"{self.path}.llmfleet-new"
        remove_any(fresh)
        os.symlink(self.target, fresh)
        os.replace(fresh, self.path)
        sync_folder(os.path.dirname(self.path))

    @contextlib.contextmanager
    def locked(self, patience: float = 10.0) -> t.Iterator[None]:
        """Keeps other runs off. Raises Busy naming the holder after `patience` seconds."""
        make_folder(os.path.dirname(self.lock))
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+", encoding="utf-8") as stream:
            deadline = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        stream.seek(0)
                        holder = stream.read().strip() or "unknown"
                        raise Busy(
                            f"Another run (process {holder} on this host) is already bringing {self.repository} at "
                            f"{self.revision} to {self.store}. Wait until it is done, or end it; then run again."
                        ) from None
                    time.sleep(0.2)
            stream.seek(0)
            stream.truncate()
            stream.write(str(os.getpid()))
            stream.flush()
            yield


@dataclasses.dataclass(frozen=True)
class Owner:
    """Who shall own the files: numeric ids, -1 for "as it is"."""

    uid: int = -1
    gid: int = -1

    @classmethod
    def named(cls, owner: str | None, group: str | None) -> Owner:
        try:
            uid = pwd.getpwnam(owner).pw_uid if owner else -1
        except KeyError:
            raise CheckpointError(f"There is no user {owner} on this host.") from None
        try:
            return cls(uid, grp.getgrnam(group).gr_gid if group else -1)
        except KeyError:
            raise CheckpointError(f"There is no group {group} on this host.") from None

    def settle(self, folder: str, *, look_only: bool = False) -> list[str]:
        """Folders 0755, files 0644, owned as asked; returns the paths that were (or are) otherwise."""
        wrong = []
        for base, _folders, names in os.walk(folder):
            for path in [base, *(os.path.join(base, name) for name in names)]:
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode):
                    continue
                mode = FOLDER_MODE if stat.S_ISDIR(status.st_mode) else FILE_MODE
                owned = self.uid in (-1, status.st_uid) and self.gid in (-1, status.st_gid)
                if owned and stat.S_IMODE(status.st_mode) == mode:
                    continue
                wrong.append(path)
                if not look_only:
                    if not owned:
                        os.chown(path, self.uid, self.gid, follow_symlinks=False)
                    os.chmod(path, mode)
        return wrong


def make_folder(path: str) -> None:
    """The folder and its parents, readable by all whatever the umask; what exists stays as it is."""
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
        os.chmod(path, FOLDER_MODE)


def write(path: str, content: bytes) -> None:
    """Replaces a file of the owner's alone in one step, on the disk before it gets its name."""
    put(pathlib.Path(path), content, mode=0o600)


def sync_folder(path: str) -> None:
    """What was renamed in a folder outlives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_any(path: str) -> None:
    """Removes a file, link or folder that may not be there; a link is removed, and not what it points to."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def drop_trash(folder: str) -> None:
    """Removes the downloader's own folder, and what a killed `write` left, from the files."""
    remove_any(os.path.join(folder, TRASH))
    for name in os.listdir(folder):
        if name.startswith(PREFIX) and name.endswith(SUFFIX):
            os.unlink(os.path.join(folder, name))


def leftovers(folder: str) -> list[str]:
    """What a downloader left in the files: paths below its own folder, sorted; nobody else keeps anything there."""
    found = []
    for base, _folders, names in os.walk(os.path.join(folder, DOWNLOADS)):
        found += [os.path.relpath(os.path.join(base, name), folder) for name in names]
    return sorted(found)


def drop_leftovers(folder: str) -> None:
    """Removes a downloader's own folder, and the folder round it if nothing else is in it."""
    remove_any(os.path.join(folder, DOWNLOADS))
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(folder, TRASH))


def drop_empty(place: Place) -> None:
    """Removes the staging folder of a run that brought nothing."""
    with contextlib.suppress(OSError):
        if set(os.listdir(place.files)) <= {TRASH}:
            remove_any(place.staging)


def left_behind(place: Place) -> list[tuple[str, int]]:
    """Staging folders of other revisions, with their bytes: what other runs began and did not end."""
    base = os.path.dirname(place.staging)
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    folders = [os.path.join(base, name) for name in names]
    return [(path, held_bytes(path)) for path in folders if os.path.isdir(path) and path != place.staging]


def held_bytes(folder: str) -> int:
    """Bytes of all files in a folder, which others may be writing to; 0 if it is not there."""
    total = 0
    for base, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, name)).st_size
    return total


def free_bytes(path: str) -> tuple[str, int]:
    """The nearest folder that exists, and the bytes an ordinary file may still take there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return path, status.f_bavail * status.f_frsize
