# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose an instance is, where several hosts of the inventory are one machine. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.machines import machine

Told = Mapping[str, Any]


def apart(told: Mapping[str, Told], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Told]:
    """Return by host what it told, with each instance of a machine, and its mark as drained, at one of its hosts only.

    It is the one with that `sglang_instance`, else the first that names none. told: what `instance_info` returned.
    """
    together: dict[str, list[str]] = {}
    for host in told:
        together.setdefault(machine(host, hostvars[host]), []).append(host)
    found = dict(told)
    for hosts in together.values():
        if len(hosts) < 2:
            continue
        names = {host: str(hostvars[host].get("sglang_instance") or "") for host in hosts}
        first = next((host for host in hosts if not names[host]), hosts[0])
        place = {name: host for host, name in reversed(names.items())}
        for host in hosts:
            if "unasked" not in told[host]:
                mine = [one for one in told[host].get("instances", []) if place.get(one["name"], first) == host]
                out = [name for name in told[host].get("drained_instances", []) if place.get(name, first) == host]
                found[host] = {**told[host], "instances": mine, "drained": bool(out), "drained_instances": out}
    return found
