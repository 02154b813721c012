# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of FlashInfer's all-reduce fusion on SM120: whether a deployment opens it, and who has won with it. Private.

A fleet serves with the gate open only where a trial has won for that SGLang version, tensor parallel size and topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PATCH_SET = "sm120_fusion"
SWITCH, BACKEND = "enable-flashinfer-allreduce-fusion", "flashinfer-allreduce-fusion-backend"
BETTER = "better"


def is_open(deployment: Mapping[str, Any]) -> bool:
    """Tell whether a deployment on cards of capability 12 has the patch set or one of its arguments."""
    capability = str(deployment["gpus"].get("compute_capability", ""))
    arguments = deployment["launch"]["arguments"]
    if capability.partition(".")[0] != "12" or arguments.get("device", "cuda") != "cuda":
        return False
    names = {one["name"] for one in deployment["patch_sets"]}
    return PATCH_SET in names or arguments.get(SWITCH) not in (None, False) or arguments.get(BACKEND) is not None


def opened(base: Mapping[str, Any], changed: Mapping[str, Any]) -> bool:
    """Tell whether a change opens the gate: open with it, closed without it. Only that says what the gate brings."""
    return is_open(changed) and not is_open(base)


def tensor_parallel(deployment: Mapping[str, Any]) -> int:
    """Return the tensor parallel size of a deployment."""
    return int(deployment["launch"]["arguments"].get("tp-size") or 1)


def won(trials: Iterable[Mapping[str, Any]], version: str, size: int, topology: str) -> bool:
    """Tell whether the last trial of the gate under these conditions was a win. trials: the oldest first."""
    last = ""
    for one in trials:
        same = (one.get("version"), one.get("tensor_parallel"), one.get("topology")) == (version, size, topology)
        if one.get("gate") and same:
            last = str(one.get("result"))
    return last == BETTER


def facts(host: str, hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the rules of known failures have to know of a host: `win` where one of the hosts has won for it.

    Each host has registered the result of `benchmark_info` as sglang_tried, with its topology; the others have not
    opened the gate.
    """
    mine = hostvars[host]  # each look at hostvars gathers all variables of the host anew
    own = mine.get("sglang_tried") or {}
    if not own.get("topology"):
        return {}
    deployment = mine["sglang_deployment"]
    told = (hostvars[one].get("sglang_tried") or {} for one in hosts)
    trials = sorted((trial for one in told for trial in one.get("trials", [])), key=lambda one: str(one.get("at", "")))
    found = won(trials, deployment["build"]["version"], tensor_parallel(deployment), own["topology"])
    return {"benchmark": {"fusion": "win"}} if found else {}
