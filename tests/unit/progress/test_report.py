# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that a long task writes while it works, and the seconds that are kept for the next time."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import (
    Durations,
    Progress,
    counting,
    telling,
)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_phase_says_how_far_it_is_and_since_when(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "progress.json"
    progress = Progress(str(path), clock=clock)
    progress.phase("installing packages", total=176, unit="packages")
    clock.now += 2
    progress.at(83)
    assert json.loads(path.read_text()) == {
        "phase": "installing packages",
        "done": 83,
        "total": 176,
        "unit": "packages",
        "started_at": 1000.0,
        "last_seconds": None,
    }
    progress.close(ended=True)
    assert list(tmp_path.iterdir()) == []


def test_it_is_written_once_a_second_at_most(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "progress.json"
    progress = Progress(str(path), clock=clock)
    progress.phase("copying", total=9)
    clock.now += 0.5
    progress.at(1)
    progress.detail("a line")
    assert json.loads(path.read_text())["done"] == 0
    clock.now += 0.5
    progress.at(2)
    assert json.loads(path.read_text())["done"] == 2


def test_everybody_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Progress(str(tmp_path / "p")).phase("working")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o644


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "p"
    victim.write_text("mine")
    path.symlink_to(victim)
    Progress(str(path)).phase("working")
    assert victim.read_text() == "mine"
    assert not path.is_symlink()


@pytest.mark.parametrize("place", [None, "missing/progress.json"])
def test_work_goes_on_where_nothing_can_be_told(tmp_path: Path, place: str | None) -> None:
    durations = tmp_path / "missing" / "durations.json"
    with telling(str(tmp_path / place) if place else None, durations) as progress:
        progress.phase("working")
        progress.at(3)
        progress.detail("still")
    assert list(tmp_path.iterdir()) == []


def test_the_seconds_of_each_phase_are_known_the_next_time(tmp_path: Path) -> None:
    clock, kept, path = Clock(), tmp_path / "durations.json", tmp_path / "p"
    first = Progress(str(path), kept, clock)
    first.phase("fetching")
    clock.now += 60
    first.phase("installing")
    clock.now += 5
    first.close(ended=True)
    second = Progress(str(path), kept, clock)
    second.phase("fetching")
    assert json.loads(path.read_text())["last_seconds"] == 60.0
    clock.now += 7
    second.phase("installing")
    assert json.loads(path.read_text())["last_seconds"] == 5.0
    clock.now += 900
    second.close(ended=False)  # it failed: neither of its phases says how long the work takes
    third = Progress(str(path), kept, clock)
    third.phase("fetching")
    assert json.loads(path.read_text())["last_seconds"] == 60.0


def test_a_phase_with_nothing_to_do_says_nothing_of_the_next_time(tmp_path: Path) -> None:
    kept = tmp_path / "durations.json"
    for seconds in (60.0, 0.3):
        durations = Durations(kept)
        durations.ended("waiting for the engine", seconds)
        durations.keep()
    assert Durations(kept).last("waiting for the engine") == 60.0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"seconds": 3}', '{"seconds": {"a": "b"}}', "\x00"])
def test_a_file_of_seconds_that_is_broken_is_an_empty_one(tmp_path: Path, content: str) -> None:
    kept = tmp_path / "durations.json"
    kept.write_text(content)
    durations = Durations(kept)
    assert durations.last("installing") is None
    durations.ended("installing", 4.0)
    durations.keep()
    assert Durations(kept).last("installing") == 4.0


def test_it_counts_while_a_block_runs(tmp_path: Path) -> None:
    progress = Progress(str(tmp_path / "p"))
    progress.phase("counting", total=9)
    counted = threading.Event()
    seen: list[int] = []

    def count() -> int:
        seen.append(len(seen))
        if len(seen) == 1:
            raise FileNotFoundError("a folder that went away")
        counted.set()
        return len(seen)

    with counting(progress, count, every=0.01):
        assert counted.wait(10)
    after = len(seen)
    assert not any(thread.name == "llmfleet-counting" for thread in threading.enumerate())
    assert len(seen) == after


def test_a_detail_that_came_too_soon_is_told_when_it_is_said_again(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "progress.json"
    progress = Progress(str(path), clock=clock)
    progress.phase("proving that it is gone")
    progress.detail("GPU 0 is held")
    assert "detail" not in json.loads(path.read_text())
    clock.now += 2
    progress.detail("GPU 0 is held")
    assert json.loads(path.read_text())["detail"] == "GPU 0 is held"
