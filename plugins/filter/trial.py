# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of a trial, and of the gate that only a won trial opens; the logic is in module_utils/_trial."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, cast

from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.deployment import deployment, deployment_problems
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import change, conclude, gate

HostVars = Mapping[str, Mapping[str, Any]]


def trial_problems(trial: Any, hosts: Sequence[str]) -> list[str]:
    """Return what is wrong with a trial, a sentence each."""
    return change.problems(trial, hosts)


def _over(variables: Mapping[str, Any], trial: Mapping[str, Any], base: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the variables of the host with the change."""
    own = change.changed(variables, trial, [one["name"] for one in base["patch_sets"]])
    # Not copied: that would work out every variable of the host, and another one's template may fail.
    return ChainMap(own, cast(MutableMapping[str, Any], variables))


def trial_change_problems(
    variables: Mapping[str, Any], trial: Mapping[str, Any], profile: str = "", profiles: list[str] | None = None
) -> list[str]:
    """Return what keeps a deployment from having the change, or that it changes nothing, a sentence each."""
    base = deployment(variables, profile, profiles)
    over = _over(variables, trial, base)
    found = deployment_problems(over, profile, profiles)
    return found or change.without_effect(base, deployment(over, profile, profiles), trial)


def trial_deployment(
    variables: Mapping[str, Any], trial: Mapping[str, Any], profile: str = "", profiles: list[str] | None = None
) -> dict[str, Any]:
    """Return the deployment with the change, or fail with every problem at once."""
    base = deployment(variables, profile, profiles)
    changed = deployment(_over(variables, trial, base), profile, profiles)
    problems = change.without_effect(base, changed, trial)
    if problems:
        raise AnsibleFilterError("\n".join(problems))
    return changed


def trial_hindrances(
    info: Mapping[str, Any],
    base: Mapping[str, Any],
    changed: Mapping[str, Any],
    release: Mapping[str, Any],
    recorded: bool = False,
) -> list[str]:
    """Return what keeps a host from a trial: what it serves, or a baseline that was asked for and is not there."""
    serving = info["serving"]
    if "problem" in serving:
        return [f"A trial changes what serves: {serving['problem']}."]
    found = change.differences(serving, base, release.get("compilers") or {})
    found = found or change.release_differences(serving, release)
    if found:
        return ["The host does not serve the deployment that the trial changes: deploy it first.", *found]
    there = change.in_force(serving, base, changed)
    if there:
        return there
    if not base["benchmark"]["shapes"]:
        return [f"The profile {base['profile']} has no 'benchmark': say in sglang_benchmark_shapes what to measure."]
    sizes = [str(one["launch"]["arguments"].get("tp-size") or 1) for one in (base, changed)]
    if sizes[0] != sizes[1]:
        return [
            f"The change has tensor parallel size {sizes[1]}, and a baseline of size {sizes[0]} says nothing of it."
        ]
    if recorded and not trial_baseline(info, base):
        return ["Nothing was recorded of what serves with these shapes and cards: leave sglang_trial_baseline out."]
    return []


def trial_baseline(info: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last recorded benchmark of what serves now with the shapes of the deployment; empty without one."""
    shapes = sorted(
        tuple(sorted((key, int(value)) for key, value in one.items())) for one in base["benchmark"]["shapes"]
    )
    lost = judge.lost([Benchmark.from_dict(one) for one in info["benchmarks"]])
    for one in reversed(info["benchmarks"]):
        measured = sorted(
            tuple(sorted((key, value) for key, value in shape.items() if key not in ("cold", "runs")))
            for shape in one["shapes"]
        )
        fits = one["state"] == info["serving"]["state"] and one["topology"] == info["topology"]
        if fits and measured == shapes and one["id"] not in lost:
            return dict(one)
    return {}


def trial_fails_on(same: str) -> list[str]:
    """Return the verdicts after which a trial goes back."""
    return conclude.fails_on(same)


def fusion_open(resolved: Mapping[str, Any]) -> bool:
    """Tell whether a deployment opens the gate of FlashInfer's all-reduce fusion on SM120."""
    return gate.is_open(resolved)


def fusion_opened(changed: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Tell whether a change opens that gate, which its baseline has closed."""
    return gate.opened(base, changed)


def fusion_facts(hosts: Sequence[str], hostvars: HostVars, host: str) -> dict[str, Any]:
    """Return what the rules of known failures have to know of a host: whether a trial of the gate has won for it."""
    return gate.facts(host, hosts, hostvars)


class FilterModule:
    """Filters of llmfleet.sglang about trials."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "trial_problems": trial_problems,
            "trial_change_problems": trial_change_problems,
            "trial_deployment": trial_deployment,
            "trial_hindrances": trial_hindrances,
            "trial_baseline": trial_baseline,
            "trial_fails_on": trial_fails_on,
            "fusion_open": fusion_open,
            "fusion_opened": fusion_opened,
            "fusion_facts": fusion_facts,
        }
