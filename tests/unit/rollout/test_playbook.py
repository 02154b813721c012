# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""deploy.yml over six hosts, with each of the ways in which Ansible goes on after a failure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Stage

SERIAL = [1, 3, "100%"]
CANARY, SECOND, REST = HOSTS[:1], HOSTS[1:4], HOSTS[4:]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, HOSTS)


def test_all_is_well_and_the_batches_are_the_inventorys(stage: Stage) -> None:
    run = stage.deploy({host: {"sglang_serial": SERIAL} for host in HOSTS})
    assert run.rc == 0, run.output
    assert run.hosts("new") == HOSTS
    assert run.came_to("verify")[0] == "h01"
    # Batches: the next one starts when the one before is recorded.
    steps = [line for line in run.output.splitlines() if "EVENT start" in line or "EVENT record" in line]
    words = ["start" if "start" in line else "record" for line in steps]
    assert words == ["start"] + ["record"] + ["start"] * 3 + ["record"] * 3 + ["start"] * 2 + ["record"] * 2
    assert stage.locked() == []
    begun = re.findall(r"TASK \[Take the lock of (batch .*)\]", run.output)
    assert begun == ["batch 1 of 3, the canary: h01", "batch 2 of 3: h02, h03, h04", "batch 3 of 3: h05, h06"]


def test_a_failing_canary_goes_back_and_ends_the_rollout(stage: Stage) -> None:
    # Ansible by itself: a rescue that succeeds wipes the failure, and all the hosts are deployed with exit status 0.
    run = stage.deploy({"h01": {"fails_in": "verify"}}, sglang_serial=SERIAL)
    assert run.rc == 2
    assert run.came_to("start") == CANARY and run.came_to("rollback") == CANARY
    assert run.states == {"h01": "went back", **dict.fromkeys(HOSTS[1:], "untouched")}
    assert "h01: went back: The verify failed." in run.output
    assert "run the same command again" in run.output
    assert stage.locked() == []


def test_a_failure_in_the_second_batch_leaves_its_peers_new_and_the_rest_untouched(stage: Stage) -> None:
    run = stage.deploy({"h03": {"fails_in": "start"}}, sglang_serial=SERIAL)
    assert run.rc == 2
    # Ansible by itself, with any_errors_fatal: the rescue runs on the healthy hosts of the batch too.
    assert run.came_to("rollback") == ["h03"]
    assert run.hosts("new") == ["h01", "h02", "h04"]
    assert run.hosts("went back") == ["h03"]
    assert run.hosts("untouched") == REST


def test_the_peers_go_back_too_where_the_operator_chose_so(stage: Stage) -> None:
    run = stage.deploy({"h03": {"fails_in": "verify"}}, sglang_serial=SERIAL, sglang_batch_peers="back")
    assert run.rc == 2
    assert sorted(run.came_to("rollback")) == SECOND
    assert run.hosts("went back") == SECOND
    assert run.hosts("new") == CANARY and run.hosts("untouched") == REST


def test_a_rollback_that_fails_is_told_apart(stage: Stage) -> None:
    # Ansible by itself: max_fail_percentage does not see a rescue that fails again, and the rollout goes on.
    run = stage.deploy({"h01": {"fails_in": "verify", "stuck": True}}, sglang_serial=SERIAL)
    assert run.rc == 2
    assert run.hosts("broken") == ["h01"] and run.hosts("untouched") == HOSTS[1:]


def test_a_host_that_is_lost_in_its_batch_ends_the_rollout(stage: Stage) -> None:
    # Ansible by itself: neither rescue nor max_fail_percentage sees it, and the next batch starts.
    run = stage.deploy({"h02": {"lost_in": "verify"}}, sglang_serial=SERIAL)
    assert run.rc != 0
    assert run.hosts("lost") == ["h02"]
    assert run.hosts("new") == ["h01", "h03", "h04"]
    assert run.hosts("untouched") == REST
    assert stage.locked() == ["h02"]  # nobody could give it back


def test_a_host_that_is_lost_before_the_cutover_ends_it_before_anything_is_stopped(stage: Stage) -> None:
    run = stage.deploy({"h06": {"lost_in": "build"}}, sglang_serial=SERIAL)
    assert run.rc != 0
    assert run.came_to("start") == []
    assert run.hosts("unreachable") == ["h06"]
    assert len(run.hosts("untouched")) == 5


@pytest.mark.parametrize("step", ["preflight", "checkpoint", "unit"])
def test_a_host_that_cannot_be_prepared_ends_it_before_anything_is_stopped(stage: Stage, step: str) -> None:
    run = stage.deploy({"h06": {"fails_in": step}})
    assert run.rc == 2
    assert run.came_to("start") == []
    assert run.hosts("not prepared") == ["h06"]
    assert f"h06  not prepared  The {step} failed. This run stopped nothing there." in run.output
    # What hinders one host is known before the others do work that takes hours.
    assert (run.came_to("build") == []) is (step == "preflight")
    assert stage.locked() == []


def test_as_many_hosts_may_fail_as_the_operator_accepts_over_the_whole_fleet(stage: Stage) -> None:
    failing = {"h01": {"fails_in": "preflight"}, "h03": {"fails_in": "verify"}, "h04": {"lost_in": "start"}}
    run = stage.deploy(failing, sglang_serial=[1, 2, "100%"], sglang_failures_allowed=2)
    assert run.rc != 0
    # The canary is a host that is prepared.
    assert run.came_to("start")[0] == "h02"
    assert run.hosts("not prepared") == ["h01"]
    assert run.hosts("went back") == ["h03"]
    assert run.hosts("lost") == ["h04"]
    assert run.hosts("new") == ["h02"]
    assert run.hosts("untouched") == ["h05", "h06"]


def test_a_host_that_runs_what_is_wanted_is_unchanged(stage: Stage) -> None:
    run = stage.deploy({host: {"already": True} for host in HOSTS})
    assert run.rc == 0
    assert run.hosts("unchanged") == HOSTS
    assert "h02  unchanged  Serves, and was not restarted: qwen3.5-397b-a17b at 192.0.2.2:30000." in run.output


def test_a_host_that_runs_what_is_wanted_and_answers_wrongly_has_not_gone_back(stage: Stage) -> None:
    run = stage.deploy({"h01": {"already": True, "fails_in": "verify"}}, sglang_serial=SERIAL)
    assert run.rc == 2
    assert run.states == {"h01": "broken", **dict.fromkeys(HOSTS[1:], "untouched")}
    assert run.came_to("rollback") == []


def test_what_a_run_that_died_has_started_is_gone_back_from_if_it_answers_wrongly(stage: Stage) -> None:
    run = stage.deploy({"h01": {"already": True, "begun": True, "fails_in": "verify"}}, sglang_serial=SERIAL)
    assert run.rc == 2
    assert run.states == {"h01": "went back", **dict.fromkeys(HOSTS[1:], "untouched")}
    assert run.came_to("rollback") == ["h01"]


def test_hosts_are_named_in_every_way_that_ansible_takes(stage: Stage) -> None:
    stage.extra["sglang_hosts"] = "h01,h03"
    run = stage.deploy()
    assert run.rc == 0 and run.hosts("new") == ["h01", "h03"] == list(run.states), run.output


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fails_in", "Old releases could not be removed: The prune failed."),
        ("lost_in", "It could not be reached at the end, and is locked still: the next run takes that over."),
    ],
)
def test_old_releases_that_stay_are_said_of_a_host_that_serves(stage: Stage, how: str, said: str) -> None:
    run = stage.deploy({"h02": {how: "prune"}}, sglang_serial=["100%"])
    assert run.rc != 0 and run.hosts("new") == HOSTS, run.output
    assert said in run.output
    assert stage.locked() == ([] if how == "fails_in" else ["h02"])


def test_check_mode_claims_nothing_that_was_not_done(stage: Stage) -> None:
    run = stage.deploy({"h02": {"already": True}}, check=True)
    assert run.rc == 0
    assert run.states == {**dict.fromkeys(HOSTS, "to change"), "h02": "unchanged"}
    assert "Would serve" in run.output and "it was not asked" in run.output


def test_bad_batch_sizes_are_refused_before_any_host_is_touched(stage: Stage) -> None:
    run = stage.deploy({host: {"sglang_serial": [1, "ten"]} for host in HOSTS})
    assert run.rc == 2
    assert "sglang_serial has to be batch sizes" in run.output
    assert run.came_to("preflight") == []


OTHER = {
    "schema": 1,
    "run": "0123456789ab",
    "owner": "bob@ops2",
    "reason": "deploys sglang-kimi",
    "controller": "another",
    "pid": 1,
    "process_start": "1@boot",
    "taken_at": 0,
    "expires_at": 4102444800,
}


def test_the_second_of_two_operators_is_told_who_and_touches_nothing(stage: Stage) -> None:
    lock = stage.folder / "state" / "h04" / "lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps(OTHER))
    run = stage.deploy()
    assert run.rc == 2
    assert "bob@ops2 works on this host since" in run.output and "sglang_lock_broken=0123456789ab" in run.output
    assert run.came_to("build") == [] and run.hosts("not prepared") == ["h04"]
    assert stage.locked() == ["h04"] and json.loads(lock.read_text()) == OTHER
    # As the refusal says:
    again = stage.deploy(sglang_lock_broken=OTHER["run"])
    assert again.rc == 0, again.output
    assert "h04: took over the lock of bob@ops2 (deploys sglang-kimi): its run has died." in again.output
    assert stage.locked() == []


def test_a_lock_that_is_taken_over_in_the_middle_ends_it_before_that_host_is_touched(stage: Stage) -> None:
    run = stage.deploy({"h02": {"stolen": OTHER}}, sglang_serial=SERIAL)
    assert run.rc == 2
    assert run.hosts("new") == ["h01", "h03", "h04"] and run.hosts("untouched") == REST
    assert run.hosts("not prepared") == ["h02"] and "h02" not in run.came_to("start")
    assert stage.locked() == ["h02"]


def test_the_lock_of_somebody_else_is_not_called_ours_at_an_early_end(stage: Stage) -> None:
    found: dict[str, dict[str, Any]] = {"h01": {"stolen": OTHER}, "h02": {"lost_in": "start"}}
    run = stage.deploy(found, sglang_serial=[1], sglang_failures_allowed=1)
    assert run.rc != 0 and run.hosts("lost") == ["h02"], run.output
    assert "Locked by this run still: h02, h03, h04, h05, h06." in run.output


def test_a_variable_that_is_nearly_one_of_ours_is_refused_before_any_host_is_touched(stage: Stage) -> None:
    run = stage.deploy({host: {"sglang_argumentz": {}, "sglang_batch_peers": "stay"} for host in HOSTS})
    assert run.rc == 2
    assert (
        "sglang_argumentz is no variable of this collection, and nothing reads it: sglang_arguments is meant?"
        in run.output
    )
    assert "sglang_batch_peers has to be keep" in run.output
    assert run.came_to("preflight") == []
