# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on benchmark runs: the cases that people met, and what holds for all."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.compare import (
    ADVISED_RUNS,
    Measurement,
    Policy,
    Verdict,
    compare,
    overall,
    spread,
)
from hypothesis import given
from hypothesis import strategies as st

BASE = Measurement([3100, 3740, 3755, 3725, 3748, 3731])


def now(*runs: float, **others: Any) -> Measurement:
    return Measurement(runs, **others)


def test_the_first_users_fall_is_worse() -> None:
    verdict = compare(now(190, 236, 238, 235), BASE)
    assert (verdict.result, verdict.keeps) == ("worse", False)
    assert verdict.describe().splitlines() == [
        "worse: 3740 became 236 (-93.7%), beyond the threshold of 10.0%",
        "before: 3740, 3755, 3725, 3748, 3731: median 3740",
        "now: 236, 238, 235: median 236",
        "change: 236 / 3740 - 1 = -93.7%",
        "spread of a run: 0.5%; interval of the change (95 %): -93.8% to -93.6%",
        "threshold: the greater of 10% and 2 x 0.5% = 10.0%",
    ]
    assert verdict.change == pytest.approx(-0.937, abs=0.001)


CASES: list[tuple[Measurement, Measurement | None, str, str]] = [
    (now(3000, 3735, 3750, 3741), BASE, "same", "within the threshold"),
    # field report H02: 4 % less in three runs is nothing, since a settled server drifts by 7 %
    (now(3000, 3590, 3610, 3570), BASE, "same", "-4.0% is within"),
    (now(3000, 4300, 4310, 4290), BASE, "better", "+15.0%"),
    (now(3000, 2600, 2610, 2590), BASE, "worse", "-30.5%"),
    # field report H01: the first run after a start is low; it is left out, and then two are too few
    (now(58, 83, 83, 83), now(60, 83, 84, 83), "same", "+0.0%"),
    (now(58, 83, 83), now(60, 83, 84, 83), "no verdict", "this measurement has 3 runs, of which 2 warm"),
    (now(58, 83, 83, 83), now(83, 83), "no verdict", "the baseline has 2 runs, of which 1 warm"),
    (now(), BASE, "no verdict", "0 runs"),
    (now(1, 2, 3, 4), None, "no baseline", "nothing of its kind"),
    (now(0, 0, 0, 0), BASE, "worse", "3740 became 0 (-100.0%)"),
    (BASE, now(0, 0, 0, 0), "no verdict", "median is 0"),
    # runs that scatter: far apart and not shown, near and not shown
    (now(0, 2923, 3142, 3360), now(0, 3480, 3740, 4000), "no verdict", "-16.0% is beyond the threshold, but"),
    (now(0, 1500, 3000, 4500), BASE, "no verdict", "scatter too much"),
    (now(0, 2600, 3740, 4900), now(0, 2600, 3740, 4900), "no verdict", "could hide in them"),
    # field report H03: faster and wrong is worse
    (now(3000, 4300, 4310, 4290, quality=0.78), BASE, "worse", "78% of the answers are right, and 100% have to be"),
    (now(3000, 4300, 4310, 4290, quality=0.78), None, "worse", "at any speed"),
    (now(3000, 4300, 4310, 4290, quality=1.0), BASE, "better", ""),
    (now(3000, 3740, 3740, 3740, conditions={"tp": 8}), BASE, "no baseline", "tp unknown then, 8 now"),
    (
        now(3000, 3740, 3740, 3740, conditions={"tp": 8, "topology": "SYS"}),
        now(3000, 3740, 3740, 3740, conditions={"tp": 4, "topology": "SYS"}),
        "no baseline",
        "tp 4 then, 8 now",
    ),
]


@pytest.mark.parametrize(("candidate", "baseline", "result", "words"), CASES)
def test_verdicts(candidate: Measurement, baseline: Measurement | None, result: str, words: str) -> None:
    verdict = compare(candidate, baseline)
    assert verdict.result == result and words in verdict.reason
    assert verdict.keeps == (result in ("better", "same", "no baseline"))
    json.dumps(verdict.as_dict(), allow_nan=False)


def test_the_threshold_rises_with_the_scatter() -> None:
    quiet = compare(now(0, 3300, 3310, 3305, 3295, 3300), BASE)
    loud = compare(now(0, 3000, 3300, 3700, 3100, 3500), Measurement([0, 3400, 3740, 4100, 3500, 3950]))
    assert (quiet.result, quiet.threshold) == ("worse", 0.10)
    assert loud.result == "same" and loud.threshold is not None and loud.threshold > 0.14


def test_a_policy_can_be_stricter() -> None:
    strict = Policy(threshold=0.03, quality=0.9)
    assert compare(now(3000, 3590, 3610, 3570), BASE, strict).result == "worse"
    assert compare(now(3000, 3740, 3740, 3740, quality=0.95), BASE, strict).result == "same"


@pytest.mark.parametrize("runs", [[math.nan] * 4, [math.inf] * 4, [-1.0] * 4])
def test_what_is_no_figure_is_refused(runs: list[float]) -> None:
    with pytest.raises(ValueError, match="numbers from 0 on"):
        Measurement(runs)


def test_spread() -> None:
    assert spread([90, 100, 110]) == pytest.approx(0.1) and spread([0, 0, 0]) == 0


def test_several_shapes_make_one_verdict() -> None:
    better, same = Verdict("better", "+20%", change=0.2), Verdict("same", "+1%", change=0.01)
    worse, awful = Verdict("worse", "-20%", change=-0.2), Verdict("worse", "-90%", change=-0.9)
    none = Verdict("no verdict", "too few")
    assert overall({"a": same, "b": better}).result == "better"
    assert overall({"a": better, "b": worse, "c": awful}).reason == "b, c: -90%"
    assert overall({"a": better, "b": none}).result == "no verdict"
    assert overall({"a": same}).arithmetic == ("a: same, +1%",)
    one = compare(Measurement([1.0, 100, 101, 99]), Measurement([1.0, 10, 11, 9]))
    assert one.threshold and overall({"a": one, "b": same}).threshold == one.threshold
    with pytest.raises(ValueError, match="no verdict"):
        overall({})


# what holds for all --------------------------------------------------------------------------------------------

RUNS = st.lists(st.floats(1, 1e5, allow_nan=False), min_size=3, max_size=8)


@given(RUNS, RUNS, st.floats(0.01, 100))
def test_the_unit_does_not_matter(one: list[float], other: list[float], factor: float) -> None:
    plain = compare(Measurement(one, 0), Measurement(other, 0))
    scaled = compare(Measurement([run * factor for run in one], 0), Measurement([run * factor for run in other], 0))
    assert plain.change == pytest.approx(scaled.change, abs=1e-6)
    assert plain.low == pytest.approx(scaled.low, abs=1e-6)


@given(RUNS, RUNS)
def test_a_verdict_of_worse_or_better_is_shown_by_its_own_figures(one: list[float], other: list[float]) -> None:
    verdict = compare(Measurement(one, 0), Measurement(other, 0))
    assert verdict.low is not None and verdict.high is not None and verdict.change is not None
    assert verdict.low <= verdict.change <= verdict.high
    assert verdict.result != "worse" or verdict.high < 0
    assert verdict.result != "better" or verdict.low > 0
    assert verdict.result not in ("better", "worse") or abs(verdict.change) >= 0.10


def test_nothing_can_lose_more_than_everything() -> None:
    """Runs that scatter this wildly have an interval that is wider than the figures can be."""
    verdict = compare(now(0, 100, 900, 2500), now(0, 2000, 3000, 100))
    assert verdict.low == -1.0 and verdict.high is not None and verdict.high > 0
    assert any("interval of the change (95 %): -100.0% to +" in line for line in verdict.arithmetic)


@given(RUNS)
def test_runs_against_themselves_are_never_better_or_worse(runs: list[float]) -> None:
    assert compare(Measurement(runs, 0), Measurement(runs, 0)).result in ("same", "no verdict")


@given(RUNS, st.permutations(range(8)))
def test_the_order_of_warm_runs_does_not_matter(runs: list[float], order: list[int]) -> None:
    shuffled = [runs[place] for place in order if place < len(runs)]
    one, other = (compare(Measurement(given_runs, 0), Measurement(runs, 0)) for given_runs in (runs, shuffled))
    assert (one.result, one.change) == (other.result, other.change)


@pytest.mark.parametrize(("noise", "change"), [(0.02, -0.30), (0.07, -0.30), (0.07, -0.94), (0.02, -0.94)])
def test_great_losses_are_found_in_simulated_runs(noise: float, change: float) -> None:
    """benchmarks/verdict.py gives the figures; this guards that they are of this order."""
    dice = random.Random(1)
    results = []
    for _trial in range(300):
        before = [dice.gauss(3740, 3740 * noise) for _run in range(ADVISED_RUNS)]
        after = [max(0.0, dice.gauss(1, noise)) * 3740 * (1 + change) for _run in range(ADVISED_RUNS)]
        results.append(compare(Measurement(after, 0), Measurement(before, 0)).result)
    assert results.count("worse") >= 290 and "better" not in results


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.07])
def test_no_change_is_hardly_ever_called_one(noise: float) -> None:
    dice = random.Random(2)
    results = []
    for _trial in range(300):
        before, after = ([dice.gauss(3740, 3740 * noise) for _run in range(ADVISED_RUNS)] for _side in range(2))
        results.append(compare(Measurement(after, 0), Measurement(before, 0)).result)
    assert results.count("same") >= 280 and results.count("worse") <= 6
