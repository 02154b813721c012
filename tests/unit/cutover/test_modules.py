# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that touch units: one cut-over that answers, one that fails, and the way back."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd

from tests.unit.cutover.case import RECORD, RELEASE, SERVICES, Case
from tests.unit.cutover.host import FOREIGN, ours


def test_what_answers_is_recorded_once(deployed: Case) -> None:
    record = deployed.folder / "record.json"
    assert json.loads(record.read_text()) == RECORD
    assert record.stat().st_mode & 0o777 == 0o644
    assert (deployed.folder / "answered" / f"{RELEASE}.json").exists()
    before = deployed.files()
    assert deployed.conclude()["changed"] is False
    assert deployed.files() == before


def test_a_check_run_says_what_the_record_would_become_and_writes_nothing(deployed: Case) -> None:
    before = deployed.files()
    answer = deployed.conclude(check=True, served_model_name="other")
    assert answer["changed"] is True
    assert '"served_model_name": "other"' in answer["diff"]["after"]
    assert '"served_model_name": "qwen-model"' in answer["diff"]["before"]
    assert deployed.conclude(check=True)["changed"] is False
    assert deployed.files() == before


def test_after_a_cut_over_that_failed_the_next_run_finds_nothing_to_do(deployed: Case) -> None:
    """Back to the unit that serves: the prepared one is that again, and the record and the phase stay."""
    prepared, rejected = deployed.folder / "next" / "sglang-qwen.service", deployed.folder / "rejected" / "x.service"
    prepared.parent.mkdir()
    prepared.write_bytes(ours("qwen", "2"))
    deployed.snapshot("taken", services=SERVICES)
    deployed.start("2")
    assert deployed.aim()["stop"] == ["sglang-qwen"]
    deployed.snapshot("switched_back")
    deployed.host.systemd.active.clear()
    answer = deployed.snapshot("restored", prepared=str(prepared), rejected=str(rejected))
    assert (answer["served"], answer["phase"], answer["rejected"]) == (["sglang-qwen"], "restored", str(rejected))
    assert deployed.host.unit("sglang-qwen") == prepared.read_bytes() == ours("qwen", "1")
    assert rejected.read_bytes() == ours("qwen", "2")
    before = deployed.files()
    assert deployed.conclude()["changed"] is False
    assert deployed.files() == before


def test_the_record_says_again_what_came_back(deployed: Case) -> None:
    newer = "0.5.24-ccccccccc-3333333333333333"
    deployed.host.build(newer)
    deployed.snapshot("taken", services=SERVICES)
    deployed.start("2")
    deployed.conclude(release=newer)
    assert deployed.aim(to=RELEASE)["verify"] == {"model": "qwen-model", "prompts": []}
    deployed.snapshot("switched_back")
    deployed.host.systemd.active.clear()
    assert deployed.snapshot("restored")["changed"] is True
    assert json.loads((deployed.folder / "record.json").read_text())["release"] == RELEASE


def test_going_back_twice_changes_nothing_the_second_time(deployed: Case) -> None:
    assert deployed.aim(check=True)["changed"] is True
    first = deployed.aim()
    assert (first["changed"], first["needed"], first["served"]) == (True, True, ["sglang-kimi"])
    deployed.snapshot("switched_back")
    deployed.host.systemd.active.clear()
    deployed.snapshot("restored")
    assert deployed.host.unit("sglang-kimi") == FOREIGN
    second = deployed.aim()
    assert (second["changed"], second["needed"], second["stop"]) == (False, False, [])


def test_a_name_that_is_not_known_fails_with_the_list(deployed: Case) -> None:
    answer = deployed.aim(to="sglang-nothing")
    assert answer["failed"] is True
    assert "nothing was stopped: there is nothing named 'sglang-nothing' to go back to" in answer["msg"]
    assert RELEASE in answer["msg"]


def test_the_state_of_the_host_is_told_also_when_nothing_can_be_read(deployed: Case) -> None:
    lines = deployed.snapshot("examined")["condition"]
    assert lines[0] == "sglang-kimi.service: inactive; it served before; its unit is as it was."
    (deployed.folder / "snapshot.json").write_text("{")
    (line,) = deployed.snapshot("examined")["condition"]
    assert line.startswith("The state of the host cannot be told: the snapshot")


def test_going_back_without_a_snapshot_is_refused(case: Case) -> None:
    assert "there is no snapshot" in case.snapshot("restored")["msg"]
    assert case.snapshot("restored", check=True)["changed"] is True
    assert "nothing was kept of what this host served before qwen" in case.aim()["msg"]
    assert case.snapshot("concluded")["changed"] is False


def test_a_record_needs_to_know_where_the_releases_are(case: Case) -> None:
    assert case.snapshot("concluded", record=RECORD)["failed"] is True


def test_a_new_key_goes_with_the_cut_over_that_failed_and_stays_when_one_goes_back_on_demand(deployed: Case) -> None:
    key, prepared = deployed.folder / "sglang.yaml", deployed.folder / "next" / "sglang-qwen.service"
    key.write_text("old")
    others: dict[str, Any] = {"services": SERVICES, "others": [str(key)]}
    prepared.parent.mkdir()
    for serves, kept in ((False, "old"), (True, "new")):
        prepared.write_bytes(ours("qwen", "2"))
        prepared.with_name(key.name).write_text("new")
        deployed.snapshot("taken", **others)
        key.write_text("new")
        deployed.start("2")
        if serves:
            deployed.conclude()
        deployed.aim()
        deployed.snapshot("switched_back")
        deployed.host.systemd.active.clear()
        deployed.snapshot("restored", prepared=str(prepared))
        assert key.read_text() == prepared.with_name(key.name).read_text() == kept
        deployed.conclude()


def test_a_first_key_is_gone_after_a_cut_over_that_failed(deployed: Case) -> None:
    key = deployed.folder / "sglang.yaml"
    deployed.snapshot("taken", services=SERVICES, others=[str(key)])
    key.write_text("first")
    deployed.snapshot("switched_back")
    deployed.snapshot("restored")
    assert not key.exists()


def test_a_changed_key_is_put_in_force_with_the_unit_and_said_by_a_check_run(deployed: Case) -> None:
    prepared, key = deployed.folder / "next" / "sglang-qwen.service", deployed.folder / "sglang.yaml"
    prepared.parent.mkdir()
    prepared.write_bytes(ours("qwen", "1"))
    prepared.with_name(key.name).write_text("new")
    for check, changed in ((True, True), (False, True), (False, False)):
        assert deployed.switch(prepared, key, check)["changed"] is changed
        assert key.exists() is not check
    assert key.read_text() == "new"


def test_a_cut_over_that_failed_before_it_stopped_anything_leaves_what_serves_running(deployed: Case) -> None:
    deployed.snapshot("taken", services=SERVICES)
    deployed.host.put("sglang-qwen", ours("qwen", "2"))  # and then the disk was full, say
    deployed.host.systemd.runs["sglang-qwen"] = "1"
    answer = deployed.aim()
    assert (answer["stop"], answer["untouched"]) == (["sglang-qwen"], ["sglang-qwen"])
    deployed.host.systemd.runs["sglang-qwen"] = "2"
    assert deployed.aim()["untouched"] == []


def test_a_foreign_service_that_still_runs_is_untouched_and_one_that_was_replaced_is_not(case: Case) -> None:
    case.snapshot("taken", services=SERVICES)
    assert case.aim()["untouched"] == ["sglang-kimi"]
    case.start("1")
    assert case.aim()["untouched"] == []


def test_ours_is_enabled_and_the_others_are_disabled_at_once(deployed: Case) -> None:
    prepared = deployed.folder / "next" / "sglang-qwen.service"
    prepared.parent.mkdir()
    prepared.write_bytes(ours("qwen", "2"))
    deployed.host.systemd.enabled = {"sglang-kimi"}
    for check, enabled in ((True, {"sglang-kimi"}), (False, {"sglang-qwen"})):
        answer = deployed.switch(prepared, check=check, disable=["sglang-kimi"])
        assert (answer["changed"], answer["enabled"], answer["disabled"]) == (True, True, ["sglang-kimi"])
        assert deployed.host.systemd.enabled == enabled
    assert deployed.switch(prepared, disable=["sglang-kimi"])["changed"] is False


def test_a_service_that_cannot_be_disabled_is_refused_before_anything_is_touched(deployed: Case) -> None:
    link = deployed.host.elsewhere / "default.target.wants" / "sglang-kimi.service"
    link.parent.mkdir(parents=True)
    link.symlink_to("../sglang-kimi.service")
    before = deployed.host.unit("sglang-qwen")
    answer = deployed.switch(deployed.folder / "next.service", check=True, disable=["sglang-kimi"])
    assert answer["failed"] is True
    assert f"sglang-kimi.service would start after every reboot beside sglang-qwen.service, for {link}" in answer["msg"]
    assert deployed.host.unit("sglang-qwen") == before


def test_a_foreign_unit_is_refused_wherever_it_lies(case: Case) -> None:
    place = case.host.elsewhere / "sglang-qwen.service"
    place.parent.mkdir()
    place.write_bytes(FOREIGN)
    answer = case.switch(case.folder / "next.service", check=True)
    assert answer["msg"].startswith(f"{place} was not made by this collection, so it is left alone.")
    assert case.switch(case.folder / "next.service", check=True, adopt=True)["changed"] is True


@pytest.mark.parametrize("check", [False, True])
def test_a_snapshot_of_a_cut_over_that_died_is_taken_anew_once_something_else_serves(case: Case, check: bool) -> None:
    case.snapshot("taken", services=SERVICES)
    assert case.snapshot("taken", check, services=SERVICES)["changed"] is False
    case.host.put("sglang-kimi", FOREIGN + b"# tuned\n")
    assert case.snapshot("taken", check, services=SERVICES)["changed"] is True
    assert case.snapshot("taken", services=SERVICES)["changed"] is check


def test_a_foreign_unit_that_was_enabled_by_its_path_comes_back_from_the_uninstallation(case: Case) -> None:
    prepared = case.folder / "next.service"
    place, file = case.host.units / "sglang-qwen.service", case.folder.parent / "by-hand.service"
    file.write_bytes(FOREIGN)
    place.symlink_to(file)
    case.host.systemd.want("sglang-qwen", leads=str(file))
    prepared.write_bytes(ours("qwen", "1"))
    case.snapshot("taken", services=SERVICES)
    case.switch(prepared, adopt=True)
    assert not place.is_symlink()
    case.host.systemd.active.clear()
    assert case.uninstall()["given_back"] is True
    assert place.readlink() == file
    assert "sglang-qwen" in case.host.systemd.enabled


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (subprocess.TimeoutExpired(["systemctl", "show"], 60), "gave no answer in 60 s"),
        (
            subprocess.CalledProcessError(1, ["systemctl"], "", "Failed to connect to bus\n"),
            "failed: Failed to connect",
        ),
        (FileNotFoundError(2, "No such file or directory", "systemctl"), "gave no answer: [Errno 2] No such file"),
    ],
)
def test_a_systemd_that_does_not_answer_is_named_by_every_module(
    deployed: Case, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    def read(_name: str) -> systemd.Unit:
        raise error

    monkeypatch.setattr(systemd, "read", read)
    before = deployed.files()
    answers = [deployed.aim(), deployed.snapshot("taken", services=SERVICES), deployed.uninstall()]
    for answer in answers:
        assert answer["failed"] is True
        assert ".service` " + says in answer["msg"] and "`systemctl show sglang-" in answer["msg"]
    assert deployed.files() == before


def test_what_waits_to_be_started_again_is_started_now_when_one_goes_back_to_it(deployed: Case) -> None:
    deployed.host.serves("sglang-kimi")
    deployed.aim()
    deployed.snapshot("restored")
    assert deployed.aim()["needed"] is False
    deployed.host.systemd.waiting.add("sglang-kimi")
    assert deployed.aim()["needed"] is True
    assert deployed.snapshot("restored")["changed"] is True
    assert deployed.host.systemd.waiting == set() and "sglang-kimi" in deployed.host.systemd.active
