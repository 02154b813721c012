# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared memory that dead processes of a service leave behind in /dev/shm. PRIVATE to the collection.

SGLang's processes end by SIGKILL and PDEATHSIG, which skips every unlink in Python: sglang_loads_*.shm (16 kB) stays
after each stop (measured on 0.5.23), and the memory of a crashed engine with it. A full /dev/shm ends the next
start with SIGBUS. Somebody may keep weights in /dev/shm on purpose, so only segments with the names that the
engine's own libraries give are looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .proc import PROC, Process

SHM = "/dev/shm"

# Families without the creator's pid in the name: SGLang's load snapshots, Python's multiprocessing (memory and
# semaphores), joblib, NCCL.
FAMILIES = ("sglang_loads_", "psm_", "sem.mp-", "sem.loky-", "nccl-")

# Families that are stamped with the creator's pid (SGLang's utils/stale_shm_cleanup.py, torch, libgomp's rival libomp).
STAMPED = (
    re.compile(r"sgl_shm_.+_(\d+)_[0-9a-f]+"),
    re.compile(r"multi_tokenizer_args_(\d+)"),
    re.compile(r"torch_(\d+)_\d+_\d+"),
    re.compile(r"__KMP_REGISTERED_LIB_(\d+)_\d+"),
)

_MAPPED = re.compile(r"^\S+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9]\d*) ")


@dataclass(frozen=True)
class Segment:
    """A file in /dev/shm, named for good by device and inode. Size in bytes."""

    path: str
    device: int
    inode: int
    size: int

    @property
    def key(self) -> tuple[int, int]:
        return (self.device, self.inode)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def describe(self) -> str:
        return f"{self.path} ({self.size} bytes)"


def creator(name: str) -> int:
    """The pid in a stamped name; 0 if there is none."""
    for pattern in STAMPED:
        found = pattern.fullmatch(name)
        if found:
            return int(found[1])
    return 0


def known(shm: str = SHM) -> list[Segment]:
    """The segments with names as the engine and its libraries give them, in order of their names."""
    found = []
    for name in _names(shm):
        if not (name.startswith(FAMILIES) or creator(name)):
            continue
        path = os.path.join(shm, name)
        try:
            status = os.lstat(path)
        except OSError:
            continue
        found.append(Segment(path, status.st_dev, status.st_ino, status.st_size))
    return found


def owned(processes: Iterable[Process], proc: str = PROC, shm: str = SHM) -> list[Segment]:
    """The known segments that these living processes map, hold open, or made by their names' stamps."""
    candidates = known(shm)
    if not candidates:
        return []
    pids = [process.pid for process in processes]
    held: set[tuple[int, int]] = set()
    for pid in pids:
        held |= _held_by(pid, proc)
    return [one for one in candidates if one.key in held or creator(one.name) in pids]


def stale(segments: Collection[Segment], proc: str = PROC) -> list[Segment]:
    """Those of the segments that are still there, the same ones, and that no living process maps or holds open."""
    left = [one for one in segments if _same(one)]
    if not left:
        return []
    alive = [int(name) for name in _names(proc) if name.isdigit()]
    held: set[tuple[int, int]] = set()
    for pid in alive:
        held |= _held_by(pid, proc)
    return [one for one in left if one.key not in held and creator(one.name) not in alive]


def remove(segments: Iterable[Segment]) -> tuple[list[Segment], list[str]]:
    """Unlink segments; returns those that are gone now, and for the others why they are not."""
    gone, problems = [], []
    for one in segments:
        try:
            if _same(one):
                os.unlink(one.path)
                gone.append(one)
        except OSError as error:
            problems.append(f"{one.path} could not be removed: {error.strerror}")
    return gone, problems


def _same(segment: Segment) -> bool:
    try:
        status = os.lstat(segment.path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == segment.key


def _held_by(pid: int, proc: str) -> set[tuple[int, int]]:
    """Device and inode of every file that a process maps, and of what it holds open in shared memory.

    By inode and not by name: glibc maps a semaphore under a temporary name, which it then unlinks.
    """
    held: set[tuple[int, int]] = set()
    try:
        with open(f"{proc}/{pid}/maps", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                found = _MAPPED.match(line)
                if found:
                    held.add((os.makedev(int(found[1], 16), int(found[2], 16)), int(found[3])))
    except OSError:
        pass
    for name in _names(f"{proc}/{pid}/fd"):
        link = f"{proc}/{pid}/fd/{name}"
        try:
            if "/shm/" in os.readlink(link):
                status = os.stat(link)
                held.add((status.st_dev, status.st_ino))
        except OSError:
            continue
    return held


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
