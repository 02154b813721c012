# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a log a message shows."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis import excerpt

TRACE = ["Traceback (most recent call last):", '  File "a.py", line 1, in main', "    boom()", "ValueError: no such"]


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: no such",
        "torch.OutOfMemoryError: CUDA out of memory",
        "[2026-03-02 10:11:12 TP0] RuntimeError: x",
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form",
        "SystemExit",
        "KeyboardInterrupt",
        "Exception",
        "Exception: flashinfer_python with minimum required version 0.7.2 is not installed.",
        "[2026-03-02 10:11:12 TP0] Exception: x",
        "subprocess.TimeoutExpired: Command '['nvcc', '--version']' timed out after 10 seconds",
    ],
)
def test_the_line_that_ends_a_traceback_is_found(line: str) -> None:
    assert excerpt.last_exception(["before", line, "  after"]) == line


@pytest.mark.parametrize(
    "line", ["some Error: here", "    raise ValueError(x)", "INFO: fine", "Errors: 3", "Exception in x: y", ""]
)
def test_other_lines_are_not(line: str) -> None:
    assert excerpt.last_exception([line]) == ""


def test_the_exception_that_ended_the_engine_is_told_and_not_the_one_that_led_to_it() -> None:
    led_to = [
        *TRACE[:3],
        "importlib.metadata.PackageNotFoundError: No package metadata was found for flashinfer_python",
    ]
    between = ["", "During handling of the above exception, another exception occurred:", ""]
    last = "Exception: flashinfer_python with minimum required version 0.7.2 is not installed."
    assert excerpt.last_exception([*led_to, *between, *TRACE[:3], last]) == last


def test_the_excerpt_ends_with_the_last_exception() -> None:
    log = [*TRACE, *(f"line {number}" for number in range(50)), *TRACE, "Main process exited", "Failed with result"]
    shown = excerpt.excerpt(log)
    assert shown[-4:] == TRACE
    assert len(shown) == excerpt.CONTEXT


def test_without_an_exception_it_is_the_end_of_the_log() -> None:
    assert excerpt.excerpt([str(number) for number in range(50)]) == [str(number) for number in range(40, 50)]
    assert excerpt.excerpt([]) == []


def test_a_line_is_cut_to_what_can_be_read() -> None:
    assert excerpt.excerpt(["x" * 5000]) == ["x" * excerpt.LONGEST_LINE]
