# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long it takes to verify a checkpoint.

    python3 benchmarks/verify.py cold [FOLDER]     beside sha256sum, file after file; both read from the disk
    python3 benchmarks/verify.py warm [FOLDER]     200 sparse files that add up to 223 GB, vouched for by their stamp

FOLDER takes 4 GB for the first (default: a temporary one).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / ".collections"))

from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import manifest, words  # noqa: E402
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.ensure import Request, ensure  # noqa: E402
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.fetch import Hf  # noqa: E402
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.hub import Hub  # noqa: E402
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.place import Place  # noqa: E402
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.verify import check_files  # noqa: E402

ROUNDS = 3


def forget(folder: Path) -> None:
    """Take the files out of the page cache, so that they are read from the disk."""
    for path in folder.iterdir():
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold(folder: Path) -> None:
    """Sixteen files of 256 MB, hashed by sha256sum one after the other and by us in parallel, in turns."""
    for number in range(16):
        (folder / f"model-{number:05d}.safetensors").write_bytes(os.urandom(1 << 28))
    paths = sorted(folder.iterdir())
    wanted = [manifest.WantedFile(path.name, 1 << 28, "0" * 64) for path in paths]
    size = sum(file.size for file in wanted)
    theirs, ours = [], []
    for _round in range(ROUNDS):
        forget(folder)
        began = time.monotonic()
        for path in paths:
            subprocess.run(["sha256sum", str(path)], check=True, capture_output=True)
        theirs.append(time.monotonic() - began)
        forget(folder)
        began = time.monotonic()
        _right, problems = check_files(str(folder), wanted)
        ours.append(time.monotonic() - began)
        assert len(problems) == len(wanted), "the digests are not these files'"
    cores = len(os.sched_getaffinity(0))
    forget(folder)
    began = time.monotonic()
    subprocess.run(["cat", *map(str, paths)], check=True, stdout=subprocess.DEVNULL)
    disk = time.monotonic() - began
    print(f"{words.size(size)} in {len(paths)} files, {cores} cores, the median of {ROUNDS} rounds in turns")
    for name, seconds in (("sha256sum", sorted(theirs)[ROUNDS // 2]), ("in parallel", sorted(ours)[ROUNDS // 2])):
        print(f"{name:<14}{seconds:>8.2f} s{size / seconds / 1e9:>8.2f} GB/s")
    print(f"{'cat, no hash':<14}{disk:>8.2f} s{size / disk / 1e9:>8.2f} GB/s")
    print(f"times faster: {sorted(theirs)[ROUNDS // 2] / sorted(ours)[ROUNDS // 2]:.2f}")


def warm(folder: Path) -> None:
    """A run on a checkpoint of 223 GB whose stamp holds; the files are holes."""
    place = Place(str(folder / "qwen"), str(folder / ".checkpoints"), "org/model", "a" * 40)
    target = Path(place.target)
    target.mkdir(parents=True)
    names = [f"model-{number:05d}.safetensors" for number in range(200)]
    for name in names:
        with open(target / name, "wb") as stream:
            stream.truncate(223_000_000_000 // 200)
    files = tuple(manifest.WantedFile(name, (target / name).stat().st_size, "0" * 64) for name in names)
    record = manifest.Manifest("org/model", "a" * 40, files)
    seen = {name: manifest.Seen.of(os.lstat(target / name)) for name in names}
    (target / manifest.MANIFEST).write_bytes(record.encoded())
    (target / manifest.STAMP).write_bytes(manifest.Stamp(record.digest, words.now(), seen).encoded())
    request = Request(place, Hub("http://127.0.0.1:9"), Hf("none", "http://127.0.0.1:9"))
    ensure(request)  # the link
    times = []
    for _round in range(20):
        began = time.monotonic()
        outcome = ensure(request)
        times.append(time.monotonic() - began)
        assert not outcome.changed
        assert outcome.bytes_hashed == 0
    middle = sorted(times)[len(times) // 2]
    spread = f"{middle * 1000:.1f} ms, at most {max(times) * 1000:.1f} ms of {len(times)} runs"
    print(f"{outcome.files} files, {words.size(outcome.bytes)}: {spread}")


def main() -> None:
    """Measure and print."""
    kinds = {"cold": cold, "warm": warm}
    if len(sys.argv) < 2 or sys.argv[1] not in kinds:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        kinds[sys.argv[1]](Path(folder))


if __name__ == "__main__":
    main()
