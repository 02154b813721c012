# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run that could not tell it itself. Private to the collection.

Ansible ends a whole playbook where every host of a batch is lost, where a file of tasks does not parse, and at Ctrl-C.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap

_HEAD = "The run was cut short before its summary. What is known of each host:"


@dataclass
class Run:
    """What was seen of a run.

    locked: its locks (host to run); lost: who is out of reach; told: it told its end; measures: it does nothing else.
    """

    begun: bool = False
    told: bool = False
    measures: bool = False
    lost: set[str] = field(default_factory=set)
    locked: dict[str, str] = field(default_factory=dict)

    def locks(self, host: str, result: Mapping[str, Any]) -> None:
        """Note what the module host_lock returned."""
        if result.get("held"):
            self.locked[host] = str((result.get("lock") or {}).get("run", ""))
        else:
            self.locked.pop(host, None)

    def untold(self) -> bool:
        """Tell whether hosts were worked on and nobody was told what became of them."""
        return self.begun and not self.told


def words(run: Run, hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the recap would have said, which locks are left, and what to do next."""
    known = {host: ChainMap({recap.CUT_SHORT: True}, hostvars[host]) for host in hosts}  # type: ignore[arg-type]
    alive = [host for host in hosts if host not in run.lost]
    said = _measured(run, hosts, hostvars) if run.measures else recap.recap(hosts, known, alive).splitlines()
    lines = [f"    {line}" for line in said]
    trial = any(recap.tried(hostvars[host]) for host in hosts)
    return "\n".join([_HEAD, *lines, *_locks(run.locked), _next(run.lost, run.locked, trial=trial)])


def _measured(run: Run, hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return of each host of a benchmark whether it was measured."""
    found = []
    for host in hosts:
        why = "It could not be reached any more" if host in run.lost else "The run ended before"
        if (hostvars[host].get("sglang_benchmark_result") or {}).get("benchmark"):
            found.append(f"{host}  measured      Its record has it.")
        else:
            found.append(f"{host}  not measured  {why}: nothing was recorded, and what measures there ends by itself.")
    return found


def _locks(locked: Mapping[str, str]) -> list[str]:
    if not locked:
        return []
    run = next(iter(locked.values()))
    return [
        f"Locked by this run still: {', '.join(sorted(locked))}. The next run from this controller takes that over by "
        f"itself; one from another needs -e sglang_lock_broken={run}"
    ]


def _next(lost: Collection[str], locked: Mapping[str, str], *, trial: bool) -> str:
    first = f"See that {', '.join(sorted(lost))} can be reached again, then run" if lost else "Run"
    if trial:
        return (
            f"{first} llmfleet.sglang.deploy, which brings the deployment of the inventory back, and then try again: "
            "while the change serves, the same trial is refused. llmfleet.sglang.status says what serves."
        )
    clean = "and nothing has to be cleaned up before" if locked else "and nothing is locked"
    return f"{first} the same command again: it goes on from there, {clean}. llmfleet.sglang.status says what serves."
