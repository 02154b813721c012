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
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import override
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import gate

HostVars = Mapping[str, Mapping[str, Any]]


def preflight_launch(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a deployment's launch the checks look at."""
    return launch_of(deployment)


def preflight_report(hosts: list[str], hostvars: HostVars) -> dict[str, dict[str, Any]]:
    """Return by host its state and everything found, of the host and of its deployment."""
    known = {host: hostvars[host] for host in hosts}  # each look at hostvars gathers all variables of the host anew
    return {
        host: fleet_report.host_report(each.get("sglang_preflight_result") or {}, _rules(host, known))
        for host, each in known.items()
    }


def _rules(host: str, known: HostVars) -> list[dict[str, Any]]:
    """What a deployment (playbooks/resolve.yml) would find in the host's launch."""
    deployment = known[host].get("sglang_deployment")
    if not deployment:
        return []
    accepted = list(known[host].get("sglang_accepted_rules") or [])
    if not gate.is_open(deployment):
        return launch_findings(deployment, accepted)
    if override.told_by(known[host]):
        accepted.append(override.RULE)
    return launch_findings(deployment, accepted, override.facts(host, list(known), known))


def preflight_table(report: Mapping[str, Mapping[str, Any]], hostvars: HostVars | None = None) -> str:
    """Return the report as a table, and below it what lets the fusion gate be open without a trial."""
    known = {host: hostvars[host] for host in report} if hostvars else {}
    resolved = {host: each for host, each in known.items() if "sglang_deployment" in each}
    return "\n\n".join([fleet_report.table(report), *override.lines(list(resolved), resolved)])


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
