# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module that has everything on the host which a cut-over takes, on the host of host.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.modules import service_prepare

from tests.unit.cutover.case import Case
from tests.unit.cutover.host import FOREIGN, ours

UNIT = ours("qwen", "0123abc").decode()


class Analyze:
    """Stands in for systemd-analyze, as subprocess.run calls it."""

    def __init__(self, status: int = 0, errors: str = "") -> None:
        self.status, self.errors = status, errors
        self.asked: list[str] = []

    def __call__(self, command: list[str], **_how: Any) -> subprocess.CompletedProcess[str]:
        assert command[:2] == ["systemd-analyze", "verify"]
        self.asked.append(command[2])
        return subprocess.CompletedProcess(command, self.status, "", self.errors)


@pytest.fixture
def analyze(monkeypatch: pytest.MonkeyPatch) -> Analyze:
    """A systemd that takes every unit."""
    fake = Analyze()
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def prepare(case: Case, check: bool = False, **more: Any) -> dict[str, Any]:
    """Run the module as the role does."""
    given = {
        "name": "sglang-qwen",
        "unit": UNIT,
        "dest": str(dest(case)),
        "credential": str(dest(case).with_name("sglang.yaml")),
        "files": {str(case.folder / "ready.py"): "probe\n"},
        "disable": ["sglang-kimi"],
        **more,
    }
    return case.run(service_prepare, {**given, "_ansible_check_mode": check, "_ansible_diff": True})


def dest(case: Case) -> Path:
    """Where the unit is prepared."""
    return case.folder / "next" / "sglang-qwen.service"


def test_all_is_written_once_and_the_state_is_the_units(case: Case, analyze: Analyze) -> None:
    answer = prepare(case)
    assert (answer["changed"], answer["state"]) == (True, "0123abc")
    assert dest(case).read_text() == UNIT
    assert (case.folder / "ready.py").read_text() == "probe\n"
    assert {path.stat().st_mode & 0o777 for path in (dest(case), case.folder / "ready.py")} == {0o644}
    assert dest(case).parent.stat().st_mode & 0o777 == 0o755
    assert analyze.asked == [str(dest(case))]
    assert [one["after_header"] for one in answer["diff"]] == [str(case.folder / "ready.py"), str(dest(case))]
    again = prepare(case)
    assert (again["changed"], again["written"], again["diff"]) == (False, [], [])
    assert len(analyze.asked) == 2  # what it runs may be another than it was


def test_a_check_run_says_the_same_and_writes_nothing(case: Case, analyze: Analyze) -> None:
    before = case.files()
    said = prepare(case, check=True, api_key="quite-secret")
    assert case.files() == before and not dest(case).parent.exists() and analyze.asked == []
    done = prepare(case, api_key="quite-secret")
    assert {**said, "invocation": None} == {**done, "invocation": None}
    assert "quite-secret" not in str((said, done))
    assert prepare(case, check=True, api_key="quite-secret")["changed"] is False


def test_a_key_is_for_its_owner_alone_and_goes_when_there_is_none(case: Case, analyze: Analyze) -> None:
    key = dest(case).with_name("sglang.yaml")
    prepare(case, api_key="quite-secret")
    assert (key.read_text(), key.stat().st_mode & 0o777) == ('{"api-key": "quite-secret"}\n', 0o600)
    key.chmod(0o644)
    assert prepare(case, api_key="quite-secret")["written"] == [str(key)]
    assert key.stat().st_mode & 0o777 == 0o600
    assert prepare(case)["written"] == [str(key)]
    assert not key.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file is given away by root alone")
def test_what_somebody_else_may_write_is_written_anew(case: Case, analyze: Analyze) -> None:
    prepare(case)
    os.chown(case.folder / "ready.py", 65534, 65534)
    os.chown(dest(case).parent, 65534, 65534)
    assert prepare(case)["written"] == [str(dest(case).parent), str(case.folder / "ready.py")]
    assert {path.stat().st_uid for path in (dest(case).parent, case.folder / "ready.py")} == {0}
    assert prepare(case)["changed"] is False


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        (0, "/x/sglang-qwen.service:3: Unknown key 'Restrt' in section [Service], ignoring."),
        (1, "sglang-qwen.service: Command /opt/python is not executable"),
    ],
)
def test_what_systemd_does_not_take_fails_with_what_it_says(
    case: Case, analyze: Analyze, status: int, errors: str
) -> None:
    analyze.status, analyze.errors = status, errors
    answer = prepare(case)
    assert answer["failed"] is True
    assert answer["msg"] == f"systemd does not take the unit {dest(case)}: {errors}"


def test_what_systemd_says_of_other_units_is_no_failure(case: Case, analyze: Analyze) -> None:
    analyze.errors = "/x/sglang-kimi.service:3: Unknown key 'Foo' in section [Service], ignoring."
    assert "failed" not in prepare(case)


def test_a_foreign_unit_is_refused_before_anything_is_written(case: Case, analyze: Analyze) -> None:
    case.host.put("sglang-qwen", FOREIGN)
    answer = prepare(case)
    assert "was not made by this collection, so it is left alone" in answer["msg"]
    assert not dest(case).exists() and analyze.asked == []
    assert "failed" not in prepare(case, adopt=True)


def test_a_systemd_that_cannot_be_asked_is_said(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_words: Any, **_how: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory", "systemd-analyze")

    monkeypatch.setattr(subprocess, "run", gone)
    assert "sglang-qwen.service cannot be prepared: `systemd-analyze verify` gave no answer" in prepare(case)["msg"]
