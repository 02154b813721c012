# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report and the table of benchmark.yml hold a benchmark against the same other one, and say the same of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import record, table
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark, Measured
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.aim import Places
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import measured, noted

from tests.unit.benchmark.case import ALONE, FAST, SHAPE, SLOW, made, runs

JUDGED: dict[str, Any] = {"reason": "r", "change": -0.5, "low": -0.6, "high": -0.4, "threshold": 0.1, "arithmetic": []}


def one(number: int, shape: record.Shape = SHAPE, **changes: Any) -> Benchmark:
    """The benchmark of this number, all of which are equally fast."""
    given = {"shapes": (Measured(shape, 1, runs(*FAST)),), "id": f"b{number}", "state": f"s{number}", **changes}
    return made(**given)


@pytest.mark.parametrize(
    ("kept", "baseline", "result"),
    [
        ([one(0), one(1, ALONE), one(2)], "b0", "same"),  # shapes A, B, A
        ([one(0), one(1, topology="4 x RTX PRO 6000"), one(2)], "b0", "same"),
        ([one(0, ALONE), one(1)], "", "no baseline"),
        ([one(0), one(1, verdict={**JUDGED, "result": "worse"}), one(2)], "b0", "same"),
        ([one(0), one(1), one(2, baseline="b0", verdict={**JUDGED, "result": "worse"})], "b0", "worse"),
        ([one(0), one(1, verdict={**JUDGED, "result": "no baseline"})], "", "no baseline"),
        # More lines ago than a report is handed the newest of.
        ([one(0), *(one(number, ALONE) for number in range(1, 9)), one(9)], "b0", "same"),
    ],
)
def test_table_and_report_take_the_same_baseline(
    tmp_path: Path, kept: Sequence[Benchmark], baseline: str, result: str
) -> None:
    place = tmp_path / "state" / "qwen" / record.NAME
    place.parent.mkdir(parents=True)
    for each in kept:
        record.append(place, each)
    row = table.rows("gpu-07", kept)[-1]
    told = noted.look(Places(tmp_path / "state", tmp_path / "releases", "qwen"), "", 0.0)["benchmarks"]
    shown = measured.last(told)
    assert (row["verdict"]["against"], row["verdict"]["result"]) == (baseline, result)
    assert ((shown["baseline"] or {}).get("id", ""), shown["verdict"]["result"]) == (baseline, result)
    assert row["verdict"]["change"] == shown["verdict"]["change"]
    if result == "same":
        assert shown["shapes"][0]["before"]["median"] == 3740.0


def test_a_change_of_speed_is_found_by_both() -> None:
    kept = [one(0), one(1, ALONE), one(2, shapes=(Measured(SHAPE, 1, runs(*SLOW)),))]
    shown = measured.last([{**each.as_dict(), "samples": []} for each in kept])
    assert shown["verdict"]["result"] == table.rows("gpu-07", kept)[-1]["verdict"]["result"] == "worse"
