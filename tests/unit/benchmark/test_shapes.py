# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a benchmark asks for: wrong shapes are said, and each shipped profile has some."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import shapes
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Shape
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import profile as profiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices

from tests.unit.deployment.example import PROFILES, problems, resolved

ONE: dict[str, Any] = {"input_tokens": 64, "output_tokens": 32, "concurrency": 4, "requests": 16}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("many", "has to be a list of shapes"),
        ([5], "shape 1, has to be a map of input_tokens, output_tokens, concurrency, requests"),
        ([{**ONE, "seed": 1}], "shape 1, has to be a map"),
        ([ONE, {**ONE, "concurrency": 0}], "shape 2, sets concurrency to 0, which is no whole number from 1"),
        ([{**ONE, "input_tokens": True}], "sets input_tokens to True"),
        ([{**ONE, "output_tokens": "many"}], "sets output_tokens to 'many'"),
        ([{**ONE, "requests": 3}], "has 3 requests, and 4 at a time would never be reached"),
        ([ONE, dict(ONE)], "has a shape twice"),
    ],
)
def test_a_wrong_shape_is_said_in_a_sentence(given: Any, words: str) -> None:
    found = shapes.problems("sglang_benchmark_shapes", given)
    assert any(words in text for text in found), found
    assert all(text.endswith(".") for text in found)
    with pytest.raises(ValueError, match="shape"):
        shapes.read(given)


def test_numbers_may_come_as_text() -> None:
    [one] = shapes.read([{key: str(value) for key, value in ONE.items()}])
    assert one == Shape(64, 32, 4, 16)


@pytest.mark.parametrize("name", PROFILES)
def test_each_shipped_profile_measures_throughput_and_a_single_user(name: str) -> None:
    found = shapes.read(PROFILES[name]["benchmark"]["shapes"])
    assert min(one.concurrency for one in found) == 1
    (most,) = (one for one in found if one.concurrency > 1)
    flags = {row["flag"]: row["value"] for row in PROFILES[name]["arguments"]}
    assert most.concurrency == flags["cuda-graph-max-bs-decode"]


def test_an_operators_shapes_go_before_the_profiles() -> None:
    assert resolved()["benchmark"]["shapes"] == PROFILES["qwen3_5_397b_nvfp4"]["benchmark"]["shapes"]
    assert resolved(benchmark_shapes=[ONE])["benchmark"] == {"shapes": [ONE], "runs": 6, "timeout_seconds": 3600}


def test_fewer_runs_than_a_verdict_takes_and_wrong_shapes_do_not_resolve() -> None:
    assert "sglang_benchmark_runs has to be" in problems(benchmark_runs=3)[0]
    assert "sglang_benchmark_shapes, shape 1" in problems(benchmark_shapes=[{**ONE, "requests": 1}])[0]


@pytest.mark.parametrize("benchmark", [[ONE], {"shapes": [5]}, {"runs": 3}])
def test_a_profile_with_a_wrong_benchmark_is_said(benchmark: Any) -> None:
    wrong = {**PROFILES["qwen3_5_397b_nvfp4"], "benchmark": benchmark}
    assert any("benchmark" in text for text in profiles.problems(wrong))


def test_a_profile_may_have_none() -> None:
    without = {key: value for key, value in PROFILES["qwen3_5_397b_nvfp4"].items() if key != "benchmark"}
    assert profiles.problems(without) == []


@pytest.mark.parametrize(
    "given", [{"sglang_benchmark": "some"}, {"sglang_trial_baseline": "guessed"}, {"sglang_trial_same": "stay"}]
)
def test_a_choice_that_there_is_not_is_said(given: dict[str, Any]) -> None:
    [text] = choices.problems(given)
    [name] = given
    assert text.startswith(f"{name} has to be ") and text.endswith(".")
