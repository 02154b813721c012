# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The times of a cut-over, as the modules note them on a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import kept, lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.lock import Lock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "qwen").mkdir()
    return tmp_path / "qwen" / times.NAME


def hold(path: Path, run: str, since: float = 100.0) -> None:
    mine = Lock(run=run, owner="ops", reason="deploys", controller="c", pid=1, process_start="1")
    lock.take(path.parent.parent / "lock.json", mine, 3600, since, broken=lock_of(path))


def lock_of(path: Path) -> str:
    found = lock.read(path.parent.parent / "lock.json")
    return found.run if found else ""


def steps(path: Path) -> list[str]:
    return [one["step"] for one in times.read(path)["steps"]]


def cut_over(path: Path, *steps: str) -> None:
    for at, step in enumerate(steps):
        times.note(path, step, 200.0 + at)


def test_a_step_is_kept_with_the_run_and_its_beginning(path: Path) -> None:
    hold(path, "a" * 12)
    times.note(path, times.STOP, 200.123, service="sglang-kimi", ended=204.5)
    assert json.loads(path.read_text()) == {
        "schema": 1,
        "run": "a" * 12,
        "first_run": "a" * 12,
        "prepare": 100.0,
        "steps": [{"step": "stop", "at": 200.12, "service": "sglang-kimi", "ended": 204.5}],
    }
    assert path.stat().st_mode & 0o777 == 0o644


def test_the_next_run_begins_anew_once_the_last_one_has_ended(path: Path) -> None:
    hold(path, "a" * 12)
    cut_over(path, times.BEGIN, times.STOP, times.START, times.READY, times.ANSWERS, times.VERDICT)
    assert not times.under_way(times.read(path))
    hold(path, "b" * 12, 300.0)
    cut_over(path, times.BEGIN)
    assert steps(path) == ["begin"]
    assert (times.read(path)["first_run"], times.read(path)["prepare"]) == ("b" * 12, 300.0)


def test_a_run_goes_on_with_what_another_left_unfinished(path: Path) -> None:
    hold(path, "a" * 12)
    cut_over(path, times.BEGIN, times.STOP)
    hold(path, "b" * 12, 300.0)
    cut_over(path, times.BEGIN, times.START)
    found = times.read(path)
    assert steps(path) == ["begin", "stop", "begin", "start"]
    assert (found["first_run"], found["run"], found["prepare"]) == ("a" * 12, "b" * 12, 300.0)


def test_going_back_in_the_same_run_goes_on(path: Path) -> None:
    hold(path, "a" * 12)
    cut_over(path, times.BEGIN, times.STOP, times.START, times.READY, times.ANSWERS, times.VERDICT)
    cut_over(path, times.STOP, times.BACK, times.READY, times.ANSWERS)
    assert len(steps(path)) == 10
    assert not times.under_way(times.read(path))


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ([], False),
        ([times.BEGIN], True),
        ([times.BEGIN, times.START, times.READY, times.ANSWERS], True),
        ([times.STOP, times.BACK, times.READY, times.ANSWERS], False),
        ([times.START, times.FAILED, times.STOP, times.BACK, times.FAILED], True),
    ],
)
def test_what_is_under_way(noted: list[str], expected: bool) -> None:
    assert times.under_way({"steps": [{"step": one} for one in noted]}) is expected


def test_a_service_that_is_asked_at_rest_writes_nothing(path: Path) -> None:
    times.note_answers(path, 1.0, 2.0, problem=False)
    assert not path.exists()
    cut_over(path, times.START)
    times.note_answers(path, 300.0, 302.0, problem=False)
    assert steps(path) == ["start", "ready", "answers"]
    cut_over(path, times.VERDICT)
    before = path.read_bytes()
    times.note_answers(path, 400.0, 402.0, problem=False)
    assert path.read_bytes() == before


def test_no_answer_and_a_wrong_one_are_failures(path: Path) -> None:
    cut_over(path, times.START)
    times.note_answers(path, None, 302.0, problem=True)
    assert steps(path) == ["start", "failed"]


def test_what_an_earlier_run_stopped_and_nobody_has_asked_since(path: Path) -> None:
    assert times.unanswered_since(path) is None  # nothing is kept
    hold(path, "a" * 12)
    times.note(path, times.BEGIN, 200.0)
    times.note(path, times.STOP, 201.0, ended=204.0)
    times.note(path, times.START, 205.0)
    assert times.unanswered_since(path) is None  # this run asks what it starts at once
    hold(path, "b" * 12, 300.0)
    assert times.unanswered_since(path) == 204.0
    times.note(path, times.BEGIN, 3600.0)
    assert times.unanswered_since(path) == 204.0
    times.note_answers(path, None, 3700.0, problem=True)
    assert times.unanswered_since(path) == 3700.0  # what answers wrongly does not serve
    times.note_answers(path, 3800.0, 3801.0, problem=False, since=3750.126)
    assert times.read(path)["steps"][-2:] == [
        {"step": "ready", "at": 3800.0, "since": 3750.13},
        {"step": "answers", "at": 3801.0},
    ]
    assert times.unanswered_since(path) is None
    cut_over(path, times.VERDICT, times.STOP)
    hold(path, "c" * 12, 300.0)
    assert times.unanswered_since(path) is not None
    times.note(path, times.VERDICT, 5000.0)
    assert times.unanswered_since(path) is None  # it came to its end


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"schema": 2, "steps": []}', '{"schema": 1}'])
def test_a_file_that_cannot_be_read_is_no_reason_to_fail(path: Path, text: str) -> None:
    path.write_text(text)
    (path.parent.parent / "lock.json").write_text("torn")
    times.note(path, times.BEGIN, 1.0)
    assert steps(path) == ["begin"]


def test_nor_is_one_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> bool:
        raise OSError("no space left on device")

    monkeypatch.setattr(File, "write", full)
    times.note(tmp_path / "qwen" / times.NAME, times.BEGIN, 1.0)
    times.note(None, times.BEGIN, 1.0)


def test_the_file_does_not_grow_without_end(path: Path) -> None:
    kept.write(
        path,
        {
            "schema": 1,
            "run": "",
            "first_run": "",
            "prepare": None,
            "steps": [{"step": "start", "at": 1.0}] * times.MOST_STEPS,
        },
    )
    times.note(path, times.FAILED, 2.0)
    assert len(steps(path)) == times.MOST_STEPS and steps(path)[-1] == "failed"
