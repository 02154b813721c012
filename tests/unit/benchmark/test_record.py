# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured is kept as whole lines, and comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import lines, record
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Card, Sample, thinned

from tests.unit.benchmark.case import FAST, kept, made


def test_a_benchmark_comes_back_as_it_was_written(tmp_path: Path) -> None:
    one = made(
        *FAST,
        samples=(Sample(2.0, (Card("GPU-1", 99.0, 410.0, 600.0, 2400.0),)),),
        patches=({"id": "x", "patch_set": "sm120"},),
        verdict={"result": "same"},
        environment={"A": "1"},
    )
    record.append(tmp_path / "qwen" / record.NAME, one)
    record.append(tmp_path / "qwen" / record.NAME, made(*FAST, id="second"))
    first, second = kept(tmp_path / "qwen" / record.NAME)
    assert first == one and second.id == "second"
    assert first.shapes[0].warm == list(FAST[1:]) and first.shapes[0].median == 3740.0
    assert first.samples[0].draw == 410.0


def test_everybody_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    record.append(tmp_path / record.NAME, made(*FAST))
    assert (tmp_path / record.NAME).stat().st_mode & 0o777 == 0o644


def test_a_torn_line_is_said_and_spoils_no_other(tmp_path: Path) -> None:
    place = tmp_path / record.NAME
    record.append(place, made(*FAST, id="first"))
    with place.open("a") as file:
        file.write('{"schema": 1, "id": "to')  # a power cut
    record.append(place, made(*FAST, id="third"))
    found, problems = record.read(place)
    assert [one.id for one in found] == ["first", "third"]
    assert len(problems) == 1 and f"{place}:2" in problems[0]


def wrong(**changes: object) -> dict[str, object]:
    """A line that is sound but for this."""
    return {**made(*FAST).as_dict(), "schema": 1, **changes}


def wrong_shape(**changes: object) -> dict[str, object]:
    """A line of which the shape is sound but for this."""
    return wrong(shapes=[{**made(*FAST).as_dict()["shapes"][0], **changes}])


def test_the_lines_below_are_sound_but_for_one_thing(tmp_path: Path) -> None:
    (tmp_path / record.NAME).write_text(json.dumps(wrong_shape()) + "\n")
    assert kept(tmp_path / record.NAME) == [made(*FAST)]


@pytest.mark.parametrize(
    "line",
    [
        {"schema": 2, "id": "of-another-version"},
        {"schema": 1, "id": "without-shapes"},
        {**made(*FAST).as_dict(), "schema": 1, "shapes": [{"runs": 3}]},
        ["no", "map"],
        wrong(at=20261130),
        wrong(verdict="worse"),
        wrong(samples=[{"second": 1, "cards": [{"uuid": "x", "utilisation": "much", "draw": 1, "limit": 1}]}]),
        wrong(findings=[{"id": "gpu_starved"}]),
        wrong(findings=["gpu_starved"]),
        wrong(tensor_parallel="8"),
        wrong_shape(cold=-1),
        wrong_shape(runs=[{"output_tokens_per_second": -1.0, "total_tokens_per_second": 1.0, "seconds": 1.0}]),
        wrong_shape(runs=[{"output_tokens_per_second": 1.0, "total_tokens_per_second": 1.0, "seconds": None}]),
    ],
)
def test_what_cannot_be_read_is_named_and_left_out(tmp_path: Path, line: object) -> None:
    (tmp_path / record.NAME).write_text(json.dumps(line) + "\n")
    found, problems = record.read(tmp_path / record.NAME)
    assert found == [] and len(problems) == 1


def test_a_later_version_may_add_a_field(tmp_path: Path) -> None:
    lines.append(tmp_path / record.NAME, {**made(*FAST).as_dict(), "colour": "blue"})
    assert kept(tmp_path / record.NAME) == [made(*FAST)]


def test_samples_are_thinned_evenly_over_the_time() -> None:
    many = [Sample(float(second), ()) for second in range(1000)]
    few = thinned(many, 11)
    assert len(few) == 11 and few[0].second == 0 and few[-1].second == 999
    assert thinned(many[:5], 11) == tuple(many[:5])
