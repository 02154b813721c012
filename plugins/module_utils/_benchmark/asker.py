# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the one who waits for a module's answer is still there. Private to the collection.

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
from typing import Callable

EVERY = 5.0
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


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
