# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever opens the fusion gate without a trial reads so in every report, whichever way it was said."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.action import fleet_report
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import override
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap

from tests.unit.benchmark.case import TOPOLOGY
from tests.unit.deployment.example import resolved
from tests.unit.trial.test_gate import OPEN, WIN

RULE: dict[str, Any] = {"sglang_accepted_rules": ["fusion_without_win"]}
SKIPPED: dict[str, Any] = {"sglang_tried": {"skipped": True}}


def host(*trials: dict[str, Any], opened: bool = True, **more: Any) -> dict[str, Any]:
    """What Ansible knows of a host that was asked for its trials."""
    options = OPEN if opened else {}
    tried = {"trials": list(trials), "topology": TOPOLOGY}
    return {"sglang_deployment": resolved(**options), "sglang_tried": tried, **more}


@pytest.mark.parametrize("said", [True, "true", "yes", "on", "True", "1", 1])
def test_whatever_ansible_takes_as_true_is_said(said: Any) -> None:
    assert override.told_by({"sglang_without_trial": said}) == ["sglang_without_trial is set"]


@pytest.mark.parametrize("said", [False, "false", "no", None, ""])
def test_what_is_not_said_is_not_told(said: Any) -> None:
    hosts = {"h1": host(sglang_without_trial=said, sglang_accepted_rules=["peer_loads"])}
    assert override.lines(["h1"], hosts) == []


def test_an_accepted_rule_is_in_the_recap_as_the_variable_is() -> None:
    hosts = {"h1": host(**RULE), "h2": host(opened=False, **RULE)}
    text = recap.recap(["h1", "h2"], hosts, ["h1", "h2"])
    told = "sglang_accepted_rules has fusion_without_win: the fusion gate is open without a recorded win on h1."
    assert text.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (host(opened=False), "no gate is open"),
        (host(), "the fusion gate is open without a recorded win on h1"),
        (host(WIN), "a trial has won wherever the fusion gate is open"),
        (host(WIN, {**WIN, "result": "worse", "at": "2026-2"}), "the fusion gate is open without a recorded win on h1"),
        (
            {**host(), **SKIPPED},
            "the fusion gate is open on h1, and nobody asked whether a trial has won",
        ),
        # What is on trial needs no win; what it changes has the gate closed.
        (host(sglang_trial_base=resolved()), "no gate is open"),
    ],
)
def test_what_is_open_is_told_as_it_is(one: dict[str, Any], told: str) -> None:
    assert override.lines(["h1"], {"h1": {**one, "sglang_without_trial": True}}) == [
        f"sglang_without_trial is set: {told}."
    ]


def found(kind: str = "deployment", **one: Any) -> list[bool]:
    """Whether each finding of the rule counts as accepted."""
    rows = fleet_report.findings_of({"h1": {**host(), **one}}, kind)["h1"]
    return [row["accepted"] for row in rows if row["id"] == "fusion_without_win"]


def test_a_finding_of_the_rule_is_judged_as_the_run_judged_it() -> None:
    assert found() == [False]
    assert found(**RULE) == [True]
    assert found(sglang_without_trial="on") == [True]
    assert found(**host(WIN)) == []
    # Nobody asked for a win where nothing is deployed, and what is on trial needs none.
    assert found("benchmark", **SKIPPED) == []
    assert found("trial") == []
