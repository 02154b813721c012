# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a report's page that show how fast hosts were measured. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import detail, plots
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.detail import COMPARED, Host, chip
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.html import Html, tag, text
from ansible_collections.llmfleet.sglang.plugins.module_utils._words.sentences import sentence

FEW = 3  # measured hosts that are shown unfolded


def verdict(one: Mapping[str, Any] | None) -> Html:
    """Return the verdict of a benchmark on its colour; nothing where there is none."""
    judged = (one or {}).get("verdict")
    if not judged:
        return text()
    return chip(judge.words(judged), detail.VERDICTS.get(judged["result"], "calm"))


def measured(hosts: Sequence[Host]) -> Html | None:
    """Return what this run measured; None where it measured nothing."""
    return _measurements("Throughput and power", [(host["host"], host["benchmark"]) for host in hosts])


def shown(host: Host) -> Mapping[str, Any] | None:
    """Return the benchmark that a host's row tells: this run's, or an earlier one where it was asked for that alone."""
    found: Mapping[str, Any] | None = host["last_measured"] if host["state"] == COMPARED else host["benchmark"]
    return found


def compared(hosts: Sequence[Host]) -> Html | None:
    """Return what earlier runs measured, where it was asked for that alone."""
    rows = [(host["host"], host["last_measured"]) for host in hosts if host["state"] == COMPARED]
    return _measurements("Throughput and power, measured before this run", rows)


def _measurements(head: str, rows: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Html | None:
    known = [(host, one) for host, one in rows if one]
    if not known:
        return None
    few = len(known) <= FEW
    parts = [_benchmark(host, one) if few else _folded(host, one) for host, one in known]
    return tag("section", tag("h2", head), parts)


def _folded(host: str, one: Mapping[str, Any]) -> Html:
    """Of many measured hosts, each folded up, and those unfolded that lost or could not be judged."""
    result = (one["verdict"] or {}).get("result", "")
    head = tag("summary", tag("b", host), " ", verdict(one))
    return tag("details", head, tag("div", _benchmark(host, one)), open=result in ("worse", "no verdict"))


def _benchmark(host: str, one: Mapping[str, Any]) -> Html:
    baseline = one["baseline"]
    against = (
        f"Baseline: {baseline['release']}, measured {detail.when(baseline['at'])}{_recorded(one)}."
        if baseline
        else "There is no baseline: nothing of its kind was measured here before."
    )
    judged = one["verdict"] or {"result": "no verdict"}
    reason = sentence(detail.why({**one, "verdict": judged}))
    drawn = [figures for shape in one["shapes"] for figures in (shape["now"], shape["before"]) if figures]
    most = max((value for figures in drawn for value in (figures["median"] or 0, *figures["runs"])), default=0)
    key = [("b-before", "baseline")] if baseline else []
    items = [
        tag("li", tag("i", class_=f"key {class_}"), words)
        for class_, words in [*key, ("b-now", f"newest, {one['release']}")]
    ]
    return text(
        tag("h3", host),
        tag("p", chip(judged["result"], detail.VERDICTS.get(judged["result"], "calm")), " ", reason),
        tag(
            "p", f"Measured {detail.when(one['at'])}. {against} Output tokens a second; a dot is a run.", class_="faint"
        ),
        tag("ul", items, class_="legend"),
        [_shape(shape, most) for shape in one["shapes"]],
        _power(one),
        _arithmetic(one),
    )


def _recorded(one: Mapping[str, Any]) -> str:
    return ", a recorded benchmark and not one that the trial made" if judge.recorded(one["verdict"]) else ""


def _shape(shape: Mapping[str, Any], most: float) -> Html:
    now, before = shape["now"], shape["before"]
    figure = f"{now['median'] or 0:g} tok/s"
    value = text(tag("b", figure), tag("br"), f"was {before['median'] or 0:g}") if before else tag("b", figure)
    label = f"{shape['name']}: {figure}"
    return tag(
        "div",
        tag("div", shape["name"], class_="name"),
        tag("div", plots.throughput(now, before, most, label), class_="drawn"),
        tag("div", value, class_="value"),
        class_="row shape",
    )


def _power(one: Mapping[str, Any]) -> Html | None:
    now, before = one["power"], one["baseline_power"]
    if not now:
        return tag("p", "No power was told by the cards.", class_="faint")
    was = f", was {before['median']:.0f} W" if before else ""
    share = f" of {now['limit']:.0f} W" if now["limit"] else ""
    busy = f"; utilisation of the cards {now['utilisation']:.0f} %" if now["utilisation"] is not None else ""
    words = f"Power of all cards, median {now['median']:.0f} W{share}{was}{busy}"
    return tag("div", tag("p", f"{words}:"), plots.power(now, before, words))


def _arithmetic(one: Mapping[str, Any]) -> Html | None:
    lines = [
        line
        for shape in one["shapes"]
        for line in (f"{shape['name']}:", *shape["verdict"]["arithmetic"])
        if shape["verdict"]["arithmetic"]
    ]
    if not lines:
        return None
    return tag("details", tag("summary", "The arithmetic of the verdict"), tag("div", tag("pre", "\n".join(lines))))
