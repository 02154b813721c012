# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""End processes that a stopped service left behind. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Callable

from .proc import PROC, Process, read_process

# Seconds that a left-over gets to end by itself, and then to heed SIGTERM. SGLang's own workers are gone within half
# a second of their parent (measured on 0.5.23); giving back 8 x 96 GB takes longer.
GRACE = 10.0
# Seconds from the end of the unit until a left-over has had both signals, and its end has been seen.
PATIENCE = 2 * GRACE + 5


def send(process: Process, number: int, proc: str = PROC) -> bool:
    """Send a signal to this very process, never to another one that got its pid; False if it is gone or refuses."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The handle cannot change its process any more, so what is compared now is what the signal goes to.
        now = read_process(process.pid, proc)
        if now is None or now.key != process.key or now.gone:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@dataclass
class LeftOvers:
    """What was sent to whom. Times are those of `clock`, in seconds; `sender` is replaced by tests."""

    clock: Callable[[], float]
    sender: Callable[[Process, int], bool]
    seen: dict[tuple[int, int], float] = field(default_factory=dict)
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)

    def end(self, processes: Iterable[Process]) -> None:
        """Called at each look: SIGTERM to what is left for longer than the grace time, SIGKILL twice that long."""
        for process in processes:
            age = self.clock() - self.seen.setdefault(process.key, self.clock())
            number = signal.SIGKILL if age >= 2 * GRACE else signal.SIGTERM
            if age < GRACE or self.sent.get(process.key) == number:
                continue
            if self.sender(process, number):
                self.sent[process.key] = number
                self.killed.append(f"{process.describe()}, by {signal.Signals(number).name}")
