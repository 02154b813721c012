# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far all hosts of a task are together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.plugin_utils._together import Board, together


def host(done: int, total: int, rate: int = 0, left: int | None = None) -> dict[str, Any]:
    """What a host's progress file holds."""
    return {"bytes_done": done, "bytes_total": total, "bytes_per_second": rate, "seconds_left": left}


def test_the_sum_of_the_bytes_and_the_time_of_the_slowest() -> None:
    line = together([host(10**9, 2 * 10**9, 10**6, 1000), host(2 * 10**9, 2 * 10**9, 10**6, 30)])
    assert line == "[2 hosts together] 3.0 GB of 4.0 GB, 2.0 MB/s, 17 min left"


def test_one_host_needs_no_sum() -> None:
    assert together([]) == together([host(1, 2)]) == together([host(1, 2), {"phase": "waiting"}]) == ""


def test_what_is_done_has_no_time_left() -> None:
    assert together([host(2, 2, 0, None), host(2, 2, 0, 7)]) == "[2 hosts together] 4 B of 4 B"


def test_a_line_for_the_fleet_comes_from_whoever_prints_and_not_too_often(tmp_path: Path) -> None:
    now = [0.0]
    boards = [Board(tmp_path / "task", name, clock=lambda: now[0]) for name in ("a", "b")]
    boards[0].put(host(1, 10, 1, 9))
    assert boards[0].line() == ""
    boards[1].put(host(2, 10, 1, 8))
    now[0] = 10**12
    assert boards[1].line() == "[2 hosts together] 3 B of 20 B, 2 B/s, 9 s left"
    now[0] = (tmp_path / "task" / "said").stat().st_mtime + 1
    assert boards[0].line() == ""
    now[0] += 60
    assert boards[0].line()


def test_a_host_that_has_come_to_its_end_counts_as_whole(tmp_path: Path) -> None:
    boards = [Board(tmp_path, name) for name in ("a", "b")]
    boards[0].put(host(7, 10, 5, 1))
    boards[1].put(host(2, 10, 1, 8))
    boards[0].ended()
    assert boards[1].line() == "[2 hosts together] 12 B of 20 B, 1 B/s, 8 s left"


def test_a_folder_that_cannot_be_written_is_silent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    board = Board(tmp_path / "file" / "below", "a")
    board.put(host(1, 2))
    board.ended()
    assert board.line() == ""


def test_what_is_no_progress_is_passed_over(tmp_path: Path) -> None:
    board = Board(tmp_path, "a")
    board.put(host(1, 2))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text("[]")
    assert board.line() == ""
