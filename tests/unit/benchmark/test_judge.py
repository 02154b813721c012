# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A benchmark is held against the right other one, and the verdict says why."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge, table
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import (
    Benchmark,
    Card,
    Measured,
    Run,
    Sample,
)

from tests.unit.benchmark.case import ALONE, FAST, SHAPE, SLOW, TOPOLOGY, made, runs

NEW = {"state": "new", "release": "0.5.24-aaaaaaaaa-1111111111111111"}


def test_the_first_operators_3740_that_became_236_is_worse() -> None:
    judged = judge.verdict(made(*SLOW, **NEW), made(*FAST))
    assert judged.result == "worse"
    assert judged.reason.startswith("3740 became 236 (-93.7%)")
    assert not judge.keeps(judge.as_dict(judged))
    told = table.sentence(made(*SLOW, verdict=judge.as_dict(judged)).as_dict(), made(*FAST).as_dict())
    first, *rest = told.splitlines()
    assert "worse: 3740 became 236" in first and "before: release 0.5.23-" in first
    assert any("change: 236 / 3740" in line for line in rest)


def test_a_cold_first_run_counts_for_nothing() -> None:
    cold = (100.0, *FAST[1:])
    assert judge.verdict(made(*cold, **NEW), made(*FAST)).result == "same"


def test_no_verdict_is_told_with_both_figures_too() -> None:
    wild = made(3000.0, 1000.0, 3900.0, 5000.0, **NEW)
    judged = judge.as_dict(judge.verdict(wild, made(*FAST)))
    assert judged["result"] == "no verdict"
    first = table.sentence(made(*wild_runs(wild), verdict=judged).as_dict(), made(*FAST).as_dict()).splitlines()[0]
    assert "no verdict: " in first and "3740 before, 3900 now" in first


def wild_runs(benchmark: Benchmark) -> list[float]:
    """The figures of its one shape."""
    return [run.output_tokens_per_second for run in benchmark.shapes[0].runs]


@pytest.mark.parametrize(
    ("figures", "result"),
    [(FAST, "same"), (tuple(1.3 * one for one in FAST), "better"), (FAST[:3], "no verdict")],
)
def test_the_other_verdicts(figures: tuple[float, ...], result: str) -> None:
    assert judge.verdict(made(*figures, **NEW), made(*FAST)).result == result


def test_wrong_answers_are_worse_at_any_speed() -> None:
    fast = made(*(9 * one for one in FAST), quality=0.5, **NEW)
    assert judge.verdict(fast, made(*FAST)).result == "worse"


def test_the_worst_shape_decides_and_all_are_shown() -> None:
    shapes = (Measured(SHAPE, 1, runs(*FAST)), Measured(ALONE, 1, runs(*SLOW)))
    before = (Measured(SHAPE, 1, runs(*FAST)), Measured(ALONE, 1, runs(*FAST)))
    judged = judge.verdict(made(shapes=shapes, **NEW), made(shapes=before))
    assert judged.result == "worse" and judged.reason.startswith(f"{ALONE.name}: 3740 became 236")
    assert any(line.strip().startswith("before: ") for line in judged.arithmetic)


@pytest.mark.parametrize(
    "other",
    [
        {"profile": "kimi_k2_5_int4"},
        {"tensor_parallel": 4},
        {"topology": "8 x RTX PRO 6000, NODE, NVLink none"},
        {"shapes": (Measured(ALONE, 1, runs(*FAST)),)},
    ],
)
def test_what_was_measured_under_other_conditions_is_no_baseline(other: dict[str, Any]) -> None:
    candidate = made(*SLOW, **NEW)
    one = made(*FAST, **other)
    assert judge.baseline_of([one], candidate) is None
    assert judge.verdict(candidate, one).result == "no baseline"


def test_nothing_before_is_no_baseline_and_goes_back_for_nothing() -> None:
    judged = judge.verdict(made(*FAST, **NEW), None)
    assert judged.result == "no baseline" and judge.keeps(judge.as_dict(judged))


def test_the_baseline_is_what_served_before_and_else_the_last_of_its_kind() -> None:
    served = made(*FAST, id="served", state="before")
    later = made(*FAST, id="later", state="other")
    own = made(*FAST, id="own", state="new")
    candidate = made(*FAST, **{**NEW, "id": "candidate"})
    kept = [served, later, own, candidate]
    chosen = judge.baseline_of(kept, candidate, before="before")
    assert chosen and chosen.id == "served"
    chosen = judge.baseline_of(kept, candidate, before="never measured")
    assert chosen and chosen.id == "later"


def test_what_went_back_is_no_baseline_for_the_next() -> None:
    lost = made(*SLOW, id="lost", state="bad", verdict={"result": "worse"})
    candidate = made(*FAST, **NEW)
    kept = [made(*FAST), lost]
    chosen = judge.baseline_of(kept, candidate, failed=judge.lost(kept))
    assert chosen and chosen.id == "b-old"


def test_a_path_that_the_engine_left_out_is_inert_and_the_speed_is_said() -> None:
    judged = judge.verdict(made(*FAST, **NEW), made(*FAST))
    skipped = {"id": "fusion", "active": False, "evidence": "Skipping allreduce fusion."}
    inert = judge.with_paths(judged, ["fusion"], [skipped])
    assert inert.result == "inert" and "Skipping allreduce fusion." in inert.reason and "By speed: same" in inert.reason
    assert not judge.keeps(judge.as_dict(inert))
    assert judge.with_paths(judged, ["another"], [skipped]) == judged
    assert judge.with_paths(judged, ["fusion"], [{**skipped, "active": None}]) == judged


def test_the_table_has_a_line_for_each_shape_and_what_it_says_of_the_change() -> None:
    slow = made(*SLOW, at="2026-11-30T11:00:00+00:00", seconds=1.0, **NEW)
    hosts = {"gpu-07": [made(*FAST, seconds=1.0), slow], "gpu-08": []}
    text = table.table(hosts, {"gpu-07": ["x:2 cannot be read"], "gpu-08": []})
    lines = text.splitlines()
    assert lines[0].split()[0] == "HOST" and len(lines) == 6
    assert "no baseline" in lines[1] and lines[2].endswith("worse -93.7%")
    assert "gpu-08: nothing was measured yet." in lines and "gpu-07: x:2 cannot be read." in lines
    assert table.report(hosts)["benchmarks"][0]["topology"] == TOPOLOGY


def test_the_same_deployment_measured_again_is_held_against_the_time_before() -> None:
    again = made(*SLOW, id="again")
    [first, second] = table.rows("gpu-07", [made(*FAST), again])
    assert first["verdict"]["result"] == "no baseline"
    assert (second["verdict"]["against"], second["verdict"]["result"]) == ("b-old", "worse")
    lost = made(*SLOW, id="lost", state="bad", verdict={"result": "worse"})
    [*_rows, last] = table.rows("gpu-07", [made(*FAST), lost, made(*FAST, id="later")])
    assert (last["verdict"]["against"], last["verdict"]["result"]) == ("b-old", "same")


def test_what_was_judged_is_shown_as_it_was_judged() -> None:
    """An inert change is not told by its speed, which says nothing of it."""
    inert = {"result": "inert", "reason": "skipped", "change": 0.316, "low": -0.1, "high": 0.7, "threshold": 0.1}
    tried = made(*FAST, id="tried", state="new", baseline="b-old", verdict={**inert, "arithmetic": []})
    later = made(*FAST, id="later", state="other")
    [_old, row, after] = table.rows("gpu-07", [made(*FAST), tried, later])
    assert (row["verdict"]["against"], row["verdict"]["result"]) == ("b-old", "inert")
    assert after["verdict"]["against"] == "b-old"
    assert table.table({"gpu-07": [made(*FAST), tried]}, {}).splitlines()[2].endswith("  inert")
    served = made(*FAST, id="served", state="new", baseline="b-old", verdict={**inert, "result": "better"})
    [*_rows, row] = table.rows("gpu-07", [made(*FAST), made(*SLOW, id="between"), served])
    assert (row["verdict"]["against"], row["verdict"]["change"]) == ("b-old", 0.316)


def test_a_time_of_nothing_is_not_shown() -> None:
    shape = Measured(SHAPE, 0, (Run(10.0, 30.0, 1.0, 0.0, 8.0),) * 3)
    [row] = table.rows("gpu-07", [made(shapes=(shape,))])
    assert (row["ttft_ms"], row["tpot_ms"]) == (None, 8.0)


def test_missing_looks_at_the_cards_are_told() -> None:
    sample = Sample(2.0, (Card("GPU-1", 99.0, 410.0, 600.0),))
    blind, few, seen = (made(*FAST, seconds=60.0, samples=(sample,) * count) for count in (0, 3, 15))
    text = table.table({"gpu-07": [blind, few, seen]}, {})
    told = [line for line in text.splitlines() if "nvidia-smi answered" in line]
    assert ["none of 30" in told[0], "3 of 30" in told[1], len(told)] == [True, True, 2]
    bare = made(*FAST, topology="no GPU")
    assert "nvidia-smi answered" not in table.table({"gpu-07": [bare, made(*FAST, seconds=4.0)]}, {})


def test_the_report_for_machines_is_stable() -> None:
    told = table.report({"gpu-07": [made(*FAST)]})
    assert told["schema"] == 1
    assert set(told["benchmarks"][0]) == {
        *("host", "id", "at", "release", "patch_sets", "arguments", "state", "profile", "tensor_parallel", "topology"),
        *("shape", "runs", "cold", "tokens_per_second", "ttft_ms", "tpot_ms", "power", "findings", "verdict"),
    }
