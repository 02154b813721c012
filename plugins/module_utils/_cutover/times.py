# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the steps of a cut-over happened, kept on the host by whoever takes them. Private to the collection.

`<state>/<instance>/times.json` holds the last cut-over, or going back, of an instance, in seconds since 1970 by the
host's own clock:

    {"schema": 1,
     "run": "0123456789ab",          the run that took the last step, as the lock names it; "" where none held it
     "first_run": "0123456789ab",    the one that took the first: another one, if that died under way
     "prepare": 1796034600.0,        when the run of the last step took the lock, null where none held it
     "steps": [{"step": "begin", "at": 1796034720.0},           what served is kept; from here on it may be stopped
               {"step": "stop", "at": 1796034725.0, "service": "sglang-kimi", "ended": 1796034731.2},
               {"step": "start", "at": 1796034731.9, "service": "sglang-qwen", "why": "the unit is inactive"},
               {"step": "ready", "at": 1796034770.3},           the first right answer; "since", here and with a stop:
                                                                from when on it was ready that nobody had asked yet
               {"step": "answers", "at": 1796034772.8},         all answers were right
               {"step": "failed", "at": …},                     it gave none, or wrong ones
               {"step": "back", "at": …, "services": […]},      what served before was started again
               {"step": "verdict", "at": …}]}                   the new service is recorded as the one that serves

A run that begins when the last one has come to its end begins the file anew; one that finds a cut-over which never
came to its end goes on with it. A run that changes nothing writes nothing. Not to be able to write is no reason to
fail: the times serve the report alone.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock

NAME = "times.json"
SCHEMA = 1
BEGIN, STOP, START, READY, ANSWERS, FAILED, BACK, VERDICT = (
    "begin",
    "stop",
    "start",
    "ready",
    "answers",
    "failed",
    "back",
    "verdict",
)
# A host that is tried again and again and never serves is no reason for a file without end.
MOST_STEPS = 200


def read(path: Path) -> dict[str, Any]:
    """Return what is kept; empty where nothing is, or nothing that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    sound = isinstance(value, dict) and value.get("schema") == SCHEMA and isinstance(value.get("steps"), list)
    return value if sound else {}


def under_way(kept: dict[str, Any]) -> bool:
    """Tell whether the cut-over, or the going back, has begun and not come to its end."""
    steps = [str(one.get("step")) for one in kept.get("steps", [])]
    if not steps:
        return False
    return not (steps[-1] == VERDICT or (steps[-1] == ANSWERS and _last(steps, BACK) > _last(steps, START)))


def _last(steps: list[str], step: str) -> int:
    return len(steps) - 1 - steps[::-1].index(step) if step in steps else -1


def note(path: Path | None, step: str, at: float, **more: Any) -> None:
    """Note a step. path: the instance's file, None notes nowhere; at: seconds since 1970; more: what else is known."""
    if path is None:
        return
    with contextlib.suppress(OSError):
        before, holder = read(path), _holder(path.parent.parent / "lock.json")
        run, since = (holder.run, holder.taken_at) if holder else ("", None)
        if not before or (not under_way(before) and (before["run"] != run or not run)):
            before = {"schema": SCHEMA, "first_run": run, "steps": []}
        steps = [*before["steps"], {"step": step, "at": round(at, 2), **more}][-MOST_STEPS:]
        text = json.dumps({**before, "run": run, "prepare": since, "steps": steps}, indent=2) + "\n"
        File(text.encode(), 0o644).write(path)


def note_answers(
    path: Path | None, ready: float | None, ended: float, problem: bool, since: float | None = None
) -> None:
    """Note what asking a service came to, if a cut-over is under way: a service that is asked at rest is none.

    ready: its first right answer; since: from when on it was ready, if that was before anybody asked.
    """
    if path is None or not under_way(read(path)):
        return
    if ready is not None:
        note(path, READY, ready, **({} if since is None else {"since": round(since, 2)}))
    note(path, FAILED if problem else ANSWERS, ended)


def unanswered_since(path: Path) -> float | None:
    """Return since when nothing has answered after an earlier run's stop: the end of the stop, or of wrong answers.

    None where something has answered since, and in a cut-over that the run which holds the host has begun itself.
    """
    kept, holder = read(path), _holder(path.parent.parent / "lock.json")
    earlier = under_way(kept) and kept.get("first_run") != (holder.run if holder else "")
    found = None
    for one in kept["steps"] if earlier else []:
        if one.get("step") in (STOP, FAILED):
            found = float(one.get("ended", one["at"]))
        elif one.get("step") == READY:
            found = None
    return found


def _holder(path: Path) -> lock.Lock | None:
    try:
        return lock.read(path)
    except (OSError, lock.LockError):
        return None
