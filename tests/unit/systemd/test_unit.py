# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and whether it has to be restarted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import (
    Unit,
    environment_value,
    parse_show,
    why_not_start,
    why_restart,
    why_start,
)

WANTED = "a" * 64
SHOWN = """LoadState=loaded
ActiveState=active
SubState=running
Result=success
MainPID=4711
UnitFileState=enabled
FragmentPath=/etc/systemd/system/sglang-qwen.service
NRestarts=2
"""
RUNNING = parse_show(SHOWN, WANTED)
WAITS: dict[str, Any] = {"active": "activating", "sub": "auto-restart"}


def test_what_systemctl_shows_is_read() -> None:
    expected = Unit(
        load="loaded",
        active="active",
        sub="running",
        result="success",
        main_pid=4711,
        file_state="enabled",
        fragment="/etc/systemd/system/sglang-qwen.service",
        restarts=2,
        running_state=WANTED,
    )
    assert expected == RUNNING
    assert RUNNING.exists


@pytest.mark.parametrize(
    "text", ["", "LoadState=not-found\nActiveState=inactive\nMainPID=0\nNRestarts=[not set]\nUnitFileState=\n"]
)
def test_a_unit_that_is_not_there(text: str) -> None:
    unit = parse_show(text)
    assert not unit.exists
    assert (unit.main_pid, unit.restarts, unit.running_state) == (0, 0, None)
    assert why_restart(unit, WANTED) == "the unit is not there yet"


@pytest.mark.parametrize(
    ("environ", "value"),
    [
        (b"PATH=/bin\0LLMFLEET_STATE=abc\0HOME=/\0", "abc"),
        (b"LLMFLEET_STATE=\0", ""),
        (b"LLMFLEET_STATE=a=b\0", "a=b"),
        (b"XLLMFLEET_STATE=abc\0LLMFLEET_STATES=abc\0", None),
        (b"A=LLMFLEET_STATE=abc\0", None),
        (b"", None),
    ],
)
def test_a_variable_is_found_in_the_bytes_of_an_environment(environ: bytes, value: str | None) -> None:
    assert environment_value(environ, "LLMFLEET_STATE") == value


@pytest.mark.parametrize("active", ["active", "activating", "reloading"])
def test_hands_off_what_runs_as_wanted(active: str) -> None:
    assert why_restart(replace(RUNNING, active=active), WANTED) == ""


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        (replace(RUNNING, active="inactive"), "the unit is inactive"),
        (replace(RUNNING, active="failed"), "the unit is failed"),
        (replace(RUNNING, active="deactivating"), "the unit is deactivating"),
        (replace(RUNNING, active=""), "the unit is unknown"),
        (replace(RUNNING, **WAITS), "the unit is activating (auto-restart)"),
        (replace(RUNNING, running_state="b" * 64), "it runs state bbbbbbbbbbbb, and aaaaaaaaaaaa is wanted"),
        (replace(RUNNING, running_state=None), "none of ours"),
    ],
)
def test_why_a_unit_has_to_be_restarted(unit: Unit, says: str) -> None:
    assert says in why_restart(unit, WANTED)


def test_a_service_that_was_never_deployed_is_not_started() -> None:
    says = why_not_start("sglang-glm", parse_show("LoadState=not-found"), {"sglang-kimi": RUNNING})
    assert "There is no sglang-glm.service on this host, and nothing was started" in says
    assert "llmfleet.sglang.deploy." in says


@pytest.mark.parametrize("active", ["active", "activating", "reloading"])
def test_another_service_is_left_where_it_is(active: str) -> None:
    others = {"sglang-kimi": replace(RUNNING, active=active), "sglang-qwen": RUNNING, "sglang-old": parse_show("")}
    says = why_not_start("sglang-qwen", RUNNING, others)
    assert says.startswith("sglang-kimi serves on this host, and nothing was started.")
    # Going back to what never answered there would be refused.
    assert "llmfleet.sglang.stop " in says and "llmfleet.sglang.deploy." in says and "rollback" not in says


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_another_service_that_does_not_run_is_no_hindrance(state: str) -> None:
    assert why_not_start("sglang-qwen", RUNNING, {"sglang-kimi": replace(RUNNING, active=state)}) == ""


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, ""),
        ({"running_state": None}, ""),
        ({"active": "activating", "sub": "start-post"}, ""),
        ({"active": "inactive"}, "the unit is inactive"),
        ({"active": "failed"}, "the unit is failed"),
        (WAITS, "the unit is activating (auto-restart)"),
    ],
)
def test_why_a_unit_has_to_be_started_as_it_is(state: dict[str, Any], says: str) -> None:
    assert why_start(replace(RUNNING, **state)) == says
