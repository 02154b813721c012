# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an operator lets the fusion gate be open without a trial, and what every report says of it. Private.

Two ways say so: sglang_without_trial, and sglang_accepted_rules with the rule that refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import gate

RULE = "fusion_without_win"
Vars = Mapping[str, Any]


def true(value: Any) -> bool:
    """Take what Ansible hands over as text (`-e name=on`) as its filter `bool` does."""
    return str(value).lower() in ("true", "yes", "on", "1")


def told_by(variables: Vars) -> list[str]:
    """Return the ways in which a host's variables override it, as an operator knows them."""
    found = ["sglang_without_trial is set"] if true(variables.get("sglang_without_trial") or False) else []
    if RULE in (variables.get("sglang_accepted_rules") or []):
        found.append(f"sglang_accepted_rules has {RULE}")
    return found


def lines(hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> list[str]:
    """Return a sentence for each way that is used, with what is open by it; empty where nothing is overridden.

    Of a trial, what counts is the deployment that it changes: what is on trial needs no win.
    """
    by_way: dict[str, list[str]] = {}
    for host in hosts:
        for way in told_by(hostvars[host]):
            by_way.setdefault(way, []).append(host)
    return [f"{way}: {_open(told, hosts, hostvars)}." for way, told in by_way.items()]


def _open(told: Sequence[str], hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> str:
    opened = [host for host in told if gate.is_open(_base(hostvars[host]))]
    unasked = [host for host in opened if not looked(hostvars[host])]
    without = [host for host in opened if host not in unasked and not facts(host, hosts, hostvars)]
    parts = [f"the fusion gate is open without a recorded win on {', '.join(without)}"] if without else []
    if unasked:
        parts.append(f"the fusion gate is open on {', '.join(unasked)}, and nobody asked whether a trial has won")
    if opened and not parts:
        return "a trial has won wherever the fusion gate is open"
    return "; ".join(parts) or "no gate is open"


def _base(variables: Vars) -> Vars:
    found: Vars = variables.get("sglang_trial_base") or variables["sglang_deployment"]
    return found


def looked(variables: Vars) -> bool:
    """Tell whether the run asked if a trial has won; where nothing is deployed, it does not."""
    return not (variables.get("sglang_tried") or {}).get("skipped")


def facts(host: str, hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> dict[str, Any]:
    """Return what the rules have to know of a host: whether a trial has won with the gate open."""
    return gate.facts(host, [one for one in hosts if "sglang_deployment" in hostvars[one]], hostvars)
