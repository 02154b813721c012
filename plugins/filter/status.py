# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that prints a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._status.sharing import apart
from ansible_collections.llmfleet.sglang.plugins.module_utils._status.table import table


def _told(hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return by host what instance_info told, registered as sglang_status; `unasked`: why a host could not be asked."""
    results = {host: hostvars[host].get("sglang_status") or {} for host in hosts}
    told: dict[str, Mapping[str, Any]] = {
        host: result if "instances" in result else {"unasked": str(result.get("msg") or "")}
        for host, result in results.items()
    }
    return apart(told, hostvars)


def status_table(hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of the hosts' instances."""
    return table(_told(hosts, hostvars))


def status_report(hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the same for machines: by host, whether it could be asked, its instances and cards, who works on it."""
    told = _told(hosts, hostvars)
    return {
        host: {
            "asked": "unasked" not in one,
            "instances": one.get("instances", []),
            "gpus": one.get("gpus", {}),
            "lock": one.get("lock"),
            "drained": one.get("drained", False),
        }
        for host, one in told.items()
    }


class FilterModule:
    """Filters of llmfleet.sglang about status."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {"status_table": status_table, "status_report": status_report}
