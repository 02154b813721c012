# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run is told, whatever ended it; and who is lost before it is back in the load balancer is no success."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Stage

FEW = HOSTS[:3]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, FEW)


def test_a_canary_that_is_lost_is_told_though_ansible_ends_the_playbook(stage: Stage) -> None:
    # Ansible by itself: a batch of which every host is lost ends the whole playbook, and no play tells its end.
    run = stage.deploy({"h01": {"lost_in": "verify"}}, sglang_serial=[1])
    assert run.rc == 4
    assert run.states == {"h01": "lost", "h02": "untouched", "h03": "untouched"}, run.output
    assert "Locked by this run still: h01, h02, h03." in run.output
    assert "See that h01 can be reached again, then run the same command again" in run.output
    assert stage.locked() == FEW
    # As it says:
    again = stage.deploy(sglang_serial=[1])
    assert again.rc == 0 and again.hosts("new") == FEW
    assert "its run has died" in again.output and "The run was cut short" not in again.output
    assert stage.locked() == []


def test_a_canary_that_is_lost_before_it_is_undrained_serves_and_gets_no_requests(stage: Stage) -> None:
    run = stage.deploy({"h01": {"lost_in": "undrain"}}, sglang_serial=[1], **stage.hooks)
    assert run.rc == 4
    assert run.states == {"h01": "drained", "h02": "untouched", "h03": "untouched"}, run.output
    assert "h01  drained    It serves, and is out of the load balancer." in run.output
    assert stage.drained() == ["h01"]


def test_one_host_that_is_lost_is_told_by_the_path_of_a_playbook_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path, HOSTS[:1])
    run = stage.play(str(stage.books / "deploy_qwen.yml"), {"h01": {"lost_in": "build"}})
    assert run.rc == 4
    assert run.states == {"h01": "unreachable"}, run.output


@pytest.mark.parametrize("hosts", [HOSTS[:1], FEW])
def test_who_is_lost_while_it_is_measured_was_not(tmp_path: Path, hosts: list[str]) -> None:
    stage = Stage(tmp_path, hosts)
    run = stage.play(str(stage.books / "benchmark.yml"), {"h01": {"lost_in": "measure"}})
    assert run.rc == 4
    if len(hosts) == 1:  # Ansible ends the playbook
        assert run.states == {"h01": "not measured"} and "nothing was recorded" in run.output, run.output
        assert "Locked by this run still: h01." in run.output
    else:
        assert "The run was cut short" not in run.output, run.output
        assert "h01: it was lost, or failed (see above), and this run recorded nothing there." in run.output
        assert "h02: nothing was measured yet." in run.output and stage.locked() == ["h01"]


def test_nothing_is_told_twice_nor_of_a_run_that_touched_no_host(stage: Stage) -> None:
    refused = stage.deploy(sglang_serial=["ten"])
    assert refused.rc == 2 and refused.states == {} and "The run was cut short" not in refused.output
    whole = stage.deploy({"h01": {"fails_in": "verify"}}, sglang_serial=[1])
    assert whole.rc == 2 and "The run was cut short" not in whole.output


def test_ctrl_c_is_told(stage: Stage) -> None:
    run = stage.end_after("EVENT start h01", signal.SIGINT, sglang_serial=[1], **stage.hooks)
    assert run.rc != 0
    assert run.states == {"h01": "interrupted", "h02": "untouched", "h03": "untouched"}, run.output
    assert "It is out of the load balancer still" in run.output
    assert "Locked by this run still: h01, h02, h03." in run.output
    assert run.output.count("The run was cut short before its summary") == 1  # its workers tell nothing


@pytest.mark.parametrize("verb", ["undrain", "drain"])
def test_a_load_balancer_that_is_lost_is_a_failure_and_no_further_batch_starts(stage: Stage, verb: str) -> None:
    # Ansible by itself: what cannot be reached is the host, whoever was asked, and no rescue sees it.
    hooks: dict[str, Any] = {**stage.hooks, f"sglang_{verb}_tasks": stage.dead_hook(verb, "h01")}
    run = stage.deploy(sglang_serial=[2, 1], **hooks)
    assert run.rc != 0
    assert run.states == {"h01": "drained" if verb == "undrain" else "untouched", "h02": "new", "h03": "untouched"}
    assert "h03" not in run.came_to("start")
    said = "It serves, and is out of the load balancer." if verb == "undrain" else "this run stopped nothing there"
    assert said in " ".join(run.output.split())
    assert stage.drained() == ["h01"]


AWAY: dict[str, Any] = {"sglang_haproxy": [{"host": "lb1"}]}


def test_a_load_balancer_that_is_away_is_told_before_anything_is_prepared(stage: Stage) -> None:
    stage.dead = "lb1"
    run = stage.deploy(sglang_drain_tasks="haproxy", sglang_undrain_tasks="haproxy", **AWAY)
    assert run.rc == 2
    assert run.hosts("not prepared") == FEW and run.came_to("build") == []
    assert "The load balancer cannot be reached from here: lb1: " in " ".join(run.output.split())
    assert stage.drained() == [] and stage.locked() == []


def test_where_a_load_balancer_is_away_when_a_host_is_put_back_the_host_is_not_lost(stage: Stage) -> None:
    stage.dead = "lb1"
    run = stage.deploy(sglang_serial=[1, 2], **{**stage.hooks, "sglang_undrain_tasks": "haproxy"}, **AWAY)
    assert run.rc == 2
    assert run.states == {"h01": "drained", "h02": "untouched", "h03": "untouched"}, run.output
    assert "could not be undrained: The load balancer cannot be reached" in run.output
    assert stage.drained() == ["h01"] and stage.locked() == []


def test_where_a_load_balancer_is_away_nothing_is_stopped(tmp_path: Path) -> None:
    stage = Stage(tmp_path, HOSTS[:1])
    stage.dead = "lb1"
    stage.runs("sglang-qwen")
    run = stage.play("stop", **{**stage.hooks, "sglang_drain_tasks": "haproxy"}, **AWAY)
    assert run.rc == 2
    assert "h01  untouched  The host could not be drained: The load balancer" in run.output
    assert run.came_to("stop") == []
    assert stage.locked() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- name: x\n  ansible.builtin.debug: {msg: 'a'\n- foo: [\n", "bad.yml:3: "),
        ("- name: x\n  ansible.builtin.debugg:\n    msg: a\n", "bad.yml:1: "),
        ("hosts: all\n", "it is no list of tasks"),
    ],
)
def test_a_hook_that_does_not_parse_is_refused_before_any_host_is_touched(stage: Stage, text: str, words: str) -> None:
    path = stage.folder / "bad.yml"
    path.write_text(text)
    run = stage.deploy(**{**stage.hooks, "sglang_undrain_tasks": str(path)})
    assert run.rc == 2
    said = "".join(run.output.split())
    assert "".join(words.split()) in said and "whichcannotberun:" in said
    assert run.came_to("preflight") == [] and stage.locked() == []


def test_a_file_that_cannot_be_read_when_it_is_run_is_told(stage: Stage) -> None:
    path = stage.folder / "worse.yml"
    path.write_text("- ansible.builtin.include_tasks: bad.yml\n")
    (stage.folder / "bad.yml").write_text("- foo: [\n")
    run = stage.deploy(sglang_serial=[1], **{**stage.hooks, "sglang_undrain_tasks": str(path)})
    assert run.rc != 0
    assert run.states == {"h01": "drained", "h02": "untouched", "h03": "untouched"}, run.output
