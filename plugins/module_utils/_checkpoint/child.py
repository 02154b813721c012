# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a program that brings bytes, and ends it when none come or the disk fills. PRIVATE to the collection: it can
change at any time.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import ctypes
import dataclasses
import os
import signal
import subprocess
import time
import typing as t

from . import words
from .errors import CheckpointError
from .place import free_bytes

_POLL = 0.5
_PDEATHSIG = 1


@dataclasses.dataclass(frozen=True)
class Room:
    """What shall stay free, in bytes, on the file system of `folder`; 0 watches nothing."""

    folder: str
    reserve: int = 0

    def short(self, have: int, total: int) -> str:
        """The arithmetic, once less than the reserve is free; else an empty text."""
        if not self.reserve:
            return ""
        folder, free = free_bytes(self.folder)
        if free >= self.reserve:
            return ""
        left = f"{words.size(max(0, total - have))} are still to come" if total else "more is to come"
        return (
            f"The disk fills: {folder} has {words.size(free)} free, {words.size(self.reserve)} shall stay free, and "
            f"{left} ({words.size(have)} of {words.size(total)} are here). Something else writes there, too. The "
            "transfer was stopped; make room and run again to go on."
        )


@dataclasses.dataclass(frozen=True)
class Watch:
    """How a child is watched: `measure` tells the bytes that are here and any other number that moves with them.

    stall: seconds without a change; tell: is told the bytes; total: the bytes in all, for the words about the disk.
    """

    measure: t.Callable[[], tuple[int, int]]
    stall: float
    tell: t.Callable[[int], None]
    room: Room
    total: int = 0


def run(
    arguments: list[str], environment: dict[str, str], folder: str, log: str, watch: Watch
) -> tuple[int, t.Literal["ended", "stalled"]]:
    """Runs a program in `folder` with its output in `log`; returns its status and how it came to its end.

    Raises OSError when it cannot be started, CheckpointError when the disk fills. Nothing of it runs afterwards.
    """
    with open(log, "wb") as output:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
    try:
        stalled = _watch(child, watch)
    finally:
        _end(child)
    return child.returncode, "stalled" if stalled else "ended"


def _watch(child: subprocess.Popen[bytes], watch: Watch) -> bool:
    """Waits for the child and tells the progress; True if no bytes came any more."""
    last: tuple[int, int] | None = None
    moved = time.monotonic()
    while True:
        try:
            child.wait(_POLL)
            return False
        except subprocess.TimeoutExpired:
            seen = watch.measure()
            watch.tell(seen[0])
            short = watch.room.short(seen[0], watch.total)
            if short:
                raise CheckpointError(short) from None
            if seen != last:
                last, moved = seen, time.monotonic()
            if time.monotonic() - moved > watch.stall:
                return True


def _die_with_parent() -> t.Callable[[], None]:
    """A child whose module was killed would go on writing into the folder of the next run."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _end(child: subprocess.Popen[bytes]) -> None:
    """The child and its group are gone afterwards."""
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)):
        if child.poll() is not None:
            return
        try:
            os.killpg(child.pid, number)
            child.wait(patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
