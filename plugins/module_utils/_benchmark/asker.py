# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run still waits for a module's answer, and the host is still its own. Private to the collection.

Nothing on a host ends a module whose controller has gone: it would notice only when it writes its answer. Its standard
output leads through sudo and sshd (or the shell of a local connection) to whoever reads that answer, and hangs up with
them. An ssh client that has lost its own reader notices only when something comes: hence an empty line now and then,
which JSON may have in front.
"""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path
from typing import Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock

EVERY = 5.0
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL
NOBODY_READS = "the run that asked for the benchmark has gone"


class Asker:
    """Tells, when it is called, whether somebody still reads. fd: of the standard output; every: seconds."""

    def __init__(self, fd: int, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._fd, self._every, self._clock = fd, every, clock
        self._said = clock()
        mode = os.fstat(fd).st_mode
        # A terminal that was hung up is none any more, so this is asked once.
        self._can_go = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
        self._poll = select.poll()
        self._poll.register(fd, 0)

    def __call__(self) -> bool:
        """Return whether somebody does; what is no pipe, socket or terminal is read whenever."""
        if not self._can_go:
            return True
        if any(events & _GONE for _fd, events in self._poll.poll(0)):
            return False
        if self._clock() - self._said < self._every:
            return True
        self._said = self._clock()
        try:
            os.write(self._fd, b"\n")
        except OSError:
            return False
        return True


class Over:
    """Says, when it is called, why the answer is of no use any more; "" while it is.

    reads: whether somebody still reads it; path: the host's lock. Whoever holds the lock when this is made is the run
    that the answer is for; another one that holds it later works on the host itself.
    """

    def __init__(self, reads: Callable[[], bool], path: Path) -> None:
        self._reads, self._path = reads, path
        before = self._holder()
        self._run = before.run if before else ""

    def __call__(self) -> str:
        """Return the reason as what follows a "for"."""
        if not self._reads():
            return NOBODY_READS
        holder = self._holder()
        if holder is None or holder.run == self._run:
            return ""
        return f"another run holds the host's lock now ({holder.owner}: {holder.reason})"

    def _holder(self) -> lock.Lock | None:
        try:
            return lock.read(self._path)
        except (OSError, lock.LockError):  # who holds it is not known
            return None
