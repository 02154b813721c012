# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang versions and the ranges of a model profile."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.versions import Version, check, matches, parse
from hypothesis import given
from hypothesis import strategies as st

NUMBER = st.integers(min_value=0, max_value=10_000)
VERSIONS = st.tuples(NUMBER, NUMBER, NUMBER, NUMBER)


def written(version: Version) -> str:
    """Write a version as SGLang tags it."""
    major, minor, patch, post = version
    return f"{major}.{minor}.{patch}" + (f".post{post}" if post else "")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.4.6", (0, 4, 6, 0)),
        ("v0.5.23", (0, 5, 23, 0)),
        (" 0.5.23\n", (0, 5, 23, 0)),
        ("0.5.10.post1", (0, 5, 10, 1)),
        ("v0.5.10.post12", (0, 5, 10, 12)),
        ("0.5.23-14-g1a2b3c4d5", (0, 5, 23, 0)),
        ("0.5.10.post1-3-g1a2b3c4", (0, 5, 10, 1)),
        ("0.5.24rc1", (0, 5, 24, 0)),
        ("0.5.24rc0-12-gabcdef0", (0, 5, 24, 0)),
        ("0.5.24.dev14+g1a2b3c4d5", (0, 5, 24, 0)),
        ("0.5.24.dev14+g1a2b3c4d5.d20261130", (0, 5, 24, 0)),
        ("0.5.23+cu130", (0, 5, 23, 0)),
    ],
)
def test_what_git_and_wheels_call_a_version_is_read(text: str, version: Version) -> None:
    assert parse(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main",
        "latest",
        "0.5",
        "0.5.23.4",
        "0.5.23 ; rm",
        "0.5.23/..",
        "gateway-v0.3.1",
        "0.5.x",
        "0.5.\u0662\u0663",
        "0.5.23-14",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"no SGLang version such as 0\.5\.23"):
        parse(text)


@given(VERSIONS)
def test_a_version_that_was_written_is_read_back(version: Version) -> None:
    assert parse(written(version)) == version


@given(VERSIONS, VERSIONS)
def test_ranges_agree_with_the_order_of_the_numbers(have: Version, limit: Version) -> None:
    expected = {
        "<": have < limit,
        "<=": have <= limit,
        "==": have == limit,
        ">=": have >= limit,
        ">": have > limit,
    }
    assert {sign: matches(written(have), f"{sign}{written(limit)}") for sign in expected} == expected


@given(VERSIONS, VERSIONS)
def test_two_rows_that_meet_at_a_version_share_no_version_and_leave_none_out(have: Version, limit: Version) -> None:
    assert matches(written(have), f"<{written(limit)}") != matches(written(have), f">={written(limit)}")


@pytest.mark.parametrize(
    ("version", "spec", "holds"),
    [
        ("0.5.9", "<0.5.10", True),  # by number, not by letter
        ("0.5.10", "<0.5.9", False),
        ("0.5.10.post1", ">0.5.10", True),
        ("0.5.10.post1", "<0.5.11", True),
        ("0.5.15", ">=0.5.10,<0.5.16", True),
        ("0.5.16", ">=0.5.10,<0.5.16", False),
        ("0.5.9", ">=0.5.10, <0.5.16", False),
        ("0.5.23", "", True),
        ("0.5.23", " , ", True),
        ("0.5.23-14-g1a2b3c4", ">=0.5.23,<0.5.24", True),
        ("0.5.24rc1", ">=0.5.24", True),
    ],
)
def test_ranges(version: str, spec: str, holds: bool) -> None:
    assert matches(version, spec) is holds


@pytest.mark.parametrize("spec", ["0.5.10", "=0.5.10", "~=0.5.10", ">=new", ">=0.5.10 <0.5.16", "<"])
def test_a_range_that_cannot_be_read_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        check(spec)
    with pytest.raises(ValueError, match="is no"):
        matches("0.5.23", spec)
