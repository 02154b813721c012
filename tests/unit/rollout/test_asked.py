# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rollback.yml, stop.yml and start.yml over three hosts: locked, in batches, drained and told of as by deploy.yml."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Service, Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitFiles
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Rollout, Stage
from ansible_collections.llmfleet.sglang.tests.unit.rollout.test_playbook import OTHER

FEW = HOSTS[:3]
NEW, OLD = "sglang-qwen", "sglang-kimi"
SERIAL = [1, "100%"]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Three hosts on which the new service runs, and which know what served before."""
    made = Stage(tmp_path, FEW)
    made.runs(NEW)
    for host in FEW:
        before(made, host)
    return made


def before(stage: Stage, host: str) -> None:
    """Let a host know that the old service served before the new one."""
    services = (
        Service(UnitFiles(OLD, File(b"[Service]\n")), enabled=True, active=True),
        Service(UnitFiles(NEW), enabled=False, active=False),
    )
    path = stage.folder / "state" / host / "qwen" / "snapshot.json"
    path.parent.mkdir(parents=True)
    snapshot.save(path, Snapshot("qwen", "serving", "2026-11-30T10:00:00+00:00", services))


def order(run: Rollout, host: str) -> list[str]:
    """The steps that a host came to, in order."""
    steps = ("drain", "rollback", "stop", "verify", "undrain")
    return [step for step, name in re.findall(r"EVENT (\w+) (h\d\d)", run.output) if name == host and step in steps]


def taken(stage: Stage, host: str) -> Path:
    """Let somebody else work on a host; the lock's file."""
    lock = stage.folder / "state" / host / "lock.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(json.dumps(OTHER))
    return lock


def test_each_host_goes_back_in_its_batch_and_is_out_of_the_load_balancer_meanwhile(stage: Stage) -> None:
    run = stage.play("rollback", sglang_serial=SERIAL, **stage.hooks)
    assert run.rc == 0, run.output
    assert all(order(run, host) == ["drain", "rollback", "undrain"] for host in FEW)
    assert run.output.index("EVENT undrain h01") < run.output.index("EVENT drain h02")
    assert run.hosts("went back") == FEW
    assert stage.drained() == [] and stage.locked() == []


def test_a_host_that_serves_that_already_is_neither_drained_nor_said_to_have_changed(stage: Stage) -> None:
    stage.runs()
    for host in FEW:  # nothing had served before, and nothing does
        services = (Service(UnitFiles(NEW), enabled=True, active=False),)
        path = stage.folder / "state" / host / "qwen" / "snapshot.json"
        snapshot.save(path, Snapshot("qwen", "restored", "2026-11-30T10:00:00+00:00", services))
    run = stage.play("rollback", **stage.hooks)
    assert run.rc == 0, run.output
    assert run.hosts("unchanged") == FEW and run.came_to("drain") == []


def test_a_canary_that_cannot_go_back_ends_it_and_stays_out_of_the_load_balancer(stage: Stage) -> None:
    run = stage.play("rollback", {"h01": {"stuck": True}}, sglang_serial=SERIAL, **stage.hooks)
    assert run.rc == 2
    assert run.states == {"h01": "broken", "h02": "untouched", "h03": "untouched"}
    assert run.came_to("rollback") == ["h01"] and stage.drained() == ["h01"]
    assert stage.locked() == []


def test_a_name_that_one_host_does_not_know_is_refused_before_any_host_goes_back(stage: Stage) -> None:
    (stage.folder / "state" / "h03" / "qwen" / "snapshot.json").unlink()
    run = stage.play("rollback", sglang_serial=SERIAL, **stage.hooks)
    assert run.rc == 2
    assert run.came_to("rollback") == [] and run.hosts("not prepared") == ["h03"]
    assert "nothing was kept of what this host served before qwen" in run.output
    assert stage.locked() == []


@pytest.mark.parametrize("book", ["rollback", "stop", "start", "uninstall"])
def test_where_somebody_else_works_nothing_is_touched_on_any_host(stage: Stage, book: str) -> None:
    lock = taken(stage, "h02")
    run = stage.play(book, **stage.hooks)
    assert run.rc == 2
    assert "bob@ops2 works on this host since" in run.output
    assert run.states == {"h01": "untouched", "h02": "not prepared", "h03": "untouched"}
    assert [run.came_to(step) for step in ("drain", "rollback", "stop", "verify", "uninstall")] == [[]] * 5
    assert json.loads(lock.read_text()) == OTHER and stage.locked() == ["h02"]


def test_what_is_removed_is_told_with_what_is_left_to_do(stage: Stage) -> None:
    left = "sglang-kimi.service stays stopped. To have it serve again: systemctl enable --now sglang-kimi"
    hosts: dict[str, dict[str, Any]] = {
        "h01": {"left_to_do": [left]},
        "h02": {"fails_in": "uninstall"},
        "h03": {"already": True},
    }
    run = stage.play("uninstall", hosts)
    assert run.rc == 2
    assert run.states == {"h01": "removed", "h02": "not removed", "h03": "unchanged"}
    assert left in run.output and "There is no sglang-qwen of ours." in run.output
    assert "h02: not removed: The uninstall failed." in run.output
    assert stage.locked() == []


def test_what_is_stopped_is_out_of_the_load_balancer_until_it_is_started(stage: Stage) -> None:
    run = stage.play("stop", **stage.hooks)
    assert run.rc == 0, run.output
    assert all(order(run, host) == ["drain", "stop"] for host in FEW)
    assert run.hosts("stopped") == FEW and "It is out of the load balancer still" in run.output
    assert stage.drained() == FEW and stage.locked() == []
    stage.runs()
    run = stage.play("start", **stage.hooks)
    assert run.rc == 0, run.output
    assert all(order(run, host) == ["verify", "undrain"] for host in FEW)
    assert "started" in run.states.values() and set(run.states.values()) <= {"started", "unchanged"}
    assert stage.drained() == [] and stage.locked() == []


def test_what_does_not_run_is_not_drained_for_a_stop(stage: Stage) -> None:
    stage.runs()
    run = stage.play("stop", {host: {"already": True} for host in FEW}, **stage.hooks)
    assert run.rc == 0, run.output
    assert run.hosts("unchanged") == FEW and run.came_to("drain") == []


def test_what_cannot_be_drained_is_not_stopped(stage: Stage) -> None:
    run = stage.play("stop", {"h02": {"fails_in": "drain"}}, **stage.hooks)
    assert run.rc == 2
    assert order(run, "h02") == ["drain", "undrain"] and run.states["h02"] == "untouched"
    assert "The host could not be drained: The drain failed." in run.output


def test_a_start_that_another_service_is_in_the_way_of_leaves_it_there(stage: Stage) -> None:
    stage.runs(OLD)
    run = stage.play("start", sglang_replaces=[OLD, NEW])
    assert run.rc == 2
    assert set(run.states.values()) == {"untouched"} and f"{OLD} serves on this host" in run.output
    assert {(stage.bin(host) / "active").read_text() for host in FEW} == {f"{OLD}\n"}


def test_a_start_that_does_not_answer_is_said_and_stays_out_of_the_load_balancer(stage: Stage) -> None:
    stage.runs()
    run = stage.play("start", {"h01": {"fails_in": "verify"}})
    assert run.rc == 2
    assert run.states["h01"] == "not started" and "The verify failed." in run.output
    assert stage.locked() == []


@pytest.mark.parametrize("book", ["rollback", "stop", "start", "uninstall"])
def test_a_check_run_changes_nothing(stage: Stage, book: str) -> None:
    if book == "start":
        stage.runs()
    run = stage.play(book, check=True, **stage.hooks)
    assert run.rc == 0, run.output
    assert set(run.states.values()) == {"to change"}
    assert stage.drained() == [] and stage.locked() == []
