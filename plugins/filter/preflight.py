# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters around preflight; the logic is in module_utils/_host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.filter.launch import launch_findings
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import fleet_report
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import launch_of


def preflight_launch(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a deployment's launch the checks look at."""
    return launch_of(deployment)


def preflight_report(hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by host its state and everything found, of the host and of its deployment."""
    return {host: _host(hostvars[host]) for host in hosts}


def _host(variables: Mapping[str, Any]) -> dict[str, Any]:
    deployment = variables.get("sglang_deployment")
    rules = launch_findings(deployment, variables.get("sglang_accepted_rules") or []) if deployment else []
    return fleet_report.host_report(variables.get("sglang_preflight_result") or {}, rules)


def preflight_table(report: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the report as a table."""
    return fleet_report.table(report)


def preflight_blocked(report: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each host that a deployment could not go on with."""
    return fleet_report.blocked(report)


class FilterModule:
    """Filters of llmfleet.sglang about preflight."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "preflight_launch": preflight_launch,
            "preflight_report": preflight_report,
            "preflight_table": preflight_table,
            "preflight_blocked": preflight_blocked,
        }
