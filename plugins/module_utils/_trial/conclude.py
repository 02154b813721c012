# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial came to: its record, and what an operator is told. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import running
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.judge import INERT, recorded
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import change
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial.record import FAILED_START, NOT_MEASURED
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.compare import (
    BETTER,
    NO_BASELINE,
    NO_VERDICT,
    SAME,
    WORSE,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._words.sentences import sentence

BACK, KEEP = "back", "keep"
GOOD = (BETTER, SAME)
# Whether it is in force that something was taken out.
_GONE, _STILL = "yes: the process has it no more", "no: the process has it still"


def fails_on(same: str) -> list[str]:
    """Return the verdicts after which a host goes back to the baseline. same: back or keep, the operator's choice."""
    return [WORSE, NO_VERDICT, NO_BASELINE, INERT, *([] if same == KEEP else [SAME])]


@dataclass(frozen=True)
class Outcome:
    """How the cut-over to the change ended.

    cause: why the host went back, "" if it did not; measured: whether a benchmark of the change was begun; kept,
    restored: what serves now; release: the change's; gate: whether it opened the gate of the fusion; fails_on: the
    verdicts after which it was to go back.
    """

    cause: str
    measured: bool
    kept: bool
    restored: bool | None
    release: str
    gate: bool
    fails_on: Sequence[str] = tuple(fails_on(BACK))


def conclude(
    at: str,
    trial: Mapping[str, Any],
    baseline: Benchmark,
    candidate: Benchmark | None,
    patches: Sequence[Mapping[str, Any]],
    outcome: Outcome,
) -> dict[str, Any]:
    """Return a trial's line. patches: each edit of the change's release; at: now, UTC."""
    verdict = dict(candidate.verdict or {}) if candidate else None
    if verdict:
        result, reason = str(verdict["result"]), str(verdict["reason"])
    else:
        result, reason = (NOT_MEASURED if outcome.measured else FAILED_START), outcome.cause
    faster = f"{result}: {_first(reason)}"
    if verdict and result not in outcome.fails_on and not outcome.kept:
        # What failed after it was measured: a change that was to stay and does not is no win, nor without a cost.
        result, reason = FAILED_START, f"It was {result} ({_first(reason)}), and did not stay: {outcome.cause}"
    return {
        "at": at,
        "host": baseline.host,
        "instance": baseline.instance,
        "profile": baseline.profile,
        "version": baseline.version,
        "commit": baseline.commit,
        "tensor_parallel": candidate.tensor_parallel if candidate else baseline.tensor_parallel,
        "topology": baseline.topology,
        "change": change.shown(trial),
        "gate": outcome.gate,
        "result": result,
        "reason": reason,
        "verdict": verdict,
        "baseline": baseline.id,
        "candidate": candidate.id if candidate else "",
        "baseline_figures": figures(baseline),
        "candidate_figures": figures(candidate),
        "baseline_release": baseline.release,
        "candidate_release": outcome.release,
        "kept": outcome.kept,
        "restored": None if outcome.kept else outcome.restored,
        "facts": facts(trial, candidate, patches, faster),
    }


def figures(benchmark: Benchmark | None) -> dict[str, float]:
    """Return the median of each shape."""
    return {one.shape.name: one.median for one in benchmark.shapes} if benchmark else {}


def facts(
    trial: Mapping[str, Any], candidate: Benchmark | None, patches: Sequence[Mapping[str, Any]], faster: str
) -> list[dict[str, Any]]:
    """Return for each part of a change three facts apart: patched, active, faster."""
    seen = change.shown(trial)
    rows: list[dict[str, Any]] = []
    for name in seen["patch_sets"]:
        patched = [
            f"{one['id']}: {one['state']} in {one['file']}, SHA-256 {one['digest'] or 'unknown'}"
            for one in patches
            if one.get("patch_set") == name
        ]
        rows.append({"what": f"patch set {name}", "patched": patched, "active": _path(name, "patch_sets", candidate)})
    for flag, value in seen["arguments"].items():
        if value is None or value is False:
            rows.append({"what": f"--{flag} taken out", "patched": [], "active": _taken_out(flag, candidate)})
            continue
        active = _path(flag, "arguments", candidate) or _argument(flag, value, candidate)
        rows.append({"what": f"--{flag} {value}", "patched": [], "active": active})
    for name, value in seen["environment"].items():
        what = f"{name} taken out" if value is None else f"{name}={value}"
        rows.append({"what": what, "patched": [], "active": _variable(name, value, candidate)})
    nothing = "unknown: it never served" if candidate is None else "unknown: nothing tells"
    return [{**row, "active": row["active"] or nothing, "faster": faster} for row in rows]


def _path(name: str, kind: str, candidate: Benchmark | None) -> str:
    """Say whether the path is active that something of a change asks for; "" where it asks for none."""
    for one in candidate.paths if candidate else ():
        if name in one.get("by", {}).get(kind, ()):
            word = {True: "yes", False: "no"}.get(one.get("active"), "unknown")  # type: ignore[arg-type]
            return f"{word}: {one.get('evidence')}"
    return ""


def _taken_out(flag: str, candidate: Benchmark | None) -> str:
    if candidate is None:
        return ""
    return _STILL if flag in candidate.arguments else _GONE


def _argument(flag: str, value: Any, candidate: Benchmark | None) -> str:
    if candidate is None or flag not in candidate.resolved:
        return ""
    told = candidate.resolved[flag]
    same = str(told).lower() == str(value).lower()
    return f"{'yes' if same else 'no'}: /server_info says {told}"


def _variable(name: str, value: str | None, candidate: Benchmark | None) -> str:
    """Say whether the process had a variable with the value that was tried; of one for a path, whether it is taken."""
    how = candidate.tried.get(name) if candidate else None
    if how is None:  # it never served, or was measured before values were compared
        return ""
    if value is None:
        return _GONE if how == running.AS_ASKED else _STILL
    if how != running.AS_ASKED:
        return "no: the process has it not" if how == running.ABSENT else "no: the process has another value"
    return _path(name, "environment", candidate) or "yes: the process has it"


def summary(line: Mapping[str, Any]) -> str:
    """Return what an operator is told: the verdict with both figures, the three facts, and what serves now."""
    head = sentence(f"{line['result']}: {line['reason']}")
    lines = [f"Tried on {line['host']}: {change.words(line['change'])}", head]
    for shape, before in line["baseline_figures"].items():
        after = line["candidate_figures"].get(shape)
        now = "not measured" if after is None else f"{after:.5g} tokens a second"
        lines.append(f"  {shape}: {before:.5g} tokens a second before, {now} with the change")
    lines += [f"  {row}" for row in (line["verdict"] or {}).get("arithmetic", [])]
    for one in line["facts"]:
        lines.append(f"{one['what']}:")
        lines += [f"  patched: {text}" for text in one["patched"]]
        lines += [f"  active: {one['active']}", f"  faster: {one['faster']}"]
    if recorded(line["verdict"]):
        lines.append("The baseline is a recorded benchmark, and was not measured in this trial.")
    lines.append(_serves(line))
    return "\n".join(lines)


def _serves(line: Mapping[str, Any]) -> str:
    if line["kept"]:
        return (
            f"The host serves the change now (release {line['candidate_release']}). Put it into the inventory to "
            "deploy it everywhere; the next deployment without it takes it back."
        )
    if line["restored"]:
        return f"The host serves the baseline again (release {line['baseline_release']})."
    return (
        "The host does not serve the baseline again. The message with which the run ends says what it serves; "
        "llmfleet.sglang.rollback goes back."
    )


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]
