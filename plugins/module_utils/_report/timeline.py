# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the noted times of a cut-over: what took how long, and how long nothing served. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times

# Between a host's clock and the controller's, in seconds; below it, it may be the time that a call took on a busy host.
CLOCKS_AGREE = 30.0
PREPARE, WAIT, READY, DRAIN, STOPPING, STARTING, BACK, PROVING, RECORDING = (
    "prepare",
    "wait",
    "ready",
    "drain",
    "stop",
    "start",
    "back",
    "prove",
    "record",
)
# What begins with a step and lasts until the next one.
_BEGINS = {
    times.BEGIN: DRAIN,
    times.START: STARTING,
    times.BACK: BACK,
    times.READY: PROVING,
    times.ANSWERS: RECORDING,
}


@dataclass(frozen=True)
class Segment:
    """A stretch of a host's timeline. begin, end: seconds since 1970; failed: whether it ended in a failure."""

    kind: str
    begin: float
    end: float
    service: str = ""
    failed: bool = False

    @property
    def seconds(self) -> float:
        """How long it took."""
        return round(max(0.0, self.end - self.begin), 1)

    def as_dict(self) -> dict[str, Any]:
        """Return it as the report holds it."""
        return {**asdict(self), "seconds": self.seconds}


@dataclass(frozen=True)
class Timeline:
    """A host's cut-over. prepared_from: when its preparation began, None if not known; begun: when the cut-over did.

    down: when nothing served, each from and to (None: still); resumed: whether an earlier run had begun it, of which
    the segments are left out.
    """

    segments: tuple[Segment, ...] = ()
    prepared_from: float | None = None
    begun: float | None = None
    down: tuple[tuple[float, float | None], ...] = ()
    resumed: bool = False

    @property
    def down_seconds(self) -> float | None:
        """How long nothing served, in sum; None where it never was so, and where it still is."""
        ended = [end - begin for begin, end in self.down if end is not None]
        return round(sum(ended), 1) if ended and len(ended) == len(self.down) else None

    @property
    def down_since(self) -> float | None:
        """Since when nothing serves; None where something does."""
        return self.down[-1][0] if self.down and self.down[-1][1] is None else None


def read(kept: Mapping[str, Any], ahead: float = 0.0) -> Timeline:
    """Make a timeline of what a host noted. ahead: by how much its clock is ahead of the one that counts (seconds)."""
    shift = ahead if abs(ahead) > CLOCKS_AGREE else 0.0
    steps = [{**one, "at": float(one["at"]) - shift} for one in kept.get("steps", []) if "at" in one]
    for step in steps:
        for name in ("ended", "since"):
            if name in step:
                step[name] = float(step[name]) - shift
    since = kept.get("prepare")
    resumed = bool(steps) and kept.get("first_run", "") != kept.get("run", "")
    # What an earlier run did may be days ago; how long nothing served counts from there all the same.
    begins = [at for at, one in enumerate(steps) if one["step"] == times.BEGIN]
    own = steps[begins[-1] if resumed else begins[0] :] if begins else steps
    return Timeline(
        tuple(_segments(own)),
        float(since) - shift if since is not None else None,
        own[0]["at"] if own else None,
        tuple(_down(steps)),
        resumed,
    )


def _segments(steps: Sequence[Mapping[str, Any]]) -> Iterable[Segment]:
    kind, since, service = "", 0.0, ""
    for step in steps:
        name, at = str(step["step"]), float(step["at"])
        if kind and at > since:
            yield Segment(kind, since, at, service, failed=name == times.FAILED)
        kind, since, service = _BEGINS.get(name, ""), at, str(step.get("service", ""))
        if name == times.STOP:
            ended = float(step.get("ended", at))
            if ended > at:
                yield Segment(STOPPING, at, ended, service)


def _down(steps: Sequence[Mapping[str, Any]]) -> list[tuple[float, float | None]]:
    """From when what served was told to end, until something gave its first right answer.

    What came up by itself, after the run that had stopped the old service died, serves from when on it was ready.
    """
    found: list[tuple[float, float | None]] = []
    serving = True
    for step in steps:
        name, at = step["step"], float(step["at"])
        if "since" in step and found and found[-1][1] is None:
            found[-1] = (found[-1][0], float(step["since"]))
            serving = True
        if name == times.STOP and serving:
            found.append((at, None))
            serving = False
        elif name == times.START:
            serving = False  # until it answers; where nothing had served before, nothing was down
        elif name == times.READY:
            serving = True
            if found and found[-1][1] is None:
                found[-1] = (found[-1][0], at)
    return found


def undrained(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return the segments of a host that no load balancer was told of: before its stop, no request was let end."""
    return tuple(replace(one, kind=READY) if one.kind == DRAIN else one for one in segments)


def with_prepare(timeline: Timeline, gate: float | None) -> tuple[Segment, ...]:
    """Return all segments, with the preparation and the wait for its turn before them.

    gate: when the first host of the fleet was cut over, before which all hosts were prepared side by side.
    """
    since, begun = timeline.prepared_from, timeline.begun
    if since is None or begun is None or begun < since:
        return timeline.segments
    end = min(begun, max(since, gate if gate is not None else begun))
    before = [Segment(PREPARE, since, end), Segment(WAIT, end, begun)]
    return (*(one for one in before if one.seconds >= 1), *timeline.segments)


def duration(seconds: float) -> str:
    """Return seconds as people read them: 4.2 s, 42 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def down_words(noted: Mapping[str, Any]) -> str:
    """Say of what a host noted how long nothing served in this run; "" where nothing was down by it.

    noted: what the module cutover_info returned.
    """
    if not noted.get("mine"):
        return ""
    timeline = read(noted.get("times") or {})
    earlier = ", counted from an earlier run on" if timeline.resumed else ""
    if timeline.down_since is not None:
        return f"Nothing serves for {duration(max(0.0, float(noted['now']) - timeline.down_since))} now{earlier}."
    if timeline.down_seconds is not None:
        return f"Nothing served for {duration(timeline.down_seconds)}{earlier}."
    return ""
