# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes and durations as people read them."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._words.amounts import duration, size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (223_000_000_000, "223.0 GB"),
        (1_500_000_000_000, "1.5 TB"),
        (5e15, "5000.0 TB"),
        (-1500, "-1.5 kB"),
    ],
)
def test_a_size(count: float, text: str) -> None:
    assert size(count) == text


def test_a_size_with_more_digits() -> None:
    assert (size(223_456_000_000, 2), size(12, 2)) == ("223.46 GB", "12 B")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (0.4, "0 s"),
        (65, "65 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (7199, "2 h 0 min"),
        (11100, "3 h 5 min"),
    ],
)
def test_a_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
