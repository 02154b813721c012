# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML page that needs nothing else: no network, no script, no font. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import detail, plots, sheet, speed
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.detail import Host, chip, row, table
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.html import Html, style, tag, text
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.timeline import duration

Report = Mapping[str, Any]
GUIDE = "https://github.com/llmfleet/sglang/blob/main/docs"
# Hosts whose details are unfolded at once: all of a small fleet, else those that failed.
FEW, MOST_OPEN = 3, 10
NOTHING = "-"
# A browser that obeys it loads nothing, whatever a bug of ours may let through.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Report) -> str:
    """Return the page. report: what `model.report` returned."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title(report)),
        style(sheet.rules()),
    )
    numbered = list(enumerate(report["hosts"], 1))
    parts = [
        _top(report, numbered),
        _hosts(numbered),
        _trials(report["hosts"]),
        _patches(report["hosts"]),
        _timelines(report["hosts"]),
        _changes(report["hosts"]),
        speed.measured(report["hosts"]),
        speed.compared(report["hosts"]),
        _all_findings(report["hosts"]),
        _details(numbered),
        _foot(report),
    ]
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', parts)), lang='en')}\n"


def title(report: Report) -> str:
    """Say in a line what became of the run."""
    summary = report["summary"]
    what = ", ".join(report["models"]) or "nothing"
    counted = ", ".join(f"{number} {state}" for state, number in summary["states"].items())
    kind = f"{report['kind'].capitalize()}{' (check run)' if report['check'] else ''}"
    return f"{kind} of {what} on {_hosts_words(summary['hosts'])}: {counted or 'no host took part'}"


def _hosts_words(number: int) -> str:
    return "1 host" if number == 1 else f"{number} hosts"


def _top(report: Report, numbered: Sequence[tuple[int, Host]]) -> Html:
    about = [
        f"fleet {report['fleet']}",
        f"instance {', '.join(report['instances'])}" if report["instances"] else "",
        report["made_at"].replace("T", " ").replace("+00:00", " UTC"),
        f"by {report['by']}" if report["by"] else "",
        f"run {report['run']}" if report["run"] else "",
    ]
    failed = [
        tag(
            "p",
            tag("a", host["host"], href=f"#{detail.anchor(number)}"),
            f": {host['state']}. {detail.first_line(host['message'])}",
            class_="note bad",
        )
        for number, host in numbered
        if host["failed"]
    ]
    more = tag("p", f"{len(failed) - MOST_OPEN} more hosts failed.", class_="note bad")
    return tag(
        "header",
        tag("h1", title(report)),
        tag("p", " · ".join(filter(None, about)), class_="about"),
        _tiles(report),
        [tag("p", one, class_="note") for one in report["warnings"]],
        failed[:MOST_OPEN],
        more if len(failed) > MOST_OPEN else None,
    )


def _tiles(report: Report) -> Html:
    summary = report["summary"]
    tiles = [(str(number), state) for state, number in summary["states"].items()]
    if summary["down_longest_seconds"] is not None:
        tiles.append((duration(summary["down_longest_seconds"]), "longest without a service"))
    if summary["down_still"]:
        tiles.append((str(summary["down_still"]), "without a service now"))
    return tag(
        "div",
        [tag("div", tag("b", value), tag("span", words), class_="tile") for value, words in tiles],
        class_="tiles",
    )


def _hosts(numbered: Sequence[tuple[int, Host]]) -> Html:
    if not numbered:
        return tag("section", tag("h2", "Hosts"), tag("p", "No host took part in this run."))
    rows = [
        row(
            (tag("a", host["host"], href=f"#{detail.anchor(number)}"), "value"),
            detail.state(host),
            (host["serves"], "value mono"),
            _or_nothing(detail.down(host), "number"),
            _or_nothing(detail.prepared(host), "number"),
            _or_nothing(speed.verdict(speed.shown(host))),
            _or_nothing(_counts(host)),
        )
        for number, host in numbered
    ]
    heads = ("Host", "State", "Serves", "Down", "Prepared in", "Throughput", "Findings")
    present = {host["state"] for _number, host in numbered}
    meanings = [
        tag("li", chip(name, colour), " ", words) for name, (colour, words) in detail.STATES.items() if name in present
    ]
    return tag(
        "section",
        tag("h2", "Hosts"),
        table(heads, rows, numbers=(3, 4), class_="compact"),
        tag("ul", meanings, class_="legend"),
    )


def _or_nothing(content: str, class_: str = "") -> tuple[str, str]:
    return (content, class_) if content else (NOTHING, f"{class_} none".strip())


def _counts(host: Host) -> Html:
    open_ones = [one["severity"] for one in host["findings"] if not one["accepted"]]
    chips = [
        text(chip(f"{open_ones.count(one)} {one}", detail.SEVERITIES[one]), " ")
        for one in detail.SEVERITIES
        if one in open_ones
    ]
    return text(chips)


def _timelines(hosts: Sequence[Host]) -> Html | None:
    """All cut-overs on one axis, so that the batches can be seen."""
    drawn = [(host, plots.cut_over_only(host["timeline"]["segments"])) for host in hosts if host["timeline"]]
    drawn = [(host, segments) for host, segments in drawn if segments]
    if not drawn:
        return None
    begin = min(one["begin"] for _host, segments in drawn for one in segments)
    end = max(one["end"] for _host, segments in drawn for one in segments)
    rows = [_line("", plots.axis(max(end - begin, 1.0)), "down")]
    rows += [
        _line(
            host["host"],
            plots.timeline(segments, host["timeline"]["down"], begin, end, f"cut-over of {host['host']}"),
            detail.down(host) or NOTHING,
        )
        for host, segments in drawn
    ]
    kinds = {one["kind"] for _host, segments in drawn for one in segments}
    failed = any(one["failed"] for _host, segments in drawn for one in segments)
    down = any(host["timeline"]["down"] for host, _segments in drawn)
    words = f"From {detail.clock(begin)} UTC on. All hosts had been prepared before, while they served."
    return tag(
        "section",
        tag("h2", "Cut-over"),
        tag("p", words, class_="faint"),
        plots.legend(kinds, failed=failed, down=down),
        rows,
    )


def _line(name: str, drawn: Html, value: str) -> Html:
    return tag(
        "div",
        tag("div", name, class_="name"),
        tag("div", drawn, class_="drawn"),
        tag("div", value, class_="value"),
        class_="row",
    )


def _trials(hosts: Sequence[Host]) -> Html | None:
    parts = [text(tag("h3", host["host"]), detail.trial(host)) for host in hosts if host["trial"]]
    return tag("section", tag("h2", "Trial: patched, active, faster"), parts) if parts else None


def _patches(hosts: Sequence[Host]) -> Html | None:
    """Three things apart of each patch, once for all hosts with which they are the same."""
    groups: dict[str, tuple[Html, list[str]]] = {}
    for host in hosts:
        if host["patches"]:
            rows, faster = detail.patches(host)
            made = detail.three_facts(rows, faster)
            groups.setdefault(str(made), (made, []))[1].append(host["host"])
    if not groups:
        return None
    parts = [text(tag("h3", names(members)), made) for made, members in groups.values()]
    return tag("section", tag("h2", "Patches: patched, active, faster"), parts)


def _changes(hosts: Sequence[Host]) -> Html | None:
    """What changed, once for all hosts with which it is the same."""
    groups: dict[str, list[Host]] = {}
    for host in hosts:
        if host["changes"]:
            groups.setdefault(json.dumps([host["changes"], host["why"]], sort_keys=True), []).append(host)
    if not groups:
        return None
    parts = [_change(members) for members in sorted(groups.values(), key=len, reverse=True)]
    return tag("section", tag("h2", "What changed, and why"), parts)


def _change(members: Sequence[Host]) -> Html:
    first = members[0]
    rows = [
        row((one["what"], "keep"), (one["before"], "value mono"), (one["after"], "value mono"))
        for one in first["changes"]
    ]
    back = [host["host"] for host in members if host["state"] == "went back"]
    gone = tag("p", f"Put back on {', '.join(back)}: what is called new here did not stay.") if back else None
    why = tag("p", f"Restarted because {first['why']}.") if first["why"] else None
    return text(tag("h3", names([host["host"] for host in members])), why, gone, table(("What", "Before", "New"), rows))


def names(hosts: Sequence[str], most: int = 6) -> str:
    """Return the names of hosts, and of many how many more there are."""
    return ", ".join(hosts[:most]) + (f" and {len(hosts) - most} more" if len(hosts) > most else "")


def _all_findings(hosts: Sequence[Host]) -> Html | None:
    """Each finding once, with the hosts that have it, blocking ones first and accepted ones last."""
    groups: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
    for host in hosts:
        for one in host["findings"]:
            key = json.dumps([one[name] for name in ("id", "kind", "severity", "message", "advice", "accepted")])
            groups.setdefault(key, (one, []))[1].append(host["host"])
    if not groups:
        return None
    ordered = sorted(groups.values(), key=lambda group: (*detail.weight(group[0]), group[0]["id"]))
    rows = [(one, f"all {len(hosts)}" if len(found) == len(hosts) > 1 else names(found)) for one, found in ordered]
    guide = tag("p", "What each means: ", tag("a", "docs/preflight.md", href=f"{GUIDE}/preflight.md"), class_="faint")
    return tag("section", tag("h2", "Findings"), detail.findings(rows), guide)


def _details(numbered: Sequence[tuple[int, Host]]) -> Html | None:
    if not numbered:
        return None
    failed = [number for number, host in numbered if host["failed"]][:MOST_OPEN]
    opened = {number for number, _host in numbered} if len(numbered) <= FEW else set(failed)
    parts = [detail.detail(number, host, opened=number in opened) for number, host in numbered]
    return tag("section", tag("h2", "Host by host"), parts)


def _foot(report: Report) -> Html:
    words = f"Made by llmfleet.sglang {report['version']}. The same for machines lies beside this page as JSON. "
    guide = tag("a", "docs/report.md", href=f"{GUIDE}/report.md")
    return tag("footer", tag("p", words, "What is in it: ", guide, "."))
