# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is drained before its service is stopped and undrained once one serves: what we drained, and only that."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Rollout, Stage

FEW = HOSTS[:3]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, FEW)


def order(run: Rollout, host: str) -> list[str]:
    """The steps that a host came to in its cut-over, in order."""
    steps = ("drain", "start", "record", "rollback", "undrain")
    return [step for step, name in re.findall(r"EVENT (\w+) (h\d\d)", run.output) if name == host and step in steps]


def test_each_host_is_drained_and_undrained_in_its_turn_and_told_its_state(stage: Stage) -> None:
    run = stage.deploy({"h02": {"already": True}}, sglang_serial=[1, "100%"], **stage.hooks)
    assert run.rc == 0, run.output
    assert order(run, "h01") == order(run, "h03") == ["drain", "start", "record", "undrain"]
    assert order(run, "h02") == ["start", "record"]  # it serves what is wanted, and gets its requests all the while
    assert run.output.index("EVENT undrain h01") < run.output.index("EVENT drain h03")
    handed = [json.loads(text) for text in re.findall(r"HANDED ({.*?})'", " ".join(run.output.split()))]
    assert {(one["name"], one["address"], one.get("reason")) for one in handed if "reason" in one} == {
        ("h01", "192.0.2.1:30000", "another state"),
        ("h03", "192.0.2.3:30000", "another state"),
    }
    told = [(one["name"], one["verdict"]["serves"]) for one in handed if "verdict" in one]
    assert sorted(told) == [("h01", True), ("h03", True)]
    assert stage.drained() == []


def test_a_host_that_goes_back_is_undrained_when_the_old_service_answers_again(stage: Stage) -> None:
    run = stage.deploy({"h01": {"fails_in": "verify"}}, sglang_serial=[1, "100%"], **stage.hooks)
    assert run.rc == 2
    assert order(run, "h01") == ["drain", "start", "rollback", "undrain"]
    assert run.states == {"h01": "went back", "h02": "untouched", "h03": "untouched"}
    assert stage.drained() == []


def test_where_one_of_a_batch_goes_back_its_peers_are_undrained_too(stage: Stage) -> None:
    run = stage.deploy({"h02": {"fails_in": "start"}}, sglang_serial=[3], **stage.hooks)
    assert run.rc == 2
    assert order(run, "h01") == order(run, "h03") == ["drain", "start", "record", "undrain"]
    assert order(run, "h02") == ["drain", "start", "rollback", "undrain"]
    assert stage.drained() == [] and stage.locked() == []


def test_a_host_on_which_nothing_serves_stays_drained_until_a_rerun_has_mended_it(stage: Stage) -> None:
    run = stage.deploy({"h01": {"fails_in": "verify", "stuck": True}}, sglang_serial=[1], **stage.hooks)
    assert run.rc == 2
    assert order(run, "h01") == ["drain", "start", "rollback"]
    assert "h01  broken     The verify failed. It is out of the load balancer still" in run.output
    assert stage.drained() == ["h01"]
    # As after a mend by hand: the host serves what is wanted, and there is nothing to cut over.
    again = stage.deploy({"h01": {"already": True}}, **stage.hooks)
    assert again.rc == 0
    assert order(again, "h01") == ["start", "record", "undrain"]
    assert stage.drained() == []


def test_where_draining_fails_nothing_is_stopped_and_the_rollout_ends(stage: Stage) -> None:
    run = stage.deploy({"h01": {"fails_in": "drain"}}, sglang_serial=[1, "100%"], **stage.hooks)
    assert run.rc == 2
    assert order(run, "h01") == ["drain", "undrain"] and set(run.states.values()) == {"untouched"}
    assert "The host could not be drained: The drain failed." in run.output
    assert run.came_to("start") == [] and run.came_to("rollback") == []
    assert stage.drained() == []


def test_where_undraining_fails_the_host_is_said_to_get_no_requests(stage: Stage) -> None:
    run = stage.deploy({"h01": {"fails_in": "undrain"}}, sglang_serial=[1, "100%"], **stage.hooks)
    assert run.rc == 2
    assert run.states == {"h01": "drained", "h02": "untouched", "h03": "untouched"}
    assert "could not be undrained: The undrain failed." in run.output
    assert stage.drained() == ["h01"]


def test_a_host_that_goes_back_with_its_batch_is_drained_for_it(stage: Stage) -> None:
    failing = {"h03": {"fails_in": "verify"}}
    run = stage.deploy(failing, sglang_serial=[3], sglang_batch_peers="back", **stage.hooks)
    assert run.rc == 2
    assert order(run, "h01") == ["drain", "start", "record", "undrain", "drain", "rollback", "undrain"]
    assert run.hosts("went back") == FEW
    assert stage.drained() == []


@pytest.mark.parametrize(
    ("step", "how"),
    [
        ("build", signal.SIGKILL),
        ("drain", signal.SIGKILL),
        ("start", signal.SIGKILL),
        ("verify", signal.SIGKILL),
        ("undrain", signal.SIGKILL),
        ("verify", signal.SIGINT),  # Ctrl-C
    ],
)
def test_a_controller_that_ends_in_the_middle_leaves_nothing_that_a_rerun_does_not_mend(
    stage: Stage, step: str, how: signal.Signals
) -> None:
    ended = stage.end_after(f"EVENT {step} h01", how, sglang_serial=[1, "100%"], **stage.hooks)
    assert ended.rc != 0
    assert stage.locked()  # nobody gave them back
    assert stage.drained() == ([] if step == "build" else ["h01"])
    run = stage.deploy(sglang_serial=[1, "100%"], **stage.hooks)
    assert run.rc == 0, run.output
    assert "took over the lock of" in run.output and "its run has died" in run.output
    assert run.hosts("new") == FEW
    assert stage.drained() == [] and stage.locked() == []


def test_check_mode_marks_nothing_on_a_host_that_has_no_record_yet(stage: Stage) -> None:
    run = stage.deploy(check=True, **stage.hooks)
    assert run.rc == 0, run.output
    assert set(run.states.values()) == {"to change"}
    assert not (stage.folder / "state").exists()
