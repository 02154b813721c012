# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that steer a rollout and say what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.release import __version__
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import begin, choices, machines, recap, serial
from jinja2 import pass_context

HostVars = Mapping[str, Mapping[str, Any]]
_HOOKS = Path(__file__).resolve().parents[2] / "playbooks" / "tasks" / "load_balancers"


def rollout_turns(hosts: Sequence[str], hostvars: HostVars) -> dict[str, int]:
    """Return each host's turn, from 1: hosts that are one machine have one after the other."""
    return machines.turns(hosts, hostvars)


def rollout_clashes(hosts: Sequence[str], hostvars: HostVars) -> list[str]:
    """Return why instances of one machine cannot live there together, a sentence each."""
    return machines.problems(hosts, hostvars)


@pass_context
def rollout_pattern(variables: Mapping[str, Any], pattern: str) -> str:
    """Return which hosts take part: the pattern that was given, or the group sglang; fail where there is none."""
    wanted = pattern or "sglang"
    # Where plays are only listed, or their syntax is checked, no inventory is needed.
    if any(context.CLIARGS.get(name) for name in ("syntax", "listhosts", "listtasks", "listtags")):
        return wanted
    limit = variables.get("ansible_limit") or ""
    problem = begin.too_old(__version__)
    if not problem and "groups" in variables:
        within = variables["ansible_play_hosts_all"] if limit else None
        if not _matches(wanted, variables["groups"], within):
            problem = begin.nobody(wanted, variables.get("ansible_inventory_sources") or (), limit)
    if problem:
        raise AnsibleFilterError(problem)
    return wanted


def _matches(pattern: str, groups: Mapping[str, Iterable[str]], within: Collection[str] | None) -> bool:
    """Tell whether a pattern matches hosts, as Ansible's lookup inventory_hostnames does. within: those of --limit."""
    manager = InventoryManager(DataLoader(), parse=False)
    for group, hosts in groups.items():
        manager.add_group(group)
        for host in hosts:
            manager.add_host(host, group=group)
    return any(within is None or host.name in within for host in manager.get_hosts(pattern))


def rollout_hosts(groups: Mapping[str, Iterable[str]], pattern: str) -> str | list[str]:
    """Return what a play's hosts has to be to go over the prepared hosts of a pattern, turn by turn."""
    return machines.hosts(groups, pattern)


def rollout_serial(groups: Mapping[str, Iterable[str]]) -> list[int | str]:
    """Return the batch sizes that resolve.yml put into the name of a group, cut where a turn ends."""
    return machines.batches(groups)


def rollout_batch(members: Sequence[str], groups: Mapping[str, Iterable[str]], everybody: Sequence[str]) -> str:
    """Return which batch these hosts are, in words."""
    return machines.batch(groups, everybody, members)


def rollout_serial_group(sizes: Any) -> str:
    """Return the name of the group that carries these batch sizes."""
    try:
        return serial.group(sizes)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


def rollout_goes_on(hosts: Sequence[str], hostvars: HostVars, alive: Collection[str]) -> bool:
    """Tell whether no more hosts failed than sglang_failures_allowed."""
    return recap.goes_on(hosts, hostvars, alive)


def rollout_failures(hosts: Sequence[str], hostvars: HostVars, alive: Collection[str]) -> list[str]:
    """Return a sentence for each host that failed."""
    return recap.failures(hosts, hostvars, alive)


def rollout_recap(hosts: Sequence[str], hostvars: HostVars, alive: Collection[str], report: str = "") -> str:
    """Return a line for each host, and one that says where the report is."""
    return recap.recap(hosts, hostvars, alive, report)


def rollout_hook(value: str, verb: str) -> str:
    """Return the file of tasks that sglang_drain_tasks or sglang_undrain_tasks means."""
    return choices.hook(value, verb, _HOOKS)


def rollout_unreached(result: Mapping[str, Any]) -> str:
    """Return which of the load balancers that a task of them asked cannot be reached."""
    return choices.unreached(result)


class FilterModule:
    """Filters of llmfleet.sglang about rollouts."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "rollout_turns": rollout_turns,
            "rollout_clashes": rollout_clashes,
            "rollout_pattern": rollout_pattern,
            "rollout_hosts": rollout_hosts,
            "rollout_serial": rollout_serial,
            "rollout_batch": rollout_batch,
            "rollout_serial_group": rollout_serial_group,
            "rollout_goes_on": rollout_goes_on,
            "rollout_failures": rollout_failures,
            "rollout_recap": rollout_recap,
            "rollout_hook": rollout_hook,
            "rollout_unreached": rollout_unreached,
        }
