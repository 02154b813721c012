# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole run as data: what became of each host, what changed and why, how long it took. Private to the collection.

This is the JSON that is written beside the page, and all that the page shows. SCHEMA counts up when a field goes or
changes its meaning; that fields are added is no change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide, measured, override, timeline
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.timeline import Timeline
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import change

SCHEMA = 1
KINDS = ("deployment", "trial", "benchmark", "rollback", "stop", "start")
# What was asked for, by the word of a host's verdict.
_ASKED = {"went back": "rollback", "stopped": "stop", "started": "start"}
COMPARED = "compared"
Vars = Mapping[str, Any]
# What of a trial's line is shown.
_TRIAL = (
    *("at", "change", "result", "reason", "verdict", "baseline_figures", "candidate_figures", "kept", "restored"),
    "facts",
)


@dataclass(frozen=True)
class Run:
    """What is reported of. made_at: UTC, as ISO 8601; by: who ran it; version: of the collection."""

    kind: str
    fleet: str
    made_at: str
    run: str = ""
    by: str = ""
    version: str = ""
    check: bool = False


def report(
    run: Run,
    hosts: Sequence[str],
    hostvars: Mapping[str, Vars],
    alive: Collection[str],
    findings: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Return the report of a run, free of secrets.

    hostvars: of each host its facts and variables; alive: the hosts that Ansible still reaches; findings: by host, what
    preflight and the rules found.
    """
    taking_part = [host for host in hosts if "sglang_deployment" in hostvars[host]]
    lines = {host: _timeline(hostvars[host]) for host in taking_part}
    gate = min((one.begun for one in lines.values() if one is not None and one.begun is not None), default=None)
    rows = [
        _host(host, hostvars[host], host in alive, lines[host], gate, (findings or {}).get(host, ()), run)
        for host in taking_part
    ]
    secrets = {one for host in taking_part for one in hide.known(hostvars[host])}
    found = {
        "schema": SCHEMA,
        **asdict(run),
        "instances": sorted({row["instance"] for row in rows}),
        "models": sorted({row["model"] for row in rows}),
        "warnings": _warnings(run, rows, override.lines(taking_part, hostvars)),
        "summary": _summary(rows),
        "hosts": rows,
    }
    plain: dict[str, Any] = hide.everywhere(found, secrets)
    return plain


def kind_of(hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> str:
    """Return what kind of run this was, by what its hosts know: one of KINDS."""
    known = [hostvars[host] for host in hosts]
    asked = [_ASKED.get(str((one.get("sglang_verdict") or {}).get("asked", ""))) for one in known]
    if any(asked):
        return str(next(filter(None, asked)))
    return "trial" if any(one.get("sglang_trial_base") for one in known) else "deployment"


def _timeline(variables: Vars) -> Timeline | None:
    noted = variables.get("sglang_noted") or {}
    if not noted.get("mine"):
        return None
    return timeline.read(noted.get("times") or {}, float(noted.get("clock_ahead") or 0.0))


def _host(
    host: str,
    variables: Vars,
    alive: bool,
    line: Timeline | None,
    gate: float | None,
    findings: Sequence[Mapping[str, Any]],
    run: Run,
) -> dict[str, Any]:
    deployment, noted = variables["sglang_deployment"], variables.get("sglang_noted") or {}
    fate = recap.fate(host, variables, alive)
    benchmarks = noted.get("benchmarks") or []
    figures = measured.of_this_run(benchmarks, variables)
    earlier = {} if figures else measured.last(benchmarks)
    state, message, failed = fate.state, fate.message, fate.failed
    if run.kind == "benchmark" and "sglang_verdict" not in variables:
        state, message, failed = _measured(variables, bool(figures), alive)
    elif run.kind == "trial" and run.check and state == "untouched":
        state, message = "to try", f"A check run: it would try {tried(variables)}."
    # Of an earlier benchmark the findings are news only where such alone are compared.
    shown = earlier if state == COMPARED else figures
    listen = deployment.get("listen") or {}
    return {
        "host": host,
        "address": f"{listen.get('host', '')}:{listen.get('port', '')}",
        "instance": str(deployment.get("name", "")),
        "service": str(deployment.get("service", "")),
        "model": str(deployment.get("served_model_name", "")),
        "state": state,
        "failed": failed,
        "message": message,
        "serves": _serves(state, noted, _release(variables)),
        "release": _release(variables),
        "commit": noted.get("commit", ""),
        "checkpoint": noted.get("checkpoint", ""),
        "served_before": list(noted.get("served") or []) if line else [],
        "why": _why(variables) if line else "",
        "changes": list(noted.get("changes") or []) if line else [],
        "patches": list(noted.get("patches") or []),
        "without_trial": bool(override.told_by(variables)),
        "timeline": _told(line, gate, drained="sglang_drain_tasks" in variables),
        "down_seconds": line.down_seconds if line else None,
        "down_since": line.down_since if line else None,
        "clock_ahead": float(noted.get("clock_ahead") or 0.0),
        "findings": [_finding(one) for one in (*findings, *_of_benchmark(shown))],
        "benchmark": figures or None,
        "last_measured": earlier or None,
        "trial": _trial(variables) if run.kind == "trial" else None,
        "problems": list(noted.get("problems") or []),
    }


def _measured(variables: Vars, so: bool, alive: bool) -> tuple[str, str, bool]:
    """State, message and whether that is a failure, where a benchmark was all that was asked for."""
    result, prepared = variables.get("sglang_benchmark_result") or {}, variables.get("sglang_prepared") or {}
    if so and alive:
        return "measured", "It was measured, and nothing was changed.", False
    if alive and not override.true(variables.get("sglang_benchmark_measure", True)):
        return COMPARED, "Nothing was measured, as was asked for: what was measured before is compared.", False
    if alive and result.get("skipped"):
        return "to measure", "A check run: it would be measured.", False
    why = "" if so else str(prepared.get("message") or result.get("msg") or "")
    return "not measured", why or "It was not measured, or the host was lost. Nothing was changed.", True


def tried(variables: Vars) -> str:
    """Return what a trial changes, in words."""
    return change.words(variables.get("sglang_trial") or {})


def _release(variables: Vars) -> str:
    """The release that the host was to serve."""
    noted, built = variables.get("sglang_noted") or {}, variables.get("sglang_build_release") or {}
    return str(noted.get("release") or built.get("id", ""))


def _serves(state: str, noted: Vars, release: str) -> str:
    """Say what serves there after the run, as far as that is known."""
    if state in ("new", "unchanged", "drained", "started", "measured", "not measured", "compared", "to measure"):
        return release
    if state == "went back":
        return ", ".join(noted.get("served") or []) or "nothing"
    return {"broken": "see below", "lost": "not known", "stopped": "nothing"}.get(state, "as before")


def _why(variables: Vars) -> str:
    return str((variables.get("sglang_service_plan") or {}).get("reason", ""))


def _told(line: Timeline | None, gate: float | None, *, drained: bool) -> dict[str, Any] | None:
    if line is None:
        return None
    segments = timeline.with_prepare(line, gate)
    return {
        "segments": [one.as_dict() for one in (segments if drained else timeline.undrained(segments))],
        "down": [{"begin": begin, "end": end} for begin, end in line.down],
        "resumed": line.resumed,
    }


def _of_benchmark(shown: Vars) -> list[dict[str, Any]]:
    return [{**one, "kind": "benchmark"} for one in shown.get("findings") or []]


def _finding(one: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: str(one.get(name) or "") for name in ("id", "kind", "severity", "message", "evidence", "advice")}
    return {**texts, "accepted": bool(one.get("accepted"))}


def _trial(variables: Vars) -> dict[str, Any] | None:
    """The trial that this run recorded; None where it tried nothing."""
    line = (variables.get("sglang_trial_result") or {}).get("trial")
    return {name: line.get(name) for name in _TRIAL} if line else None


def _warnings(run: Run, rows: Sequence[Mapping[str, Any]], overridden: Sequence[str]) -> list[str]:
    found = ["This was a check run: nothing was done, and what is said here is what would be."] if run.check else []
    found += overridden
    skewed = [row["host"] for row in rows if abs(row["clock_ahead"]) > 60]
    if skewed:
        found.append(
            f"The clocks of {', '.join(skewed)} differ from the controller's by more than a minute. Times are shown by "
            "the controller's clock."
        )
    return found


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    down = [row["down_seconds"] for row in rows if row["down_seconds"] is not None]
    return {
        "hosts": len(rows),
        "failed": sum(row["failed"] for row in rows),
        "states": dict(Counter(row["state"] for row in rows).most_common()),
        "down_longest_seconds": max(down, default=None),
        "down_still": sum(row["down_since"] is not None for row in rows),
    }
