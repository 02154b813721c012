# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a benchmark against another of the same conditions. The arithmetic is _verdict's. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark, Measured
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.compare import (
    NO_VERDICT,
    WORSE,
    Measurement,
    Policy,
    Verdict,
    compare,
    overall,
)

INERT = "inert"
POLICY = Policy()
RESULTS_THAT_FAILED = (WORSE, NO_VERDICT, INERT)


def measurement(benchmark: Benchmark, one: Measured) -> Measurement:
    """Return one shape of a benchmark as the verdict takes it."""
    return Measurement(
        runs=[run.output_tokens_per_second for run in one.runs],
        cold=one.cold,
        conditions={**benchmark.conditions, "shape": one.shape.name},
        quality=benchmark.quality,
    )


def verdict(candidate: Benchmark, baseline: Benchmark | None, policy: Policy = POLICY) -> Verdict:
    """Judge all shapes of a benchmark against the same ones of another."""
    before = {one.shape: one for one in baseline.shapes} if baseline else {}
    found: dict[str, Verdict] = {}
    for one in candidate.shapes:
        other = before.get(one.shape)
        old = measurement(baseline, other) if baseline and other else None
        found[one.shape.name] = compare(measurement(candidate, one), old, policy)
    if not found:
        return Verdict(NO_VERDICT, "nothing was measured")
    whole = overall(found)
    if len(found) == 1:
        return replace(
            whole, reason=next(iter(found.values())).reason, arithmetic=next(iter(found.values())).arithmetic
        )
    details = [line for name, one in found.items() for line in (f"{name}:", *(f"  {row}" for row in one.arithmetic))]
    return replace(whole, arithmetic=(*whole.arithmetic, *details))


def with_paths(judged: Verdict, concerned: Iterable[str], paths: Iterable[Mapping[str, Any]]) -> Verdict:
    """Return `inert` where the engine left out a path that the change is about; else what was judged.

    concerned: identifiers of the paths that the change asks for; paths: what the candidate's benchmark says of them.
    """
    names = set(concerned)
    left = [one for one in paths if one.get("id") in names and one.get("active") is False]
    if not left:
        return judged
    told = "; ".join(f"{one['id']}: {one['evidence']}" for one in left)
    reason = (
        f"the engine does not take the path that was to be tried ({told}). By speed: {judged.result}, {judged.reason}"
    )
    return replace(judged, result=INERT, reason=reason)


def keeps(judged: Mapping[str, Any]) -> bool:
    """Tell whether what was judged so may stay in a rollout: for want of a baseline nothing goes back."""
    return judged.get("result") not in RESULTS_THAT_FAILED


def comparable(one: Benchmark, other: Benchmark) -> bool:
    """Tell whether two benchmarks have the same conditions, and a shape in common."""
    shapes = {measured.shape for measured in one.shapes} & {measured.shape for measured in other.shapes}
    return one.conditions == other.conditions and bool(shapes)


def baseline_of(
    benchmarks: Sequence[Benchmark], candidate: Benchmark, before: str = "", failed: Iterable[str] = ()
) -> Benchmark | None:
    """Choose what a candidate is held against; None where nothing of its kind was measured.

    benchmarks: the oldest first; before: the state that served before, whose last benchmark goes before all others;
    failed: identifiers of benchmarks that were judged and lost, which are no baseline for anything.
    """
    lost = set(failed)
    fit = [
        one
        for one in benchmarks
        if one.id != candidate.id and one.state != candidate.state and comparable(one, candidate) and one.id not in lost
    ]
    served = [one for one in fit if before and one.state == before]
    chosen = served or fit
    return chosen[-1] if chosen else None


def last_before(earlier: Sequence[Benchmark], candidate: Benchmark) -> Benchmark | None:
    """Return the last one of its kind that did not lose, whatever served then; None where there is none.

    The same deployment measured again is told apart too: what changed is the host, or who else works on it.
    """
    failed = set(lost(earlier))
    fit = [one for one in earlier if comparable(one, candidate) and one.id not in failed]
    return fit[-1] if fit else None


def shown_against(earlier: Sequence[Benchmark], one: Benchmark) -> Benchmark | None:
    """Return what a benchmark is shown beside, in the table and in every report; None where there is nothing.

    One that was judged when it was measured: what it was judged against. One that was not: the last of its kind.
    """
    if one.verdict:
        return next((each for each in earlier if one.baseline and each.id == one.baseline), None)
    return last_before(earlier, one)


def shown(one: Benchmark, before: Benchmark | None) -> dict[str, Any]:
    """Return the verdict that a benchmark is shown with: its own, or what it says against `before`."""
    return dict(one.verdict or as_dict(verdict(one, before)))


def recorded(judged: Mapping[str, Any] | None) -> bool:
    """Tell whether a trial took a recorded benchmark for its baseline, and measured none for itself."""
    return bool((judged or {}).get("recorded"))


def words(judged: Mapping[str, Any]) -> str:
    """Return a verdict and its change in short; of what was not active a change of speed says nothing."""
    change = judged.get("change")
    told = change is not None and judged["result"] != INERT
    return f"{judged['result']} {change:+.1%}" if told else str(judged["result"])


def lost(benchmarks: Iterable[Benchmark]) -> list[str]:
    """Return the identifiers of those that were judged and went back."""
    return [one.id for one in benchmarks if one.verdict and one.verdict.get("result") in RESULTS_THAT_FAILED]


def as_dict(judged: Verdict) -> dict[str, Any]:
    """Return a verdict as a benchmark's line holds it."""
    names = ("result", "reason", "change", "low", "high", "threshold")
    return {**{name: getattr(judged, name) for name in names}, "arithmetic": list(judged.arithmetic)}
