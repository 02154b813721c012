# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module service_start: what it starts, what it leaves alone, and that it does not wait."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import hung, unit
from ansible_collections.llmfleet.sglang.plugins.modules import service_start

STOPPED = "LoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nMainPID=0\n"
RUNS = STOPPED.replace("inactive", "active").replace("dead", "running").replace("disabled", "enabled")
GONE = "LoadState=not-found\nActiveState=inactive\n"
START = [["daemon-reload"], ["reset-failed", "sglang-qwen.service"], ["start", "--no-block", "sglang-qwen.service"]]
ENABLE = ["enable", "sglang-qwen.service"]
Call = Callable[..., dict[str, Any]]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A systemd of two units that takes every order but `refuses`, and does nothing."""
    found = SimpleNamespace(units={"sglang-qwen": STOPPED, "sglang-kimi": STOPPED}, orders=[], refuses="")

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        if command[1] == "show":
            return SimpleNamespace(stdout=found.units.get(command[-1].removesuffix(".service"), GONE))
        found.orders.append(command[1:])
        if command[1] == found.refuses:
            raise subprocess.CalledProcessError(1, command, stderr="Unit is masked.\n")
        return SimpleNamespace(stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    return found


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(check: bool = False, **changes: Any) -> dict[str, Any]:
        given = {"name": "sglang-qwen", "others": ["sglang-kimi"], "enabled": True, "_ansible_check_mode": check}
        with patch_module_args({**given, **changes}), pytest.raises(SystemExit):
            service_start.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def test_what_was_stopped_is_started_without_waiting_and_comes_back_after_a_reboot(
    host: SimpleNamespace, call: Call
) -> None:
    answer = call()
    assert host.orders == [*START, ENABLE]
    assert (answer["changed"], answer["started"], answer["reason"]) == (True, True, "the unit is inactive")


def test_what_runs_is_left_alone(host: SimpleNamespace, call: Call) -> None:
    host.units["sglang-qwen"] = RUNS
    answer = call()
    assert (answer["changed"], answer["started"], host.orders) == (False, False, [])


def test_check_mode_says_it_and_does_nothing(host: SimpleNamespace, call: Call) -> None:
    answer = call(check=True)
    assert (answer["changed"], answer["started"], host.orders) == (True, False, [])


@pytest.mark.parametrize(
    ("unit", "text", "says"),
    [
        ("sglang-qwen", GONE, "There is no sglang-qwen.service on this host, and nothing was started. Deploy it"),
        ("sglang-kimi", RUNS, "sglang-kimi serves on this host, and nothing was started. Stop it"),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_what_must_not_be_started(
    host: SimpleNamespace, call: Call, unit: str, text: str, says: str, check: bool
) -> None:
    host.units[unit] = text
    answer = call(check)
    assert answer["failed"] and answer["msg"].startswith(says)
    assert (answer["started"], host.orders) == (False, [])


def test_a_start_that_systemd_refuses_says_that_it_was_tried(host: SimpleNamespace, call: Call) -> None:
    host.refuses = "start"
    answer = call()
    assert answer["failed"] and answer["started"]
    assert answer["msg"] == (
        "sglang-qwen.service does not start: Unit is masked. See: journalctl -u sglang-qwen.service"
    )


def test_with_a_state_nobody_asks_for_others_and_enables_nothing(host: SimpleNamespace, call: Call) -> None:
    host.units["sglang-kimi"] = RUNS
    assert call(state="x", enabled=False)["started"]
    assert host.orders == START


def test_what_has_failed_and_waits_is_started_now_and_not_when_its_time_has_come(
    host: SimpleNamespace, call: Call
) -> None:
    host.units["sglang-qwen"] = RUNS.replace("ActiveState=active", "ActiveState=activating").replace(
        "SubState=running", "SubState=auto-restart"
    )
    assert call()["reason"] == "the unit is activating (auto-restart)"
    assert host.orders[-1] == ["restart", "--no-block", "sglang-qwen.service"]


def test_what_runs_as_wanted_and_has_stopped_answering_is_restarted(
    host: SimpleNamespace, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "why_restart", lambda *_: "")
    monkeypatch.setattr(hung, "why_hung", lambda _unit, url: f"no answer: {url}")
    host.units["sglang-qwen"] = RUNS
    assert call(state="a")["changed"] is False
    answer = call(state="a", health="http://h/health")
    assert (answer["changed"], answer["reason"]) == (True, "no answer: http://h/health")
    assert host.orders[-1] == ["restart", "--no-block", "sglang-qwen.service"]
