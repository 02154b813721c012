# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is printed of a long task, and when."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _progress
from ansible_collections.llmfleet.sglang.plugins.plugin_utils._progress import (
    Watcher,
    describe,
    parse,
    pause_after,
)

INSTALLING = {"phase": "installing packages", "done": 83, "total": 176, "unit": "packages", "started_at": 1000.0}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (INSTALLING, "installing packages: 83 of 176, 12 s"),
        ({**INSTALLING, "last_seconds": 65.2}, "installing packages: 83 of 176, 12 s (last time 65 s)"),
        ({**INSTALLING, "total": 0}, "installing packages: 83 packages, 12 s"),
        ({**INSTALLING, "total": 0, "done": 0}, "installing packages: 12 s"),
        ({**INSTALLING, "started_at": 2000.0}, "installing packages: 83 of 176, 0 s"),
        ({**INSTALLING, "detail": "x" * 300}, f"installing packages: 83 of 176, 12 s: {'x' * 100}"),
        ({"phase": "waiting", "detail": "\x1b[2Jloading\r\n"}, "waiting: [2Jloading"),
        (
            {
                "phase": "download",
                "bytes_done": 1_500_000_000,
                "bytes_total": 223_000_000_000,
                "bytes_per_second": 110_000_000,
                "seconds_left": 2013,
                "seconds": 14.0,
                "last_seconds": None,
            },
            "download: 1.5 GB of 223.0 GB, 110.0 MB/s, 34 min left, 14 s",
        ),
    ],
)
def test_what_a_file_says_in_words(content: dict[str, Any], line: str) -> None:
    assert describe(content, 1012.0) == line


@pytest.mark.parametrize(
    "content", [{}, {"phase": ""}, {"phase": "a", "done": "many"}, {"phase": "a", "started_at": ""}]
)
def test_a_file_that_says_nothing_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError, TypeError)):
        describe(content, 0.0)


def test_the_host_says_what_time_it_is_after_the_file() -> None:
    assert parse('{"phase": "a"}\n1012\n') == ({"phase": "a"}, 1012.0)
    for answer in ("", "1012\n", "[]\n1012\n", '{"phase": "a"}\n'):
        with pytest.raises(ValueError):
            parse(answer)


def test_lines_become_rarer_so_that_hours_do_not_fill_a_log() -> None:
    elapsed, lines = _progress.SILENCE, 1
    while elapsed < 3 * 3600:
        elapsed += pause_after(elapsed)
        lines += 1
    assert pause_after(10) == 5
    assert lines < 250


class Told:
    """Where lines go, and how many are awaited."""

    def __init__(self, wanted: int = 1) -> None:
        self.lines: list[str] = []
        self._wanted, self.enough = wanted, threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) >= self._wanted:
            self.enough.set()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that waits for milliseconds, not for seconds."""
    monkeypatch.setattr(_progress, "SILENCE", 0.01)
    monkeypatch.setattr(_progress, "pause_after", lambda elapsed: 0.01)


@pytest.mark.usefixtures("quick")
def test_a_watcher_prints_until_it_is_stopped() -> None:
    told = Told(2)
    with Watcher(lambda: json.dumps(INSTALLING) + "\n1012\n", told, "node1", "Install"):
        assert told.enough.wait(10)
    printed = len(told.lines)
    assert told.lines[0] == "  [node1] installing packages: 83 of 176, 12 s"
    assert not any(thread.name == "llmfleet-progress" for thread in threading.enumerate())
    assert len(told.lines) == printed


@pytest.mark.usefixtures("quick")
def test_where_the_host_tells_nothing_the_time_is_said() -> None:
    def read() -> str:
        raise OSError("no route to host")

    told = Told()
    with Watcher(read, told, "node1", "Install uv"):
        assert told.enough.wait(10)
    assert told.lines[0] == "  [node1] Install uv: 0 s"


@pytest.mark.usefixtures("quick")
def test_a_display_that_fails_and_a_read_that_hangs_disturb_nobody() -> None:
    asked, released = threading.Event(), threading.Event()

    def hang() -> str:
        asked.set()
        released.wait(30)
        return ""

    told = Told()
    with Watcher(hang, told, "node1", "Install"):
        assert asked.wait(10)
    released.set()
    assert told.lines == []

    def fail(line: str) -> None:
        asked.set()
        raise RuntimeError(line)

    asked.clear()
    with Watcher(lambda: "", fail, "node1", "Install"):
        assert asked.wait(10)


def test_a_short_task_prints_nothing() -> None:
    told = Told()
    with Watcher(lambda: json.dumps(INSTALLING) + "\n1012\n", told, "node1", "Install"):
        pass
    assert told.lines == []
