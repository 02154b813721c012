# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watching the unit of a server while it comes up. PRIVATE to the collection.

Three things end the waiting early: the unit is dead, somebody else answers on its port, or it hangs in a collective
operation: no new line in its log while its cards are fully used at idle watts (seen at 90 to 140 of 600 W, where
loading uses them little and computing takes far more power).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Callable

from .._gpu.cards import read_gpus, read_loads
from .._progress.report import Progress
from . import systemd
from .asking import Wrong
from .belongs import processes_of
from .command import Runner, run
from .proc import PROC, read_processes
from .sockets import conflicts, read_listeners, with_owners
from .systemd import Unit

HANG_LOOK_EVERY = 10.0
GPU_QUERY_TIMEOUT = 20.0
FULL_UTILISATION = 95
IDLE_SHARE = 0.25
LINES_TO_DIAGNOSE = 5000
# Requests, our own among them, go on being logged while the engine hangs; a Python warning ends with a line of source.
NOT_TOLD = re.compile(r'"(?:GET|POST|HEAD) /\S* HTTP/|^\s*warnings\.warn\(')


class Dead(Wrong):
    """There is no server, and its journal may tell why."""


@dataclass(frozen=True)
class Machine:
    """The host as this code touches it; tests put their own in its place."""

    run: Runner = run
    proc: str = PROC
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    progress: Progress = field(default_factory=lambda: Progress(None))


@dataclass(frozen=True)
class Watched:
    """What to watch. An empty service watches nothing; port 0 leaves the port's owner out; seconds."""

    service: str = ""
    address: str = ""
    port: int = 0
    restarts_allowed: int = 0
    hang_seconds: float = 0


class Watch:
    """Looks whether the unit can still come up, so that nobody waits for a dead one."""

    def __init__(self, watched: Watched, machine: Machine) -> None:
        self._watched = watched
        self._machine = machine
        self._unit: Unit | None = systemd.show(machine.run, watched.service) if watched.service else None
        self._restarts = self._unit.restarts if self._unit else 0
        # Evidence of a start that was tried again stands before the last start.
        self._since = self._unit.started if self._unit else 0.0
        self._hang = _Hang(watched, machine)
        self._own_sockets: set[int] = set()

    def look(self) -> None:
        """Dead is raised when the unit is gone, failed, hangs, has lost its port, or restarts more than allowed."""
        watched = self._watched
        if not watched.service:
            return
        unit = self._unit = systemd.show(self._machine.run, watched.service)
        how = f"(result {unit.result or 'unknown'}, exit status {unit.exit_status or 'unknown'})"
        if not unit.exists:
            raise Dead(f"there is no unit {unit.name} on this host")
        if unit.active == "failed":
            raise Dead(f"{unit.name} has failed {how}")
        if unit.stopped:
            raise Dead(f"{unit.name} is not running {how}")
        times = unit.restarts - self._restarts
        if times > watched.restarts_allowed:
            raise Dead(f"systemd restarted {unit.name} (times: {times}) while it should have come up {how}")
        if unit.sub.startswith("auto-restart") and times + 1 > watched.restarts_allowed:
            raise Dead(f"{unit.name} has failed {how}, and systemd waits to start it again")
        if watched.port:
            self._look_at_port(unit)
        self._hang.look(unit)
        self._machine.progress.detail(self._hang.last)

    def state(self) -> str:
        """The unit's state at the last look ("active", "activating", ...); "" when no unit is watched."""
        return self._unit.active if self._unit else ""

    def _look_at_port(self, unit: Unit) -> None:
        """Dead is raised when a process that is not the unit's listens where the unit should."""
        watched, machine = self._watched, self._machine
        found = [one for one in read_listeners({watched.port}, machine.proc) if conflicts(one, watched.address)]
        if all(one.inode in self._own_sockets for one in found):
            return
        processes = read_processes(machine.proc)
        ours = {process.pid for process in processes_of(unit, processes, set(), machine.proc)}
        owned = with_owners(found, processes, machine.proc)
        self._own_sockets = {one.inode for one in owned if one.pid in ours}
        for one in owned:
            # A socket whose owner cannot be seen (pid 0) proves nothing in either way.
            if one.pid and one.inode not in self._own_sockets:
                raise Dead(f"somebody else listens where {unit.name} should: {one.describe()}")

    def lines(self) -> list[str]:
        """What the unit logged since the start that is watched."""
        if not self._unit or not self._unit.exists:
            return []
        since = min(filter(None, (self._since, self._unit.started)), default=0.0)
        return systemd.journal(self._machine.run, self._unit, LINES_TO_DIAGNOSE, since)


class _Hang:
    """Remembers when the log last grew, and asks the cards once it has been silent for long."""

    def __init__(self, watched: Watched, machine: Machine) -> None:
        self._watched = watched
        self._machine = machine
        self.last = ""
        self._silent_since = machine.clock()
        self._next = self._silent_since
        self._suspected = False

    def look(self, unit: Unit) -> None:
        now = self._machine.clock()
        if self._watched.hang_seconds <= 0 or now < self._next:
            return
        self._next = now + HANG_LOOK_EVERY
        lines = systemd.journal(self._machine.run, unit, 20)
        last = next((line for line in reversed(lines) if not NOT_TOLD.search(line)), self.last)
        if last != self.last:
            self.last, self._silent_since, self._suspected = last, now, False
            return
        silent = now - self._silent_since
        if silent < self._watched.hang_seconds:
            return
        words = self._cards(unit)
        if words and self._suspected:
            raise Dead(
                f"{unit.name} hangs: no new line in its log for {silent:.0f} s, while {words}: "
                f"a collective operation that never ends. Its last line: {last[:200]}"
            )
        # Once may be a moment's picture; the next look has to agree.
        self._suspected = bool(words)

    def _cards(self, unit: Unit) -> str:
        """How the unit's cards are used, if that is how a hang looks; empty if not, or if power is not told."""
        machine = self._machine
        loads = read_loads(machine.run, GPU_QUERY_TIMEOUT)
        ours = {one.pid for one in processes_of(unit, read_processes(machine.proc), set(), machine.proc)}
        held = {one.uuid for one in read_gpus(machine.run, GPU_QUERY_TIMEOUT).processes if one.pid in ours}
        cards = [load for load in loads if not held or load.uuid in held]
        if not cards or not all(
            load.utilisation is not None
            and load.utilisation >= FULL_UTILISATION
            and load.draw is not None
            and load.limit
            and load.draw < load.limit * IDLE_SHARE
            for load in cards
        ):
            return ""
        draw = max(load.draw or 0 for load in cards)
        limit = max(load.limit or 0 for load in cards)
        return f"its {len(cards)} cards are fully used at no more than {draw:.0f} of {limit:.0f} W"
