# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which processes belong to a service. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Collection

from .proc import Process, descendants, environment
from .systemd import Unit


def processes_of(
    unit: Unit, processes: dict[int, Process], recorded: Collection[tuple[int, int]], proc: str
) -> tuple[Process, ...]:
    """Everything that belongs to the unit and still lives; `recorded` (pid, start) did so at an earlier look.

    Its control group, what descends from its main process, and what carries its invocation's id in the
    environment: a worker that was moved to another control group and lost its parent is still found by that.
    """
    pids = descendants([unit.main_pid] if unit.main_pid else [], processes)
    for process in processes.values():
        if process.key in recorded or process.unit == unit.name or _invoked_by(unit, process, proc):
            pids.add(process.pid)
    return tuple(processes[pid] for pid in sorted(pids) if not processes[pid].gone)


def _invoked_by(unit: Unit, process: Process, proc: str) -> bool:
    return bool(unit.invocation) and environment(process.pid, proc).get("INVOCATION_ID") == unit.invocation
