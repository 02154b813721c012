# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet's instances as a table that fits a screen. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

HEADS = ("HOST", "INSTANCE", "MODEL", "SINCE (UTC)", "STATE", "REQUESTS", "TOK/S", "GPU MEMORY", "POWER")
_COMMIT = 9  # so many digits of it are in a release's identifier
_PATCHED = ("present", "upstream")  # the states of an edit that is in the release, by us or before us


def table(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a text: a line for each instance, below it a second of its release, then what an operator has to know.

    hosts: by name, what `instance_info` returned, or `unasked`, why, where it could not be asked.
    """
    rows = [row for host, told in hosts.items() for row in _rows(host, told)]
    cells = [HEADS, *(row for row, _more in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADS))]
    lines = []
    for row, more in [(HEADS, ""), *rows]:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        lines += [f"    {more}"] if more else []
    notes = [note for host, told in hosts.items() for note in _notes(host, told)]
    return "\n".join([*lines, "", *notes] if notes else lines)


def _rows(host: str, told: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """The cells of each line of a host, with what stands in the line below it."""
    if "unasked" in told:
        return [((host, "?", "", "", "cannot be asked", "", "", "", ""), "")]
    cards = _cards(told.get("gpus", {}))
    instances = told.get("instances", [])
    if not instances:
        return [((host, "none", "", "", "", "", "", *cards), "")]
    return [((host, *_cells(one), *cards), release(one)) for one in instances]


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    queued = f" + {one['queued']} queued" if one["queued"] else ""
    requests = "" if one["running"] is None else f"{one['running']}{queued}"
    speed = "" if one["tokens_per_second"] is None else f"{one['tokens_per_second']:g}"
    since = "" if one["since"] is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(one["since"]))
    return (one["name"], one["model"], since, state(one), requests, speed)


def release(one: Mapping[str, Any]) -> str:
    """Return what an instance was deployed from: release, commit, edits, and how the last cut-over ended."""
    if not one["ours"]:
        return "not ours"
    commit = f"commit {one['commit'][:_COMMIT]}" if one["commit"] else ""
    verdict = f"last cut-over: {one['verdict']}" if one["verdict"] else ""
    return ", ".join(filter(None, [one["release"], commit, _patches(one["patched"]), verdict]))


def _patches(edits: Sequence[Mapping[str, Any]]) -> str:
    """How many of a release's edits are in it, and of each other one its state."""
    if not edits:
        return ""
    others = [f"{edit['id']} {edit['state']}" for edit in edits if edit["state"] not in _PATCHED]
    named = f" ({', '.join(others)})" if others else ""
    return f"patches {len(edits) - len(others)} of {len(edits)}{named}"


def state(one: Mapping[str, Any]) -> str:
    """Return one or two words for what an instance does."""
    if not one["main_pid"]:
        return "failed" if one["active"] == "failed" else "stopped"
    word = {True: "ready", False: "not ready", None: "silent"}[one["ready"]]
    return f"{word}, drifted" if one["drift"] or one["as_recorded"] is False else word


def _cards(gpus: Mapping[str, Any]) -> tuple[str, str]:
    if not gpus.get("count"):
        return ("", "")
    memory = _of(gpus.get("memory_used"), gpus.get("memory_total"), 1024, "GiB")
    return (memory, _of(gpus.get("power_draw"), gpus.get("power_limit"), 1, "W"))


def _of(part: float | None, whole: float | None, unit: int, name: str) -> str:
    if part is None or whole is None:
        return ""
    return f"{part / unit:.0f} of {whole / unit:.0f} {name}"


def _notes(host: str, told: Mapping[str, Any]) -> list[str]:
    notes = []
    for one in told.get("instances", []):
        notes += [f"{host}: {one['service'] or one['name']}: {problem}" for problem in one["problems"]]
        notes += [
            f"{host}: {one['service']}: {row['name']} is not as it was built ({row['kind']}: {row['found']})"
            for row in one["drift"]
        ]
    if told.get("unasked"):
        notes.append(f"{host}: cannot be asked: {told['unasked'].strip()}")
    if told.get("lock"):
        notes.append(f"{host}: {told['lock']['text']}")
    began = "a run began to take it out of the load balancer and has not put it back"
    notes += [f"{host}: {name} is marked as drained: {began}" for name in told.get("drained_instances", [])]
    if told.get("gpus", {}).get("problem"):
        notes.append(f"{host}: {told['gpus']['problem']}")
    return notes
