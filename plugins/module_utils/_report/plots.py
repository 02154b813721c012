# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots as plain SVG, made on the controller. Private to the collection.

Not by a library: one for the browser would have to be pinned, shipped and trusted, and would show nothing in a mail, in
print or where scripts are off; one for Python would be a heavy dependency of every controller. What is drawn here is
bars, ticks and a line. Positions across are percent and heights are pixels, so that a plot is as wide as its place and
its letters stay as large as the page's. Colours are classes, which the page's style sheet fills in for both themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report.html import Html, tag, text
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.timeline import PREPARE, WAIT, duration

BAR, GAP = 18, 6
STEPS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0)
MOST_TICKS = 5
POWER_HEIGHT = 96
KINDS = {
    "prepare": "prepared, before anything was stopped",
    "wait": "waited for its turn",
    "ready": "made ready to be stopped",
    "drain": "let requests end",
    "stop": "stopped and proven gone",
    "start": "started, until the first right answer",
    "back": "the old service started again",
    "prove": "asked for all answers",
    "record": "measured, where asked, and recorded",
}
Segments = Sequence[Mapping[str, Any]]


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _svg(height: int, label: str, *children: Html | Iterable[Html], class_: str = "plot") -> Html:
    return tag(
        "svg", tag("title", label), *children, class_=class_, width="100%", height=height, role="img", aria_label=label
    )


def ticks(seconds: float) -> list[float]:
    """Return round times from 0 on, at most MOST_TICKS, that lie within so many seconds."""
    step = next((one for one in STEPS if seconds / one < MOST_TICKS), max(STEPS[-1], seconds / (MOST_TICKS - 1)))
    return [number * step for number in range(int(seconds // step) + 1)]


def axis(seconds: float) -> Html:
    """Return the axis of a timeline that is so many seconds long."""
    marks: list[Html] = []
    for at in ticks(seconds):
        where = 100 * at / seconds if seconds else 0.0
        anchor = "start" if where < 5 else "end" if where > 93 else "middle"
        marks.append(tag("text", duration(at), x=_percent(where), y=12, text_anchor=anchor))
        marks.append(tag("line", x1=_percent(where), x2=_percent(where), y1=16, y2=20, class_="tick"))
    return _svg(20, f"axis of {duration(seconds)}", marks, class_="plot axis")


def timeline(segments: Segments, down: Segments, begin: float, end: float, label: str) -> Html:
    """Return one host's timeline from `begin` to `end`, with a line under it where nothing served."""
    whole = max(end - begin, 1.0)
    grid = [
        tag("line", x1=_percent(100 * at / whole), x2=_percent(100 * at / whole), y1=0, y2=BAR + GAP, class_="grid")
        for at in ticks(whole)
    ]
    boxes = [_box(one, begin, whole) for one in segments if one["end"] > begin]
    lines = [_down(one, begin, end, whole) for one in down if (one["end"] or end) > begin]
    return _svg(BAR + GAP, label, grid, boxes, lines)


def _box(one: Mapping[str, Any], begin: float, whole: float) -> Html:
    left = max(0.0, one["begin"] - begin)
    width = max(one["end"] - begin - left, 0.0)
    failed = ", and failed" if one["failed"] else ""
    words = " ".join(filter(None, [one["service"], f"{KINDS[one['kind']]}{failed}: {duration(one['seconds'])}"]))
    class_ = f"s-{one['kind']}{' s-failed' if one['failed'] else ''}"
    # As wide as a hair at least, or what was quick could not be seen.
    size = {"x": _percent(100 * left / whole), "width": _percent(max(100 * width / whole, 0.3))}
    return tag("rect", tag("title", words), y=0, height=BAR, class_=class_, **size)


def _down(one: Mapping[str, Any], begin: float, end: float, whole: float) -> Html:
    left, right = max(0.0, one["begin"] - begin), (one["end"] or end) - begin
    size = {"x": _percent(100 * left / whole), "width": _percent(max(100 * (right - left) / whole, 0.3))}
    words = f"nothing served for {duration(right - left)}" if one["end"] else "nothing serves since"
    return tag("rect", tag("title", words), y=BAR + 1, height=4, class_="s-down", **size)


def cut_over_only(segments: Segments) -> Segments:
    """Leave out what happened while the old service served: it may have taken hours where the rest took a minute."""
    return [one for one in segments if one["kind"] not in (PREPARE, WAIT)]


def legend(kinds: Iterable[str], *, failed: bool, down: bool) -> Html:
    """Return what the colours mean, of those that are there."""
    rows = [(f"s-{kind}", KINDS[kind]) for kind in KINDS if kind in set(kinds)]
    rows += [("s-failed", "failed")] if failed else []
    rows += [("s-down", "nothing served")] if down else []
    items = [tag("li", tag("i", class_=f"key {class_}"), words) for class_, words in rows]
    return tag("ul", items, class_="legend")


def throughput(now: Mapping[str, Any], before: Mapping[str, Any] | None, most: float, label: str) -> Html:
    """Return two bars, the baseline's over the newest's, with a dot for each run. most: what is as wide as the plot."""
    rows = ([("b-before", before)] if before else []) + [("b-now", now)]
    drawn: list[Html] = []
    for number, (class_, figures) in enumerate(rows):
        top = number * (BAR + GAP)
        width = _percent(100 * (figures["median"] or 0.0) / most if most else 0.0)
        drawn.append(tag("rect", x=0, y=top, width=width, height=BAR, class_=class_))
        drawn += [
            tag("circle", cx=_percent(100 * run / most if most else 0.0), cy=top + BAR / 2, r=2.5, class_="run")
            for run in figures["runs"]
        ]
    return _svg(len(rows) * (BAR + GAP) - GAP, label, drawn)


def power(now: Mapping[str, Any], before: Mapping[str, Any] | None, label: str) -> Html:
    """Return the watts over the time of a benchmark, beside those of its baseline, under the limit of the cards."""
    curves = [one for one in (before, now) if one]
    points = [point for one in curves for point in one["points"]]
    seconds = max((point[0] for point in points), default=0.0) or 1.0
    limit = max([one["limit"] or 0.0 for one in curves] + [point[1] for point in points]) or 1.0
    lines = [_curve(before, seconds, limit, "c-before")] if before else []
    lines.append(_curve(now, seconds, limit, "c-now"))
    # What is stretched to the width of its place has no letters in it.
    inner = tag("svg", lines, viewbox="0 0 1000 100", preserveaspectratio="none", width="100%", height=POWER_HEIGHT)
    known = max((one["limit"] or 0.0 for one in curves), default=0.0)
    top = tag("line", x1="0", x2="100%", y1=1, y2=1, class_="limit") if known else None
    bottom = tag("line", x1="0", x2="100%", y1=POWER_HEIGHT, y2=POWER_HEIGHT, class_="tick")
    words = [
        tag("text", f"{limit:.0f} W{', the limit of all cards' if known else ''}", x="0", y=14),
        tag("text", "0 s", x="0", y=POWER_HEIGHT + 14),
        tag("text", duration(seconds), x="100%", y=POWER_HEIGHT + 14, text_anchor="end"),
    ]
    return _svg(POWER_HEIGHT + 20, label, inner, text(top), bottom, words)


def _curve(one: Mapping[str, Any], seconds: float, limit: float, class_: str) -> Html:
    places = " ".join(f"{1000 * at / seconds:.1f},{100 - 100 * watts / limit:.1f}" for at, watts in one["points"])
    return tag("polyline", points=places, class_=class_, vector_effect="non-scaling-stroke")
