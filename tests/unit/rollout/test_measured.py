# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of a rollout are measured, and what a slow canary ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import Stage

HOSTS = ["h01", "h02", "h03"]
SERIAL = [1, "100%"]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, HOSTS)


def test_the_canary_alone_is_measured_once_it_answers_and_before_it_is_recorded(stage: Stage) -> None:
    run = stage.deploy(sglang_serial=SERIAL, sglang_benchmark="canary")
    assert run.rc == 0, run.output
    assert run.came_to("measure") == ["h01"]
    steps = [
        line.split("EVENT ")[1].split()[0] for line in run.output.splitlines() if "EVENT" in line and "h01" in line
    ]
    assert steps[steps.index("verify") :][:3] == ["verify", "measure", "record"]


def test_a_slow_canary_goes_back_and_ends_the_rollout(stage: Stage) -> None:
    run = stage.deploy({"h01": {"fails_in": "measure"}}, sglang_serial=SERIAL, sglang_benchmark="canary")
    assert run.rc == 2
    assert run.came_to("rollback") == ["h01"] and run.came_to("start") == ["h01"]
    assert run.states == {"h01": "went back", "h02": "untouched", "h03": "untouched"}
    assert "h01: went back: The measure failed." in run.output


def test_all_are_measured_where_that_is_asked_for(stage: Stage) -> None:
    run = stage.deploy(sglang_serial=SERIAL, sglang_benchmark="all")
    assert run.came_to("measure") == HOSTS


def test_nobody_is_measured_by_default_or_where_nothing_was_started(stage: Stage) -> None:
    assert stage.deploy(sglang_serial=SERIAL).came_to("measure") == []
    same = {host: {"already": True} for host in HOSTS}
    assert stage.deploy(same, sglang_serial=SERIAL, sglang_benchmark="all").came_to("measure") == []


# As on hosts with cards: what a machine without a GPU forces is left out.
OPEN: dict[str, Any] = {"sglang_patch_sets": ["sm120", "sm120_fusion"], "sglang_arguments": {"tp-size": 8}}
WIN = {"schema": 1, "gate": True, "result": "better", "version": "0.5.23", "tensor_parallel": 8, "topology": "no GPU"}


def test_an_open_fusion_gate_without_a_win_is_refused_before_anything_is_done(stage: Stage) -> None:
    run = stage.deploy(**OPEN)
    assert run.rc != 0 and "[fusion_without_win]" in run.output
    assert run.came_to("preflight") == [] and stage.locked() == []


def test_a_recorded_win_opens_it_for_the_fleet(stage: Stage) -> None:
    place = stage.folder / "state" / "h02" / "qwen"
    place.mkdir(parents=True)
    (place / "trials.jsonl").write_text(json.dumps(WIN) + "\n")
    run = stage.deploy(**OPEN)
    assert run.rc == 0, run.output
    assert run.hosts("new") == HOSTS and "sglang_without_trial" not in run.output


def test_an_override_opens_it_and_is_in_the_recap(stage: Stage) -> None:
    run = stage.deploy(sglang_without_trial=True, **OPEN)
    assert run.rc == 0, run.output
    told = "sglang_without_trial is set: the fusion gate is open without a recorded win on h01, h02, h03."
    assert told in " ".join(run.output.split())
