# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmarks of a fleet as a table and as JSON, each against the one before. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge, record
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark, Measured
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.sampling import EVERY
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.starved import LEAST_SAMPLES
from ansible_collections.llmfleet.sglang.plugins.module_utils._words import sentences

SCHEMA = 1
HEADS = (
    "HOST",
    "MEASURED (UTC)",
    "RELEASE",
    "ARGUMENTS",
    "SHAPE",
    "TOK/S",
    "TTFT MS",
    "TPOT MS",
    "POWER W",
    "AGAINST LAST",
)
MOST = 12  # of a host: older ones are in its record
FEW = 4  # fewer looks than one in so many: nvidia-smi hung, it was not merely slow


def sentence(benchmark: Mapping[str, Any], against: Mapping[str, Any] | None) -> str:
    """Return a verdict with its arithmetic; the first line has the result and, where there are two, both figures."""
    judged = benchmark.get("verdict") or {}
    if not judged:
        return "Nothing was judged."
    head = f"The benchmark says {judged['result']}: {judged['reason']}."
    if against:
        old = {one.shape: one.median for one in Benchmark.from_dict(against).shapes}
        both = [(old[one.shape], one.median) for one in Benchmark.from_dict(benchmark).shapes if one.shape in old]
        told = "; ".join(f"{before:.5g} before, {now:.5g} now" for before, now in both)
        head += f" Tokens a second: {told} (before: release {against['release']}, measured {against['at']})."
    return "\n".join([head, *(f"  {line}" for line in judged["arithmetic"])])


def fallen_out(variables: Mapping[str, Any]) -> str:
    """Return what is said of a host that the run has lost, or that failed it: whether its benchmark was recorded."""
    if (variables.get("sglang_benchmark_result") or {}).get("benchmark"):
        return "it was measured and that was recorded, but its record could not be read at the end"
    return "it was lost, or failed (see above), and this run recorded nothing there"


def rows(host: str, benchmarks: Sequence[Benchmark]) -> list[dict[str, Any]]:
    """Return a row for each shape of each of a host's newest benchmarks, with its verdict."""
    found: list[dict[str, Any]] = []
    for number, one in enumerate(benchmarks):
        before = judge.shown_against(benchmarks[:number], one)
        judged = {"against": before.id if before else one.baseline, **judge.shown(one, before)}
        found += [_row(host, one, measured, judged) for measured in one.shapes]
    newest = {one.id for one in benchmarks[-MOST:]}
    return [row for row in found if row["id"] in newest]


def _row(host: str, one: Benchmark, measured: Measured, judged: dict[str, Any]) -> dict[str, Any]:
    return {
        "host": host,
        "id": one.id,
        "at": one.at,
        "release": one.release,
        "patch_sets": list(one.patch_sets),
        "arguments": one.arguments_digest[:8],
        "state": one.state,
        "profile": one.profile,
        "tensor_parallel": one.tensor_parallel,
        "topology": one.topology,
        "shape": measured.shape.name,
        "runs": [run.output_tokens_per_second for run in measured.runs],
        "cold": measured.cold,
        "tokens_per_second": measured.median,
        "ttft_ms": _middle([run.ttft_ms for run in measured.runs[measured.cold :]]),
        "tpot_ms": _middle([run.tpot_ms for run in measured.runs[measured.cold :]]),
        "power": _middle([sample.draw for sample in one.samples]),
        "findings": [finding["id"] for finding in one.findings],
        "verdict": judged,
    }


def _middle(values: Sequence[float | None]) -> float | None:
    known = sorted(value for value in values if value)  # 0 is what bench_serving writes where it has seen no token
    return known[len(known) // 2] if known else None


def report(hosts: Mapping[str, Sequence[Benchmark]]) -> dict[str, Any]:
    """Return the same for machines."""
    return {"schema": SCHEMA, "benchmarks": [row for host, found in hosts.items() for row in rows(host, found)]}


def table(hosts: Mapping[str, Sequence[Benchmark]], problems: Mapping[str, Sequence[str]]) -> str:
    """Return a text: a line for each shape of each benchmark, the oldest of a host first, then what has to be known."""
    told = report(hosts)["benchmarks"]
    cells = [_cells(row) for row in told]
    widths = [max(len(line[column]) for line in [HEADS, *cells]) for column in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in [HEADS, *cells]]
    notes = [f"{host}: nothing was measured yet" for host, found in hosts.items() if not found]
    notes += [f"{host}: {text}" for host, texts in problems.items() for text in texts]
    newest = [(host, one, found) for host, found in hosts.items() for one in found[-MOST:]]
    notes += [f"{host}, {one.at[:16]}: {text}" for host, one, found in newest for text in _notes(one, found)]
    return "\n".join([*lines, "", *map(sentences.sentence, notes)] if notes else lines)


def _notes(one: Benchmark, known: Sequence[Benchmark]) -> list[str]:
    """Say what has to be known beside the figures.

    Findings, a baseline that was not measured for it, and whether far too few looks at the cards came back.
    """
    told = [str(finding["message"]) for finding in one.findings]
    if judge.recorded(one.verdict):
        at = next((f" of {each.at[:16]}" for each in known if each.id == one.baseline), "")
        told.append(f"held against the recorded benchmark{at}, and not against one that the trial made")
    due = min(int(one.seconds / EVERY), record.MOST_SAMPLES)
    if one.topology == record.NO_GPU or due < LEAST_SAMPLES or len(one.samples) * FEW > due:
        return told
    seen = len(one.samples) or "none"
    return [*told, f"nvidia-smi answered for {seen} of {due} looks at the cards: their power is hardly known"]


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["host"],
        row["at"][:16].replace("T", " "),
        row["release"],
        row["arguments"],
        row["shape"],
        f"{row['tokens_per_second']:.5g}",
        _number(row["ttft_ms"]),
        _number(row["tpot_ms"]),
        _number(row["power"]),
        judge.words(row["verdict"]),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
