# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that says who gives a checkpoint to whom; the logic is in module_utils/_checkpoint/fanout.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import fanout


def _results(variables: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the host's checkpoint tasks said so far; a task that was skipped said nothing."""
    names = ("sglang_checkpoint_result", "sglang_checkpoint_seeded")
    found = [variables.get(name) for name in names]
    return [one for one in found if isinstance(one, Mapping) and "complete" in one]


def _failed(variables: Mapping[str, Any]) -> bool:
    """Whether the host failed as a seed. Until the block is through Ansible counts it among those in the play."""
    results = [variables.get(name) for name in ("sglang_checkpoint_installed", "sglang_checkpoint_seeded")]
    return any(isinstance(one, Mapping) and one.get("failed") for one in results)


def checkpoint_plan(
    hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]], host: str, transfers: int = 1
) -> dict[str, Any]:
    """Return the part of `host`; see the documentation."""
    known = {one: hostvars[one] for one in hosts}  # each look at hostvars gathers all variables of the host anew
    said = {one: _results(variables) for one, variables in known.items()}

    def place(one: str) -> tuple[Any, ...]:
        first: Mapping[str, Any] = said[one][0] if said[one] else {}
        return str(known[one].get("sglang_site") or "default"), first.get("repository"), first.get("revision")

    own = place(host)
    site = [one for one in hosts if place(one) == own and (one == host or not _failed(known[one]))]
    addresses = {
        one: str(known[one].get("sglang_checkpoint_address") or known[one].get("ansible_host") or one) for one in site
    }
    complete = {one: result for one in site for result in said[one] if result["complete"]}
    plan = fanout.plan(host, site, addresses, complete, transfers)
    digest = complete[plan.seed]["manifest_digest"] if plan.seed in complete else ""
    # in check mode nobody has fetched, and the seed has asked how much it is
    size = max((result.get("bytes", 0) for result in said[plan.seed]), default=0)
    return {**plan.as_dict(), "address": addresses[host], "manifest_digest": digest, "bytes": size}


def checkpoint_lacking(hosts: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the hosts that looked for their checkpoint and do not have it, of whichever site."""
    said = {one: _results(hostvars[one]) for one in hosts}
    return [one for one, results in said.items() if results and not any(result["complete"] for result in results)]


class FilterModule:
    """Filters of llmfleet.sglang about checkpoints."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Map filter names to functions."""
        return {"checkpoint_lacking": checkpoint_lacking, "checkpoint_plan": checkpoint_plan}
