# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet serves with the fusion gate open only where a trial has won, and an override is said in every report."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.launch import launch_findings
from ansible_collections.llmfleet.sglang.plugins.filter.trial import fusion_facts, fusion_open, fusion_opened
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import gate

from tests.unit.benchmark.case import TOPOLOGY
from tests.unit.deployment.example import resolved

OPEN: dict[str, Any] = {
    "patch_sets": ["sm120", "sm120_fusion"],
    "arguments": {"flashinfer-allreduce-fusion-backend": "trtllm"},
}
WIN = {
    "gate": True,
    "result": "better",
    "version": "0.5.23",
    "tensor_parallel": 8,
    "topology": TOPOLOGY,
    "at": "2026-01",
}


@pytest.mark.parametrize(
    ("options", "is_open"),
    [
        ({}, False),
        (OPEN, True),
        ({"patch_sets": ["sm120_fusion"]}, True),
        ({"arguments": {"enable-flashinfer-allreduce-fusion": True}}, True),
        ({"arguments": {"enable-flashinfer-allreduce-fusion": False}}, False),
        ({"arguments": {"flashinfer-allreduce-fusion-backend": "trtllm"}}, True),
        ({**OPEN, "gpus": {"compute_capability": "10.0"}}, False),
        ({"patch_sets": ["sm120_fusion"], "arguments": {"device": "cpu"}}, False),
    ],
)
def test_what_opens_the_gate(options: dict[str, Any], is_open: bool) -> None:
    assert fusion_open(resolved(**options)) is is_open


@pytest.mark.parametrize(
    ("base", "change", "opens"),
    [
        ({}, OPEN, True),
        ({"patch_sets": ["sm120"]}, {"arguments": {"flashinfer-allreduce-fusion-backend": "trtllm"}}, True),
        (OPEN, {**OPEN, "arguments": {**OPEN["arguments"], "chunked-prefill-size": 8192}}, False),
        (OPEN, {}, False),
        ({}, {"arguments": {"chunked-prefill-size": 8192}}, False),
    ],
)
def test_only_a_trial_that_opens_the_gate_counts_for_it(
    base: dict[str, Any], change: dict[str, Any], opens: bool
) -> None:
    assert fusion_opened(resolved(**change), resolved(**base)) is opens


@pytest.mark.parametrize(
    "other",
    [
        {"version": "0.5.22"},
        {"tensor_parallel": 4},
        {"topology": "no GPU"},
        {"result": "same"},
        {"result": "failed start"},
        {"gate": False},
    ],
)
def test_a_win_counts_for_its_version_size_and_topology_alone(other: dict[str, Any]) -> None:
    assert gate.won([WIN], "0.5.23", 8, TOPOLOGY)
    assert not gate.won([{**WIN, **other}], "0.5.23", 8, TOPOLOGY)


def test_the_last_trial_counts() -> None:
    assert not gate.won([WIN, {**WIN, "result": "worse"}], "0.5.23", 8, TOPOLOGY)
    assert gate.won([{**WIN, "result": "worse"}, WIN], "0.5.23", 8, TOPOLOGY)
    assert gate.won([WIN, {**WIN, "gate": False, "result": "worse"}], "0.5.23", 8, TOPOLOGY)


def fleet(*trials: list[dict[str, Any]], **options: Any) -> dict[str, dict[str, Any]]:
    """The variables of hosts with these trials, of which the last has other cards."""
    told = {
        f"h{number}": {
            "sglang_deployment": resolved(**options),
            "sglang_tried": {"trials": found, "topology": TOPOLOGY},
        }
        for number, found in enumerate(trials, 1)
    }
    told[f"h{len(trials)}"]["sglang_tried"]["topology"] = "8 x RTX PRO 6000, NODE, NVLink none"
    return told


def refused(hostvars: dict[str, dict[str, Any]], host: str) -> list[str]:
    """The rules that refuse a host's deployment."""
    facts = fusion_facts(list(hostvars), hostvars, host)
    found = launch_findings(hostvars[host]["sglang_deployment"], [], facts)
    return [one["id"] for one in found if one["severity"] == "refuse"]


def test_one_hosts_win_counts_for_all_that_are_like_it() -> None:
    hostvars = fleet([], [WIN], [], **OPEN)
    assert "fusion_without_win" not in refused(hostvars, "h1")
    assert "fusion_without_win" in refused(hostvars, "h3")


def test_without_a_win_it_is_refused_with_the_way_out() -> None:
    hostvars = fleet([], [{**WIN, "result": "worse"}], **OPEN)
    assert "fusion_without_win" in refused(hostvars, "h1")
    [one] = [one for one in launch_findings(resolved(patch_sets=["sm120_fusion"])) if one["severity"] == "refuse"]
    assert "llmfleet.sglang.trial" in one["text"] and "sglang_without_trial" in one["text"]


def test_a_later_loss_on_another_host_takes_the_win_back() -> None:
    hostvars = fleet([{**WIN, "result": "worse", "at": "2026-02"}], [WIN], [], **OPEN)
    assert "fusion_without_win" in refused(hostvars, "h2")


def test_a_closed_gate_asks_nobody() -> None:
    hostvars = {"h1": {"sglang_deployment": resolved(), "sglang_tried": {"skipped": True}}}
    assert fusion_facts(["h1"], hostvars, "h1") == {}
    assert refused(hostvars, "h1") == []


@pytest.mark.parametrize("said", [True, "true", "yes"])
def test_an_override_is_in_the_recap(said: Any) -> None:
    hostvars = {
        "h1": {"sglang_deployment": resolved(**OPEN), "sglang_without_trial": said},
        "h2": {"sglang_deployment": resolved(), "sglang_without_trial": said},
    }
    text = recap.recap(["h1", "h2"], hostvars, ["h1", "h2"])
    assert text.splitlines()[-1] == "sglang_without_trial is set: the fusion gate is open without a recorded win on h1."
    del hostvars["h1"]
    assert "sglang_without_trial is set: no gate is open." in recap.recap(["h2"], hostvars, ["h2"])


@pytest.mark.parametrize("said", [False, "false", None])
def test_no_override_no_word(said: Any) -> None:
    hostvars = {"h1": {"sglang_deployment": resolved(**OPEN), "sglang_without_trial": said}}
    assert "sglang_without_trial" not in recap.recap(["h1"], hostvars, ["h1"])
