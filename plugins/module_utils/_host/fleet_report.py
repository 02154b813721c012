# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight found on a fleet, as data and as a table that fits a screen. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .findings import BLOCKS, INFORMS, ORDER, WARNS

READY, BLOCKED, UNREACHABLE, FAILED = "ready", "blocked", "unreachable", "failed"
ACCEPTED = "accepted"
HOST_HEADS = ("HOST", "STATE", "BLOCKS", "WARNS", "INFORMS", "ACCEPTED")
FINDING_HEADS = ("SEVERITY", "FINDING", "HOSTS", "WHAT")
# What a rule of playbooks/rules calls a severity.
RULE_SEVERITIES = {"refuse": BLOCKS, "warn": WARNS}


def host_report(result: Mapping[str, Any], rules: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """One host: its state, and everything found, of the host (C(kind) V(host)) and of its deployment (V(rule)).

    result: what the module preflight returned, or what Ansible registered in its place; rules: findings of the filter
    launch_findings.
    """
    found = [{**_rule(one), "kind": "rule"} for one in rules]
    if "findings" not in result:
        state = UNREACHABLE if result.get("unreachable") else FAILED
        message = str(result.get("msg") or "preflight did not run here")
        return {"state": state, "message": message, "findings": found}
    found += [{**one, "kind": "host"} for one in result["findings"]]
    blocked = any(one["severity"] == BLOCKS and not one["accepted"] for one in found)
    return {"state": BLOCKED if blocked else READY, "message": "", "findings": sorted(found, key=_rank)}


def _rule(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": one["id"],
        "severity": RULE_SEVERITIES[one["severity"]],
        "message": one["message"],
        "evidence": ", ".join(one["evidence"]),
        "advice": f"{one['advice']} Source: {one['source']}.",
        "accepted": one["accepted"],
    }


def _rank(one: Mapping[str, Any]) -> tuple[int, str, str]:
    return (len(ORDER) if one["accepted"] else ORDER.index(one["severity"]), one["id"], one["message"])


def table(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each host, then a line for each finding with the hosts that have it, blocking ones first.

    hosts: by name, what `host_report` made of it.
    """
    parts = [_columns(HOST_HEADS, [_host_row(name, told) for name, told in hosts.items()])]
    notes = [f"{name}: {told['message']}" for name, told in hosts.items() if told["message"]]
    if notes:
        parts.append("\n".join(notes))
    rows = _finding_rows(hosts)
    if rows:
        parts.append(_columns(FINDING_HEADS, rows))
    return "\n\n".join(parts)


def _host_row(name: str, told: Mapping[str, Any]) -> list[str]:
    if told["state"] in (UNREACHABLE, FAILED):
        return [name, told["state"], "", "", "", ""]
    open_ones = [one["severity"] for one in told["findings"] if not one["accepted"]]
    accepted = sum(bool(one["accepted"]) for one in told["findings"])
    counts = [open_ones.count(severity) for severity in (BLOCKS, WARNS, INFORMS)]
    return [name, told["state"], *(str(count) if count else "" for count in (*counts, accepted))]


def _finding_rows(hosts: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Hosts with the same finding, to the word, share a line."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, told in hosts.items():
        for one in told["findings"]:
            severity = ACCEPTED if one["accepted"] else one["severity"]
            title = f"rule {one['id']}" if one["kind"] == "rule" else one["id"]
            advice = f" {one['advice']}" if one["advice"] else ""
            key = (_rank(one), severity, title, f"{one['message']}{advice}")
            groups.setdefault(key, []).append(name)
    return [[*key[1:3], _names(names, len(hosts)), key[3]] for key, names in sorted(groups.items())]


def _names(names: Sequence[str], hosts: int) -> str:
    if len(names) == hosts > 1:
        return f"all {hosts}"
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _columns(heads: Sequence[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in [list(heads), *rows]) for column in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(wide) for cell, wide in zip(row, widths)).rstrip() for row in [heads, *rows])


def blocked(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence for each host that a deployment could not go on with."""
    sentences = []
    for name, told in hosts.items():
        if told["state"] == BLOCKED:
            ids = {one["id"] for one in told["findings"] if one["severity"] == BLOCKS and not one["accepted"]}
            sentences.append(f"{name}: {', '.join(sorted(ids))}")
        elif told["state"] == UNREACHABLE:
            ping = f"ansible {name} -i INVENTORY -m ansible.builtin.ping"
            sentences.append(f"{name}: {told['message'].strip()}. See that `{ping}` reaches it, and try again")
        elif told["state"] != READY:
            sentences.append(f"{name}: {told['message']}")
    return sentences
