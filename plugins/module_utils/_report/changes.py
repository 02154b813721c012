# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service ran with and what it runs with now, read from the units of ours. Private to the collection.

Values of environment variables and arguments whose names speak of a secret do not leave the host.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie|private", re.IGNORECASE)
# Numbers of tokens are no secrets.
_HARMLESS = re.compile(r"tokenizer|(max|min|num|total|new|draft|prefill|context)[-_a-z]*tokens?$", re.IGNORECASE)
# Named by rows of their own, or different in each unit.
_LEFT_OUT = frozenset(("model-path", "served-model-name", "config", "LLMFLEET_STATE"))
_CONTINUED = re.compile(r"\\\s*\n\s*")
Row = dict[str, str]


def secret(name: str) -> bool:
    """Tell whether a variable or argument of that name may hold a secret."""
    return bool(_SECRET.search(name)) and not _HARMLESS.search(name)


def arguments(unit: str) -> dict[str, str]:
    """Return the launch arguments of a unit of ours by flag; a flag alone has the value ""."""
    lines = [line for line in _CONTINUED.sub(" ", unit).splitlines() if line.startswith("ExecStart=")]
    found: dict[str, str] = {}
    flag = ""
    for word in _words(lines[-1].partition("=")[2]) if lines else []:
        if word.startswith("--"):
            flag, _equals, value = word[2:].partition("=")
            found[flag] = value
        elif flag:
            found[flag] = f"{found[flag]} {word}".strip()
    return _hidden(found)


def environment(unit: str) -> dict[str, str]:
    """Return the environment that a unit of ours sets."""
    found: dict[str, str] = {}
    for line in unit.splitlines():
        if line.startswith("Environment="):
            for word in _words(line.partition("=")[2]):
                name, _equals, value = word.partition("=")
                found[name] = value
    return _hidden(found)


def _words(line: str) -> list[str]:
    try:
        return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]
    except ValueError:  # written by hand, and not as we write
        return line.split()


def _hidden(values: Mapping[str, str]) -> dict[str, str]:
    return {name: HIDDEN if value and secret(name) else value for name, value in values.items()}


def of_units(before: str, after: str, releases: tuple[str, str] = ("", "")) -> list[Row]:
    """Return the arguments and variables that differ, a row (what, before, after) each.

    releases: the names of both, which stand in the paths of caches and say nothing there. A foreign unit is "".
    """
    if not before or not after:
        return []
    rows: list[Row] = []
    for kind, read in (("argument", arguments), ("variable", environment)):
        old, new = read(before), read(after)
        for name in sorted((set(old) | set(new)) - _LEFT_OUT):
            one, other = _plain(old.get(name), releases[0]), _plain(new.get(name), releases[1])
            if one != other:
                shown = f"--{name}" if kind == "argument" else name
                rows.append({"what": f"{kind} {shown}", "before": _shown(one), "after": _shown(other)})
    return rows


def _plain(value: str | None, release: str) -> str | None:
    return value.replace(release, "RELEASE") if value and release else value


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    return value or "set"


_CHECKPOINT = re.compile(r"/\.checkpoints/([^/]+)/([^/]+)/?$")
_OF_RELEASE = re.compile(r"/releases/([^/\s\"]+)/venv/")
_RELEASE = ("python", "torch", "cuda")


def release_of(unit: str) -> str:
    """Return the id of the release that a unit of ours starts, "" where it starts none."""
    found = _OF_RELEASE.search(unit)
    return found[1] if found else ""


def checkpoint_of(unit: str) -> str:
    """Return REPOSITORY@REVISION that a unit of ours serves, or the path that it names."""
    path = arguments(unit).get("model-path", "")
    found = _CHECKPOINT.search(path)
    return f"{found[1].replace('--', '/', 1)}@{found[2]}" if found else path


def of_services(names: tuple[str, str], before: str, after: str) -> list[Row]:
    """Return what differs of what two services serve. names: "" for none; before, after: units of ours, or ""."""
    own = [
        f"{name} (not made by this collection)" if name and not unit else name
        for name, unit in zip(names, (before, after))
    ]
    rows = [_row("service", *own)]
    if before and after:
        one, other = arguments(before), arguments(after)
        rows.append(_row("served model", one.get("served-model-name"), other.get("served-model-name")))
        rows.append(_row("checkpoint", checkpoint_of(before), checkpoint_of(after)))
        rows.append(_row("release", release_of(before), release_of(after)))
    return [row for row in rows if row["before"] != row["after"]]


def of_releases(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    """Return what differs between two releases (release.json); empty if one of them is not there any more."""
    if not before or not after:
        return []
    commits = ((one.get("inputs") or {}).get("commit") for one in (before, after))
    rows = [_row("commit", *commits), *(_row(name, before.get(name), after.get(name)) for name in _RELEASE)]
    old, new = _packages(before), _packages(after)
    rows += [_row(f"package {name}", old.get(name), new.get(name)) for name in sorted(set(old) | set(new))]
    rows.append(_row("patches", _patches(before), _patches(after)))
    return [row for row in rows if row["before"] != row["after"]]


def _packages(release: Mapping[str, Any]) -> dict[str, str]:
    """Versions by name. torch has a row of its own, and sglang is the commit."""
    pairs = (str(line).partition("==") for line in release.get("packages") or [])
    return {name: version for name, _equals, version in pairs if name not in ("torch", "sglang")}


def _patches(release: Mapping[str, Any]) -> str:
    return ", ".join(f"{one.get('id')} ({one.get('state')})" for one in release.get("patched") or []) or "none"


def _row(what: str, before: Any, after: Any) -> Row:
    return {"what": what, "before": str(before or "none"), "after": str(after or "none")}
