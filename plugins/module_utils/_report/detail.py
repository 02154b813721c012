# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a report's page that speak of one host each, or of one thing each. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import plots
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.html import Child, Html, tag, text
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.timeline import PREPARE, duration
from ansible_collections.llmfleet.sglang.plugins.module_utils._words.sentences import sentence

Host = Mapping[str, Any]
COMPARED = "compared"
STATES = {
    "new": ("good", "It serves what was deployed."),
    "unchanged": ("good", "It had served that already and was not restarted."),
    "measured": ("good", "It was measured, and nothing was changed."),
    "untouched": ("calm", "The rollout did not come to it: the run stopped nothing there."),
    "to change": ("calm", "A check run: it would serve what is deployed."),
    "went back": ("warn", "It serves again what it served before; its message says why."),
    "not prepared": ("bad", "Its preparation failed, or somebody else works on it. The run stopped nothing there."),
    "unreachable": ("bad", "It could not be reached before its cut-over. The run stopped nothing there."),
    "broken": ("bad", "Going back failed too. The message says in what state the host is."),
    "lost": ("bad", "It could not be reached any more in its cut-over. What serves there is not known."),
    "drained": ("bad", "It serves, and the load balancer could not be told."),
    "not measured": ("bad", "It was to be measured, and was not."),
    COMPARED: ("calm", "Nothing was measured: what was measured before is compared."),
    "to measure": ("calm", "A check run: it would be measured."),
    "to try": ("calm", "A check run: the change would be tried."),
    "stopped": ("calm", "Its service was stopped and is proven gone."),
    "started": ("good", "It serves."),
}
VERDICTS = {"better": "good", "same": "good", "worse": "bad", "inert": "warn", "no verdict": "warn"}
SEVERITIES = {"blocks": "bad", "warns": "warn", "informs": "calm"}


def chip(word: str, colour: str) -> Html:
    """Return a word on its colour."""
    return tag("span", word, class_=f"chip {colour}")


def state(host: Host) -> Html:
    """Return the host's state."""
    return chip(host["state"], STATES.get(host["state"], ("calm", ""))[0])


def anchor(number: int) -> str:
    """Return what a link to the host's part of the page aims at; a name may hold anything."""
    return f"host-{number}"


@dataclass(frozen=True)
class Row:
    """A row of a table: cells with their classes."""

    cells: tuple[tuple[Child, str], ...]
    class_: str = ""


def row(*cells: tuple[Child, str] | Child, class_: str = "") -> Row:
    """Return a row of a table; a cell is its content, or its content and its class."""
    made = tuple(one if isinstance(one, tuple) else (one, "") for one in cells)
    return Row(made, class_)


def table(
    heads: Sequence[str],
    rows: Sequence[Row],
    numbers: Sequence[int] = (),
    unlabelled: Sequence[int] = (0,),
    class_: str | None = None,
) -> Html:
    """Return a table. numbers: the columns that hold figures.

    On a narrow screen each row becomes a card, in which a cell says its column's head itself, unless it is unlabelled.
    """
    head = [tag("th", one, class_="number" if at in numbers else None, scope="col") for at, one in enumerate(heads)]
    body = [
        tag(
            "tr",
            [
                tag("td", content, class_=class_ or None, data_label=None if at in unlabelled else heads[at])
                for at, (content, class_) in enumerate(one.cells)
            ],
            class_=one.class_ or None,
        )
        for one in rows
    ]
    inner = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_=class_)
    # Reachable by the keyboard, or nobody without a mouse could scroll it.
    return tag("div", inner, class_="scroll", tabindex="0")


def clock(seconds: float) -> str:
    """Return a time of day, UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%H:%M:%S")


def down(host: Host) -> str:
    """Say for how long nothing served, "" where nothing was down."""
    if host["down_since"] is not None:
        return f"since {clock(host['down_since'])}"
    return "" if host["down_seconds"] is None else duration(host["down_seconds"])


def prepared(host: Host) -> str:
    """Say how long the host was prepared while the old service served."""
    segments = (host["timeline"] or {}).get("segments", [])
    return "".join(duration(one["seconds"]) for one in segments if one["kind"] == PREPARE)


def detail(number: int, host: Host, *, opened: bool) -> Html:
    """Return all that is known of one host, folded up unless it matters most."""
    head = tag("summary", tag("b", host["host"]), " ", state(host), " ", first_line(host["message"]))
    parts = [
        tag("pre", host["message"]) if "\n" in host["message"].strip() else None,
        facts(host),
        steps(host),
        _last_measured(host),
        _findings(host),
        [tag("p", sentence(one), class_="note") for one in host["problems"]],
    ]
    return tag("details", head, tag("div", parts), id=anchor(number), open=opened)


def first_line(message: str) -> str:
    """Return the first line of a message."""
    return (message.strip().splitlines() or [""])[0]


def facts(host: Host) -> Html:
    """Return what the host serves, or was to serve."""
    pairs = [
        ("address", host["address"]),
        ("service", host["service"]),
        ("release", host["release"]),
        ("commit", host["commit"]),
        ("checkpoint", host["checkpoint"]),
        ("served before", ", ".join(host["served_before"])),
        ("why it was restarted", host["why"]),
    ]
    rows = [row((name, "keep"), (value, "wide mono")) for name, value in pairs if value]
    return table(("Fact", "Value"), rows, unlabelled=(0, 1))


def steps(host: Host) -> Html | None:
    """Return the host's timeline in words: what it did, when, for how long."""
    line = host["timeline"]
    if not line or not line["segments"]:
        return None
    rows = [
        row(
            (clock(one["begin"]), "keep mono"),
            (text(f"{one['service']}: " if one["service"] else "", plots.KINDS[one["kind"]]), "wide"),
            (duration(one["seconds"]), "number"),
            (chip("failed", "bad") if one["failed"] else "", "" if one["failed"] else "none"),
        )
        for one in line["segments"]
    ]
    said = f"Nothing served: {down(host)}." if down(host) else "What served before was not stopped, or nothing did."
    earlier = tag("p", "This cut-over had begun in an earlier run, which did not end it.") if line["resumed"] else None
    return text(
        tag("h3", "Steps (UTC)"),
        table(("From", "What", "Took", ""), rows, numbers=(2,), unlabelled=(0, 1, 3)),
        tag("p", said),
        earlier,
    )


def patches(host: Host) -> tuple[list[tuple[str, str, str, str]], str]:
    """Return for each patch its identifier, state, file and whether it is active; and for all whether it is faster."""
    measured = host["benchmark"] or {}
    # What was measured of another release says nothing of this one.
    measured = measured if measured.get("release") == host["release"] else {}
    rows = [
        (one["id"], one["state"], f"{one['file']} {one['digest'][:12]}", _active(one["id"], measured))
        for one in host["patches"]
    ]
    verdict = measured.get("verdict")
    what = "the change that was tried" if host["trial"] else "the release as a whole"
    faster = f"{what}: {verdict['result']}, {why(measured)}" if verdict else "not measured in this run"
    return rows, sentence(faster)


def _active(patch: str, measured: Mapping[str, Any]) -> str:
    """What the running engine's log and /server_info say of the path that the set of a patch is for."""
    sets = {one.get("patch_set") for one in measured.get("patches") or [] if one.get("id") == patch}
    paths = measured.get("paths") or []
    one = next((one for one in paths if sets & set((one.get("by") or {}).get("patch_sets") or ())), None)
    if one is None:
        return "not looked at" if measured else "not looked at in this run"
    word = {"True": "active", "False": "not active"}.get(str(one.get("active")), "unknown")
    return f"{word}: {one.get('evidence') or ''}"


def three_facts(rows: Sequence[tuple[str, str, str, str]], faster: str) -> Html:
    """Return three things apart for each patch: patched, active, faster."""
    made = []
    for name, state_of, file, active in rows:
        word, _colon, evidence = active.partition(": ")
        colour = {"active": "good", "not active": "warn", "unknown": "calm"}.get(word)
        seen = text(chip(word, colour), " ", evidence) if colour else tag("span", active, class_="faint")
        patched = text(state_of, tag("br"), tag("span", file, class_="faint mono"))
        made.append(row((name, "keep mono"), (patched, "wide"), (seen, "value")))
    heads = ("Patch", "Patched (file, digest)", "Active (what the engine says)")
    return text(table(heads, made), tag("p", f"Faster: {faster}"))


def why(measured: Mapping[str, Any]) -> str:
    """Return the reason of a benchmark's verdict, and for how many of its shapes it holds."""
    verdict, shapes = measured["verdict"], measured["shapes"]
    held = [one["verdict"] for one in shapes if one["verdict"]["result"] == verdict["result"]]
    if not held or len(shapes) < 2:  # what was judged beside the speed, as `inert` is, has a reason of its own
        return str((held or [verdict])[0].get("reason") or "nothing was measured")
    reason = str(verdict["reason"]).rpartition(": ")[2]
    return f"in {len(held)} of {len(shapes)} shapes; {reason}"


def trial(host: Host) -> Html | None:
    """Return what a trial changed, and what came of it: figures, and of each part three things apart."""
    one = host["trial"]
    if not one:
        return None
    result = str(one["result"] or "not judged")
    serves = "The host serves the change now." if one["kept"] else "The host serves the baseline again."
    if not one["kept"] and not one["restored"]:
        serves = "The host does not serve the baseline again."
    figures = [
        row(
            (shape, "value"),
            (f"{before:g}", "number"),
            (_figure((one["candidate_figures"] or {}).get(shape)), "number"),
        )
        for shape, before in (one["baseline_figures"] or {}).items()
    ]
    facts_of_it = [
        row(
            (fact.get("what", ""), "value mono"),
            (text([text(line, tag("br")) for line in fact.get("patched") or ["-"]]), "wide"),
            (fact.get("active", ""), "value"),
            (fact.get("faster", ""), "value"),
        )
        for fact in one["facts"] or []
    ]
    reason = sentence(first_line(str(one["reason"] or "")))
    if judge.recorded(one["verdict"]):
        serves += " The baseline is a recorded benchmark, and was not measured in this trial."
    return text(
        tag("p", chip(result, VERDICTS.get(result, "bad")), " ", reason, " ", serves),
        table(("Changed", "Patched", "Active", "Faster"), facts_of_it) if facts_of_it else None,
        table(("Shape", "Tokens a second before", "With the change"), figures, numbers=(1, 2)) if figures else None,
    )


BY = {
    "asked": "by llmfleet.sglang.benchmark",
    "rollout": "by a deployment",
    "baseline": "as the baseline of a trial",
    "trial": "by a trial",
}


def when(at: str) -> str:
    """Return a moment of a record as people read it."""
    return at[:16].replace("T", " ") + " UTC"


def _last_measured(host: Host) -> Html | None:
    """Say what was measured before this run, or beside it, and so is no figure of what this run did."""
    one = host["last_measured"]
    if not one:
        return None
    figures = "; ".join(f"{shape['name']}: {shape['now']['median'] or 0:g} tok/s" for shape in one["shapes"])
    words = f"Last measured {when(one['at'])}, {BY.get(one['reason'], 'by hand')}, release {one['release']}: {figures}."
    return tag("p", words, class_="faint")


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:g}"


def _findings(host: Host) -> Html | None:
    if not host["findings"]:
        return None
    ordered = sorted(host["findings"], key=weight)
    return text(tag("h3", "Findings"), findings([(one, "") for one in ordered]))


def weight(one: Mapping[str, Any]) -> tuple[bool, int]:
    """Return what findings are ordered by: blocking ones first, and accepted ones last."""
    known = tuple(SEVERITIES)
    return bool(one["accepted"]), known.index(one["severity"]) if one["severity"] in known else len(known)


def findings(rows: Sequence[tuple[Mapping[str, Any], str]]) -> Html:
    """Return a table of findings, each with the hosts that have it (or "", where that is known)."""
    with_hosts = any(hosts for _finding_of, hosts in rows)
    made = [_finding(one, hosts if with_hosts else None) for one, hosts in rows]
    heads = ("Severity", "Finding", *(("Hosts",) if with_hosts else ()), "What, and the next step")
    return table(heads, made, unlabelled=(0, len(heads) - 1))


def _finding(one: Mapping[str, Any], hosts: str | None) -> Row:
    severity = "accepted" if one["accepted"] else one["severity"]
    name = f"rule {one['id']}" if one["kind"] == "rule" else one["id"]
    evidence = tag("div", one["evidence"], class_="faint lines") if one["evidence"] else None
    what = text(one["message"], " ", one["advice"], evidence)
    cells: list[tuple[Child, str]] = [(chip(severity, SEVERITIES.get(severity, "calm")), ""), (name, "keep mono")]
    cells += [(hosts, "value")] if hosts is not None else []
    return row(*cells, (what, "wide"), class_="accepted" if one["accepted"] else "")
