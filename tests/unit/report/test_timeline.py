# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From noted times to stretches, and to how long nothing served."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import timeline
from ansible_collections.llmfleet.sglang.tests.unit.report import fleet


def kinds(line: timeline.Timeline) -> list[tuple[str, float]]:
    return [(one.kind, one.seconds) for one in line.segments]


def test_a_cut_over_that_answers() -> None:
    line = timeline.read(fleet.times(0))
    assert kinds(line) == [("drain", 6.0), ("stop", 8.5), ("start", 55.0), ("prove", 7.0), ("record", 2.0)]
    assert (line.down_seconds, line.down_since, line.resumed) == (65.0, None, False)


def test_one_that_goes_back_is_down_until_the_old_service_answers() -> None:
    line = timeline.read(fleet.times(0, "went back"))
    assert line.down_seconds == 144.0
    assert [one.kind for one in line.segments if one.failed] == ["start"]
    assert ("back", 58.5) in kinds(line)


def test_one_that_is_broken_is_down_still() -> None:
    line = timeline.read(fleet.times(0, "broken"))
    assert line.down_seconds is None and line.down_since == fleet.START + 6


def test_going_back_later_counts_both_times() -> None:
    kept = fleet.times(0)
    later = [("stop", 100.0), ("back", 104.0), ("ready", 130.0), ("answers", 131.0)]
    kept["steps"] += [{"step": step, "at": fleet.START + at} for step, at in later]
    assert timeline.read(kept).down_seconds == 65.0 + 30.0


def test_what_an_earlier_run_left_unfinished_counts_as_down_and_is_not_drawn() -> None:
    kept = fleet.times(3600)
    died = [("begin", -10.0), ("stop", 0.0)]
    kept["steps"] = [{"step": step, "at": fleet.START + at} for step, at in died] + kept["steps"]
    kept["first_run"] = "b" * 12
    line = timeline.read(kept)
    assert line.resumed and line.down_seconds == 3600 + 71
    assert line.begun == fleet.START + 3600 and line.segments[0].kind == "drain"


def resumed(*steps: tuple[str, float, dict[str, Any]]) -> dict[str, Any]:
    """Times of a run that died after its start, and of these steps an hour and more later."""
    died: list[tuple[str, float, dict[str, Any]]] = [("begin", 0.0, {}), ("stop", 6.0, {}), ("start", 16.0, {})]
    kept = fleet.times(0)
    kept["steps"] = [{"step": step, "at": fleet.START + at, **more} for step, at, more in (*died, *steps)]
    return {**kept, "first_run": "b" * 12}


def test_what_came_up_by_itself_serves_from_when_on_it_was_ready_and_not_from_when_somebody_asked() -> None:
    since = {"since": fleet.START + 71.0}
    line = timeline.read(resumed(("begin", 3600.0, {}), ("ready", 3601.0, since), ("answers", 3607.0, {})))
    assert (line.down_seconds, line.down_since) == (65.0, None)
    # What is drawn is what this run did.
    assert kinds(line) == [("drain", 1.0), ("prove", 6.0)]
    ahead = timeline.read(resumed(("begin", 3600.0, {}), ("ready", 3601.0, since)), 3600.0)
    assert ahead.down_seconds == 65.0
    told = timeline.read(resumed(("begin", 3600.0, {}), ("ready", 3601.0, {}), ("answers", 3607.0, {})))
    assert told.down_seconds == 3595.0


def test_what_came_up_by_itself_and_is_stopped_again_was_down_twice() -> None:
    stop = {"since": fleet.START + 71.0, "ended": fleet.START + 3610.0}
    steps: list[tuple[str, float, dict[str, Any]]] = [
        *(("begin", 3600.0, {}), ("stop", 3602.0, stop)),
        *(("start", 3611.0, {}), ("ready", 3660.0, {})),
    ]
    line = timeline.read(resumed(*steps))
    assert line.down_seconds == 65.0 + 58.0
    still = timeline.read(resumed(*steps[:-1]))
    assert (still.down_seconds, still.down_since) == (None, fleet.START + 3602.0)


def test_where_nothing_had_served_nothing_was_down() -> None:
    kept = fleet.times(0)
    kept["steps"] = [one for one in kept["steps"] if one["step"] != "stop"]
    line = timeline.read(kept)
    assert line.down == () and line.down_seconds is None and line.down_since is None


def test_a_first_service_that_fails_and_is_stopped_was_never_up() -> None:
    kept = fleet.times(0, "went back")
    del kept["steps"][1]
    assert timeline.read(kept).down == ()


def test_a_clock_that_is_an_hour_ahead_is_put_right_and_a_slow_call_is_not() -> None:
    assert timeline.read(fleet.times(0), 3600.0).begun == fleet.START - 3600
    assert timeline.read(fleet.times(0), 3600.0).down_seconds == 65.0
    assert timeline.read(fleet.times(0), 12.0).begun == fleet.START


def test_preparation_ends_at_the_gate_and_the_rest_is_waiting() -> None:
    line = timeline.read(fleet.times(300))
    before = timeline.with_prepare(line, fleet.START)[:2]
    assert [(one.kind, one.seconds) for one in before] == [("prepare", 1500.0), ("wait", 300.0)]
    assert timeline.with_prepare(timeline.read({"steps": []}), None) == ()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (4.25, "4.2 s"),
        (9.0, "9 s"),
        (42.4, "42 s"),
        (119, "119 s"),
        (120, "2 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert timeline.duration(seconds) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Nothing served for 65 s."),
        ({"mine": False}, ""),
        ({"times": {}}, ""),
        (
            {"times": {**fleet.times(0), "first_run": "b" * 12}},
            "Nothing served for 65 s, counted from an earlier run on.",
        ),
        ({"times": fleet.times(0, "broken"), "now": fleet.START + 246}, "Nothing serves for 4 min now."),
    ],
)
def test_what_the_recap_says(changes: dict[str, Any], words: str) -> None:
    noted = {"mine": True, "now": fleet.START + 500, "times": fleet.times(0), **changes}
    assert timeline.down_words(noted) == words
