# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and whether it has to be restarted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import (
    Unit,
    environment_value,
    parse_show,
    why_restart,
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
        (replace(RUNNING, running_state="b" * 64), "it runs state bbbbbbbbbbbb, and aaaaaaaaaaaa is wanted"),
        (replace(RUNNING, running_state=None), "none of ours"),
    ],
)
def test_why_a_unit_has_to_be_restarted(unit: Unit, says: str) -> None:
    assert says in why_restart(unit, WANTED)
