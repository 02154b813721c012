# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is one set of benchmark runs faster than another? Pure arithmetic, shown. PRIVATE to the collection.

A run is one figure, more is better (tokens a second). Runs scatter: a settled server was seen to drift by 7 % between
them (flashinfer PR 3903), and the first run after a start reads 10 to 30 % low (sgl PR 18341). So cold runs are left
out, medians are compared, and what counts as a change lies well over the scatter that the runs themselves show.
benchmarks/verdict.py gives the figures on how often this errs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

BETTER, SAME, WORSE = "better", "same", "worse"
NO_VERDICT, NO_BASELINE = "no verdict", "no baseline"
# Student's t, two-sided 95 %, by degrees of freedom; beyond the table its last value is a little wide, which is safe.
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}
STUDENT |= {12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 20: 2.086}
# A median scatters more than a mean, by this factor for many normal runs, by less for few.
MEDIAN_FACTOR = math.sqrt(math.pi / 2)


# What benchmarks/verdict.py shows to be enough where runs scatter by 5 to 7 %; the policy's least is for quiet servers.
ADVISED_RUNS = 5


@dataclass(frozen=True)
class Policy:
    """What counts as a change.

    threshold: the least relative change; spreads: it is at least so many times the runs' spread; widest: with an
    interval wider than this to either side there is no verdict of V(same); least_runs: warm runs a side; quality: the
    least share of right answers.
    """

    threshold: float = 0.10
    spreads: float = 2.0
    widest: float = 0.20
    least_runs: int = 3
    quality: float = 1.0


@dataclass(frozen=True)
class Measurement:
    """Runs in the order in which they were made, of which the first `cold` are left out.

    conditions: what has to be equal for a comparison to mean something (profile, tensor parallel size, topology,
    shape); quality: share of right answers from 0 to 1, None if nobody asked.
    """

    runs: Sequence[float]
    cold: int = 1
    conditions: Mapping[str, Any] = field(default_factory=dict)
    quality: float | None = None

    def __post_init__(self) -> None:
        if any(not math.isfinite(run) or run < 0 for run in self.runs) or self.cold < 0:
            raise ValueError(f"runs have to be numbers from 0 on, and are {list(self.runs)}")

    @property
    def warm(self) -> list[float]:
        return list(self.runs[self.cold :])


@dataclass(frozen=True)
class Verdict:
    """`change`, `low` and `high` are relative (-0.94 is 94 % less); None where they were not worked out."""

    result: str
    reason: str
    arithmetic: tuple[str, ...] = ()
    change: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None

    @property
    def keeps(self) -> bool:
        """Whether a change may stay. What is worse or was not shown goes back; for want of a baseline nothing does."""
        return self.result not in (WORSE, NO_VERDICT)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "arithmetic": list(self.arithmetic), "keeps": self.keeps}

    def describe(self) -> str:
        return "\n".join([f"{self.result}: {self.reason}", *self.arithmetic])


def compare(candidate: Measurement, baseline: Measurement | None, policy: Policy = Policy()) -> Verdict:
    """Hold a measurement against a baseline. Quality comes first: wrong answers are worse at any speed."""
    asked = candidate.quality
    if asked is not None and asked < policy.quality:
        return Verdict(
            WORSE, f"{asked:.0%} of the answers are right, and {policy.quality:.0%} have to be, at any speed"
        )
    if baseline is None:
        return Verdict(NO_BASELINE, "nothing of its kind was measured here before")
    other = differences(candidate.conditions, baseline.conditions)
    if other:
        return Verdict(NO_BASELINE, f"the baseline was measured under other conditions: {'; '.join(other)}")
    for name, one in (("this measurement", candidate), ("the baseline", baseline)):
        if len(one.warm) < policy.least_runs:
            told = f"{len(one.runs)} runs, of which {len(one.warm)} warm"
            return Verdict(NO_VERDICT, f"{name} has {told}; a verdict takes {policy.least_runs} warm ones")
    if not statistics.median(baseline.warm):
        return Verdict(NO_VERDICT, "the baseline's median is 0")
    return _judge(candidate.warm, baseline.warm, policy)


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What two sets of conditions do not agree on, in words."""
    names = sorted(set(one) | set(other))
    return [
        f"{name} {other.get(name, 'unknown')} then, {one.get(name, 'unknown')} now"
        for name in names
        if one.get(name) != other.get(name)
    ]


def spread(runs: Sequence[float]) -> float:
    """The runs' standard deviation as a share of their median; 0 for a median of 0."""
    middle, mean = statistics.median(runs), math.fsum(runs) / len(runs)
    variance = math.fsum((run - mean) ** 2 for run in runs) / (len(runs) - 1)
    return math.sqrt(variance) / middle if middle else 0.0


def _judge(now: list[float], before: list[float], policy: Policy) -> Verdict:
    new, old = statistics.median(now), statistics.median(before)
    ratio = new / old
    freedom = len(now) + len(before) - 2
    pooled = math.sqrt(((len(now) - 1) * spread(now) ** 2 + (len(before) - 1) * spread(before) ** 2) / freedom)
    error = MEDIAN_FACTOR * pooled * math.sqrt(1 / len(now) + 1 / len(before))
    half = STUDENT[min(freedom, max(STUDENT))] * error
    change = ratio - 1
    # Nothing loses more than everything, however wide the interval.
    low, high = max(-1.0, ratio * (1 - half) - 1), ratio * (1 + half) - 1
    threshold = max(policy.threshold, policy.spreads * pooled)
    lines = (
        f"before: {_listed(before)}: median {old:g}",
        f"now: {_listed(now)}: median {new:g}",
        f"change: {new:g} / {old:g} - 1 = {change:+.1%}",
        f"spread of a run: {pooled:.1%}; interval of the change (95 %): {low:+.1%} to {high:+.1%}",
        f"threshold: the greater of {policy.threshold:.0%} and {policy.spreads:g} x {pooled:.1%} = {threshold:.1%}",
    )

    def verdict(result: str, reason: str) -> Verdict:
        return Verdict(result, reason, lines, change, low, high, threshold)

    if change <= -threshold and high < 0:
        return verdict(WORSE, f"{old:g} became {new:g} ({change:+.1%}), beyond the threshold of {threshold:.1%}")
    if change >= threshold and low > 0:
        return verdict(BETTER, f"{old:g} became {new:g} ({change:+.1%}), beyond the threshold of {threshold:.1%}")
    if abs(change) >= threshold:
        return verdict(NO_VERDICT, f"{change:+.1%} is beyond the threshold, but the runs scatter too much to show it")
    if half > policy.widest:
        return verdict(NO_VERDICT, f"the runs scatter too much: a change of {half:.0%} could hide in them")
    return verdict(SAME, f"{change:+.1%} is within the threshold of {threshold:.1%}")


def _listed(runs: Sequence[float]) -> str:
    return ", ".join(f"{run:g}" for run in runs)


def overall(verdicts: Mapping[str, Verdict]) -> Verdict:
    """One verdict over several shapes or concurrencies, by name: the worst counts, and a win needs one and no loss."""
    for result in (WORSE, NO_VERDICT, NO_BASELINE, BETTER, SAME):
        names = [name for name, one in verdicts.items() if one.result == result]
        if names:
            lines = tuple(f"{name}: {one.result}, {one.reason}" for name, one in verdicts.items())
            worst = min((verdicts[name] for name in names), key=lambda one: one.change or 0.0)
            return replace(worst, reason=f"{', '.join(names)}: {worst.reason}", arithmetic=lines)
    raise ValueError("there is no verdict to sum up")
