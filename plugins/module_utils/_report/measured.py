# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's benchmark beside its baseline: figures, verdicts, power. Private to the collection."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict import compare

NOTHING: dict[str, Any] = {}


def of_this_run(benchmarks: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this run measured of what the host was to serve; empty where it measured nothing.

    benchmarks: lines of the host record, the oldest first; variables: with sglang_benchmark_result, which the role
    sglang_benchmark registers. What a trial measured of its baseline says nothing of the change.
    """
    mine = (variables.get("sglang_benchmark_result") or {}).get("benchmark") or {}
    if not mine.get("id") or mine.get("reason") == "baseline":
        return NOTHING
    places = [at for at, one in enumerate(benchmarks) if one.get("id") == mine["id"]]
    return shown(benchmarks[: places[-1] + 1]) if places else NOTHING


def last(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was measured last, whoever did it; empty where nothing ever was."""
    return shown(benchmarks) if benchmarks else NOTHING


def shown(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last of these benchmarks held against its baseline.

    Which that is, judge.shown_against says, for the table of benchmark.yml too.
    """
    now = benchmarks[-1]
    judged = now.get("verdict")
    before = _before(benchmarks)
    shapes = [_shape(one, now, before) for one in now.get("shapes", [])]
    verdicts = {one["name"]: one["verdict"] for one in shapes}
    return {
        "id": now.get("id", ""),
        "at": now.get("at", ""),
        "reason": now.get("reason", ""),
        "release": now.get("release", ""),
        "verdict": judged or (compare.overall(verdicts).as_dict() if verdicts else None),
        "baseline": {name: before.get(name, "") for name in ("id", "at", "release")} if before else None,
        "shapes": [{**one, "verdict": one["verdict"].as_dict()} for one in shapes],
        "power": _power(now),
        "baseline_power": _power(before) if before else None,
        "patches": list(now.get("patches") or []),
        "paths": list(now.get("paths") or []),
        "findings": list(now.get("findings") or []),
    }


def _before(benchmarks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    # Samples were summed up for the report, and say nothing of which is the baseline.
    *earlier, now = (Benchmark.from_dict({**one, "samples": []}) for one in benchmarks)
    chosen = judge.shown_against(earlier, now)
    return benchmarks[earlier.index(chosen)] if chosen else None


def _conditions(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.get(name) for name in ("profile", "tensor_parallel", "topology")}


def _name(shape: Mapping[str, Any]) -> str:
    return f"{shape['input_tokens']} in, {shape['output_tokens']} out, {shape['concurrency']} at a time"


def _shape(shape: Mapping[str, Any], now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    same = ("input_tokens", "output_tokens", "concurrency", "requests")
    old = [one for one in (before or {}).get("shapes", []) if all(one.get(key) == shape.get(key) for key in same)]
    candidate = _measurement(shape, now)
    baseline = _measurement(old[0], before or {}) if old else None
    return {
        "name": _name(shape),
        "now": _figures(candidate),
        "before": _figures(baseline) if baseline else None,
        "verdict": compare.compare(candidate, baseline),
    }


def _measurement(shape: Mapping[str, Any], benchmark: Mapping[str, Any]) -> compare.Measurement:
    runs = [float(run["output_tokens_per_second"]) for run in shape.get("runs", [])]
    return compare.Measurement(runs, int(shape.get("cold", 1)), _conditions(benchmark), benchmark.get("quality"))


def _figures(one: compare.Measurement) -> dict[str, Any]:
    """Output tokens a second: the median of the warm runs, and these."""
    return {"median": round(statistics.median(one.warm), 1) if one.warm else None, "runs": one.warm}


def _power(benchmark: Mapping[str, Any]) -> dict[str, Any] | None:
    """W of all cards of the host over the benchmark, as points of second and draw; None where nothing was told."""
    samples = [one for one in benchmark.get("samples") or [] if one.get("draw") is not None]
    if not samples:
        return None
    limits = [float(one["limit"]) for one in samples if one.get("limit")]
    busy = [float(one["utilisation"]) for one in samples if one.get("utilisation") is not None]
    return {
        "points": [[round(float(one["second"]), 1), round(float(one["draw"]), 1)] for one in samples],
        "median": round(statistics.median(float(one["draw"]) for one in samples), 1),
        "limit": max(limits) if limits else None,
        "utilisation": round(statistics.median(busy), 1) if busy else None,
    }
