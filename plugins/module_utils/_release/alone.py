# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One writer of releases on a host at a time. Private to the collection.

A controller that dies leaves its module, and what that started, at work on the host: nothing there ends them. So each
module that writes into a release holds a lock, and marks itself and all that it starts; the next build ends what a
dead one left before it touches anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._host import proc
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import Process

LOCK = ".build.lock"
# In the environment of every process of a build: the folder of releases that it writes into.
MARK = "LLMFLEET_BUILD"
# Seconds from the request to end until a process is ended, and from then until it has to be gone.
_GRACE, _DEATH = 10.0, 20.0
_POLL = 0.1


class Occupied(RuntimeError):
    """Another build writes releases on this host; the message says which process."""


@contextlib.contextmanager
def writing(releases: Path, *, begins: bool = False, grace: float = _GRACE) -> Iterator[list[str]]:
    """Be the only one who writes below `releases`, a folder that is there, until the block ends or the process dies.

    begins: this is a build's first step, which ends what a build before it left running; the block is told what, a
    phrase for each process. grace: seconds that they have to end by themselves. Raises Occupied and OSError.
    """
    # Not inherited by what the module starts: that is found by its mark.
    handle = os.open(releases / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    before = os.environ.get(MARK)
    os.environ[MARK] = str(releases)
    try:
        ended = _end(lambda: left_over(releases, handle), grace) if begins else []
        if not _locked(handle):
            holder = _holder(handle)
            raise Occupied(
                f"{_told(holder) if holder else 'another process'} writes into {releases}: let one run build on a "
                "host at a time, and run again when that one has ended"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {_started(os.getpid())}\n".encode(), 0)
        yield ended
    finally:
        os.close(handle)
        os.environ.pop(MARK)
        if before is not None:
            os.environ[MARK] = before


def left_over(releases: Path, handle: int) -> list[Process]:
    """Return the processes of other builds that write into the folder, of this user: holder of the lock, and marked."""
    processes = {pid: one for pid, one in proc.read_processes().items() if not one.gone}
    mine = {os.getpid(), *_ancestors(processes)}
    others = [one for pid, one in processes.items() if pid not in mine and _of_this_user(pid)]
    found = {one.pid: one for one in others if proc.environment(one.pid).get(MARK) == str(releases)}
    holder = _holder(handle)
    if holder and not _locked(handle) and any(one.key == holder.key for one in others):
        found[holder.pid] = holder
    return [found[pid] for pid in sorted(found)]


def _end(find: Callable[[], list[Process]], grace: float) -> list[str]:
    """End what `find` finds, until it finds nothing. Returns what was ended; raises Occupied when one stays."""
    ended: dict[tuple[int, int], str] = {}
    began = time.monotonic()
    while True:
        found = find()
        if not found:
            return list(ended.values())
        elapsed = time.monotonic() - began
        if elapsed > grace + _DEATH:
            listed = ", ".join(_told(one) for one in found)
            raise Occupied(f"what a build before left running cannot be ended: {listed}")
        for one in found:
            if elapsed > grace:
                _signal(one, signal.SIGKILL)
            elif one.key not in ended:
                # One that was stopped takes the request once it goes on.
                _signal(one, signal.SIGTERM)
                _signal(one, signal.SIGCONT)
            ended[one.key] = _told(one)
        time.sleep(_POLL)


def _told(process: Process) -> str:
    return " ".join(process.describe().split())


def _signal(process: Process, number: signal.Signals) -> None:
    now = proc.read_process(process.pid)
    if now and now.key == process.key:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _locked(handle: int) -> bool:
    """Take the lock if it is free; a lock that this process has stays."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> Process | None:
    """Return the process that wrote itself into the lock last, if it lives."""
    fields = os.pread(handle, 64, 0).decode("ascii", "replace").split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    process = proc.read_process(int(fields[0]))
    return process if process and process.key == (int(fields[0]), int(fields[1])) else None


def _started(pid: int) -> int:
    process = proc.read_process(pid)
    return process.start if process else 0


def _ancestors(processes: dict[int, Process]) -> set[int]:
    """This process's parents, up to init: with the role's own mark they may look like an older build."""
    found: set[int] = set()
    pid = os.getppid()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].ppid
    return found


def _of_this_user(pid: int) -> bool:
    try:
        return os.stat(f"{proc.PROC}/{pid}").st_uid == os.geteuid()
    except OSError:
        return False
