# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a switch says that it does, and what becomes of an API key that was taken out of the inventory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import Report
from ansible_collections.llmfleet.sglang.plugins.modules import service_stop

from tests.unit.cutover.case import RELEASE, SERVICES, Case
from tests.unit.cutover.host import ours

KEY = '{"api-key": "quite-secret"}'


def keyed(case: Case, state: str) -> bytes:
    """The bytes of a unit of ours that asks for a key."""
    place = case.folder / "sglang.yaml"
    return ours("qwen", state).replace(b"[Service]", f"[Service]\nLoadCredential=sglang.yaml:{place}".encode())


def prepare(case: Case, unit: bytes, key: str = "") -> Path:
    """What the role's first half leaves on the host; returns the prepared unit."""
    prepared = case.folder / "next" / "sglang-qwen.service"
    prepared.parent.mkdir(exist_ok=True)
    prepared.write_bytes(unit)
    staged = prepared.with_name("sglang.yaml")
    if key:
        staged.write_text(key)
        staged.chmod(0o600)
    else:
        staged.unlink(missing_ok=True)
    return prepared


def cut_over(case: Case, unit: bytes, key: str = "", serves: bool = True, **record: str) -> None:
    """A cut-over, and its end if it answers."""
    place = case.folder / "sglang.yaml"
    prepared = prepare(case, unit, key)
    case.snapshot("taken", services=SERVICES, others=[str(place)])
    assert "failed" not in case.switch(prepared, place, keyless=not key, disable=["sglang-kimi"])
    case.host.serves("sglang-qwen")
    if serves:
        case.conclude(False, **record)


def go_back(case: Case, to: str = "") -> None:
    """The way back, as the role goes it."""
    assert case.aim(to=to)["needed"] is True
    case.snapshot("switched_back")
    case.host.systemd.active.clear()
    case.snapshot("restored", prepared=str(case.folder / "next" / "sglang-qwen.service"))


def keys(case: Case) -> list[str]:
    """The files of the host record that hold the key, by their path in it."""
    found = [path for path in case.folder.rglob("*") if path.is_file() and b"quite-secret" in path.read_bytes()]
    return sorted(str(path.relative_to(case.folder)) for path in found)


def kept(case: Case) -> str:
    """The key that the snapshot holds."""
    found = snapshot.load(case.folder / "snapshot.json")
    assert found is not None
    return "".join(file.content.decode() for _path, file in found.others if file)


def test_a_key_that_is_asked_for_no_more_is_gone_and_only_the_snapshot_has_it(case: Case) -> None:
    cut_over(case, keyed(case, "1"), KEY)
    assert keys(case) == ["next/sglang.yaml", "sglang.yaml"]
    cut_over(case, ours("qwen", "2"))
    assert keys(case) == []  # in base64 in the snapshot
    assert kept(case) == KEY
    assert (case.folder / "snapshot.json").stat().st_mode & 0o777 == 0o600
    cut_over(case, ours("qwen", "3"))
    assert kept(case) == ""


def test_a_key_comes_back_with_a_cut_over_that_failed(case: Case) -> None:
    cut_over(case, keyed(case, "1"), KEY)
    cut_over(case, ours("qwen", "2"), serves=False)
    go_back(case)
    assert keys(case) == ["next/sglang.yaml", "sglang.yaml"]
    assert case.host.unit("sglang-qwen") == keyed(case, "1")


@pytest.mark.parametrize("to", ["", RELEASE + "@1"])
def test_a_key_comes_back_on_demand_with_the_unit_that_needs_it_and_goes_again(case: Case, to: str) -> None:
    cut_over(case, keyed(case, "1"), KEY, state="1")
    cut_over(case, ours("qwen", "2"), state="2")
    go_back(case, to)
    assert keys(case) == ["next/sglang.yaml", "sglang.yaml"]
    assert (case.folder / "sglang.yaml").stat().st_mode & 0o777 == 0o600
    cut_over(case, ours("qwen", "2"), state="2")
    assert keys(case) == []


def test_a_key_that_is_nowhere_any_more_is_asked_for_before_anything_is_stopped(case: Case) -> None:
    cut_over(case, keyed(case, "1"), KEY, state="1")
    cut_over(case, ours("qwen", "2"), state="2")
    cut_over(case, ours("qwen", "3"), state="3")
    before = case.files()
    answer = case.aim(to=RELEASE + "@1")
    assert answer["failed"] is True and "nothing was stopped" in answer["msg"]
    wanted = f"sglang-qwen would need its API key {case.folder / 'sglang.yaml'}, which is not there any more"
    assert wanted in answer["msg"] and "set sglang_api_key" in answer["msg"]
    assert case.files() == before


def test_a_key_of_a_unit_that_is_gone_back_to_stays_in_its_own_folder(case: Case) -> None:
    """Kimi's key is no business of the folder in which Qwen's is prepared."""
    other = case.host.state / "kimi" / "sglang.yaml"
    unit = ours("kimi", "1").replace(b"[Service]", f"[Service]\nLoadCredential=sglang.yaml:{other}".encode())
    case.host.put("sglang-kimi", unit)
    other.parent.mkdir()
    other.write_text(KEY)
    case.snapshot("taken", services=SERVICES, others=[str(other)])
    cut_over(case, ours("qwen", "2"))
    other.unlink()
    go_back(case)
    assert other.read_text() == KEY
    assert not (case.folder / "next" / "sglang.yaml").exists()


def test_a_check_run_and_a_real_one_say_alike_what_becomes_of_each_service_and_of_the_key(case: Case) -> None:
    cut_over(case, keyed(case, "1"), KEY)
    case.host.serves("sglang-kimi")
    prepared = prepare(case, ours("qwen", "2"))
    others = ["sglang-kimi", "sglang-glm"]
    foreseen, done, again = (
        case.switch(prepared, case.folder / "sglang.yaml", check, keyless=True, disable=others)
        for check in (True, False, False)
    )
    assert foreseen == done
    unit, boot, key = done["diff"]
    assert (unit["before"].encode(), unit["after"].encode()) == (keyed(case, "1"), ours("qwen", "2"))
    assert boot["before"].splitlines() == [
        "sglang-qwen.service: not enabled",
        "sglang-kimi.service: enabled",
        "sglang-glm.service: not enabled",
    ]
    assert boot["after"].splitlines() == [
        "sglang-qwen.service: enabled",
        "sglang-kimi.service: not enabled",
        "sglang-glm.service: not enabled",
    ]
    assert (key["before"], key["after"]) == ("(an API key)\n", "")
    assert "quite-secret" not in json.dumps(done)
    assert again["changed"] is False
    assert [one["before"] for one in again["diff"]] == [one["after"] for one in again["diff"]]


@pytest.mark.parametrize("old", ["", KEY.replace("quite", "less")])
def test_a_new_key_is_said_and_not_shown(case: Case, old: str) -> None:
    cut_over(case, keyed(case, "1") if old else ours("qwen", "1"), old)
    prepared = prepare(case, keyed(case, "2"), KEY)
    answer = case.switch(prepared, case.folder / "sglang.yaml", check=True)
    said = ("(an API key)\n", "(another API key)\n") if old else ("", "(an API key)\n")
    assert (answer["diff"][2]["before"], answer["diff"][2]["after"]) == said
    assert "secret" not in json.dumps(answer)


def test_a_key_goes_when_the_unit_that_needed_it_has(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut in between finds a unit that starts."""
    cut_over(case, keyed(case, "1"), KEY)
    seen = []
    systemctl = case.host.systemd.__call__

    def look(*words: str, **more: Any) -> str:
        seen.append(keys(case))
        return systemctl(*words, **more)

    monkeypatch.setattr("ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units.systemctl", look)
    prepared = prepare(case, ours("qwen", "2"))
    case.switch(prepared, case.folder / "sglang.yaml", keyless=True)
    assert keys(case) == []
    assert ("daemon-reload",) in case.host.systemd.told
    assert seen == [["sglang.yaml"]] * len(seen)


def stopped(case: Case, monkeypatch: pytest.MonkeyPatch, report: Report, **given: Any) -> list[str]:
    """The diff of service_stop, its two sides."""
    monkeypatch.setattr(service_stop, "stop", lambda *_: report)
    with patch_module_args({"name": "sglang-kimi", **given}), pytest.raises(SystemExit):
        service_stop.main()
    diff = json.loads(case.capsys.readouterr().out)["diff"]
    return [diff["before"], diff["after"]]


UNIT = {"name": "sglang-kimi.service", "active": "active", "file_state": "enabled"}


@pytest.mark.parametrize("real", [True, False])
def test_a_stop_speaks_of_reboots_only_where_it_disables(
    case: Case, monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    """In a cut-over the switch disables, before the stop: a check run would say that it stays enabled."""
    after = {"unit": {**UNIT, "active": "inactive"}} if real else {}
    report = Report(before={"unit": UNIT}, after=after, stopped=True)
    name = "sglang-kimi.service"
    assert stopped(case, monkeypatch, report) == [f"{name}: active\n", f"{name}: inactive\n"]
    report.disabled = True
    assert stopped(case, monkeypatch, report, disable=True) == [
        f"{name}: active, enabled\n",
        f"{name}: inactive, disabled\n",
    ]


def test_a_stop_that_did_not_end_is_not_said_to_have(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    after = {"unit": {**UNIT, "active": "deactivating"}}
    report = Report(before={"unit": UNIT}, after={**after, "processes": []}, stopped=True, held=["pid 1"])
    assert stopped(case, monkeypatch, report)[1] == "sglang-kimi.service: deactivating\n"


def test_a_failure_that_is_reset_is_said(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(before={"unit": {**UNIT, "active": "failed"}}, reset=True)
    assert stopped(case, monkeypatch, report) == ["sglang-kimi.service: failed\n", "sglang-kimi.service: inactive\n"]
