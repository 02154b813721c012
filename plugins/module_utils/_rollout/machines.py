# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several instances on one machine, each a host of the inventory, take turns. Private to the collection.

Hosts with the same address and port are one machine. The first of each machine has turn 1, the next turn 2, and a batch
holds hosts of one turn only: never are two instances of a machine prepared or cut over at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import serial

PREPARED = "sglang_prepared"
# So many hosts of a batch are named one by one.
_NAMED = 4
_TURN = f"{PREPARED}_"


def machine(host: str, variables: Mapping[str, Any]) -> str:
    """Return what a host is reached by, the same for all hosts that are one machine."""
    address = str(variables.get("ansible_host") or host)
    return f"{address}:{variables.get('ansible_port') or 22}"


def turns(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return each host's turn, from 1."""
    seen: dict[str, int] = {}
    found: dict[str, int] = {}
    for host in hosts:
        key = machine(host, hostvars[host])
        found[host] = seen[key] = seen.get(key, 0) + 1
    return found


def problems(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return why instances of one machine cannot live there together, a sentence each.

    hostvars: with each host's resolved `sglang_deployment`.
    """
    together: dict[str, list[str]] = {}
    for host in hosts:
        together.setdefault(machine(host, hostvars[host]), []).append(host)
    found: list[str] = []
    for group in together.values():
        deployments = [hostvars[host]["sglang_deployment"] for host in group]
        for at, (first, one) in enumerate(zip(group, deployments)):
            for second, other in list(zip(group, deployments))[at + 1 :]:
                found += [f"{first} and {second} are one machine, and {clash}." for clash in _clashes(one, other)]
    return found


def _clashes(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    found = []
    if one["name"] == other["name"]:
        found.append(f"both are the instance {one['name']}: give each its own sglang_instance")
    if one["listen"]["port"] == other["listen"]["port"]:
        found.append(f"both listen on port {one['listen']['port']}: give each its own sglang_port")
    if one["service"] in other["replaces"] or other["service"] in one["replaces"]:
        found.append("one would stop the other: take them out of each other's sglang_replaces")
    cards = [each["gpus"].get("visible") or [] for each in (one, other)]
    if not all(cards):
        found.append("one of them takes all cards: give each its own sglang_visible_gpus")
    elif set(cards[0]) & set(cards[1]):
        shared = ", ".join(str(card) for card in sorted(set(cards[0]) & set(cards[1])))
        found.append(f"both use card {shared}: give each its own sglang_visible_gpus")
    return found


def _by_turn(groups: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The prepared hosts of each turn, in the inventory's order. groups: members by group, as Ansible has them."""
    names = [name for name in groups if name.startswith(_TURN) and name[len(_TURN) :].isdigit()]
    members = [set(groups[name]) for name in sorted(names, key=lambda name: int(name[len(_TURN) :]))]
    return [[host for host in groups["all"] if host in one] for one in members]


def hosts(groups: Mapping[str, Iterable[str]], pattern: str) -> str | list[str]:
    """Return what a play's `hosts` has to be to go over the prepared hosts of a pattern, turn by turn."""
    found = [one for one in _by_turn(groups) if one]
    if not found:
        return "all:!all"
    if len(found) > 1:
        return [host for one in found for host in one]
    # Ansible splits a pattern at its commas alone where it has one.
    return f"{pattern}{',' if ',' in pattern else ':'}&{PREPARED}"


def batches(groups: Mapping[str, Iterable[str]]) -> list[int | str]:
    """Return what that play's `serial` has to be: the sizes that a group's name carries, cut where a turn ends."""
    sizes = serial.from_groups(groups)
    counts = [len(one) for one in _by_turn(groups) if one]
    if len(counts) < 2:
        return sizes
    found: list[int | str] = []
    for count in counts:
        left = count
        while left:
            size = _number(sizes[min(len(found), len(sizes) - 1)], sum(counts))
            found.append(min(size, left))
            left -= min(size, left)
    return found


def _number(size: int | str, total: int) -> int:
    """A batch's size in hosts, as Ansible has it: a percentage is of the whole play, rounded down, and at least one."""
    return size if isinstance(size, int) else max(1, total * int(size.rstrip("%")) // 100)


def batch(groups: Mapping[str, Iterable[str]], everybody: Sequence[str], members: Sequence[str]) -> str:
    """Return which batch this is, in words: batch 1 of 3, the canary: node1.

    everybody: the hosts of the whole play in its order; members: those of them that are in the batch.
    """
    sizes, ends = batches(groups), [0]
    while ends[-1] < len(everybody):
        size = _number(sizes[min(len(ends), len(sizes)) - 1], len(everybody))
        ends.append(min(ends[-1] + size, len(everybody)))
    first = everybody.index(members[0])
    number = next(at for at, end in enumerate(ends) if first < end)
    canary = ", the canary" if number == 1 and ends[1] == 1 and len(everybody) > 1 else ""
    named = ", ".join(members)
    if len(members) > _NAMED:
        named = f"{len(members)} hosts, {members[0]} to {members[-1]}"
    return f"batch {number} of {len(ends) - 1}{canary}: {named}"
