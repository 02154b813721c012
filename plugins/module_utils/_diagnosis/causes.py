# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes of failed starts: data that is read, checked, and looked for in a log. PRIVATE to the collection.

The order of the causes is their priority: the first one of which a line is found explains the failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

UNKNOWN = "The cause is not known."
LONGEST_EVIDENCE = 300
REQUIRED = ("id", "patterns", "message", "advice", "source")
KNOWN = (*REQUIRED, "along_with", "fatal", "link")


@dataclass(frozen=True)
class Cause:
    """One known cause.

    patterns: any of these in one line of the log; along_with: and any of these in any line, if there are some;
    message and advice may hold the patterns' named groups in braces; fatal: such a line makes a start that answers
    a failure too; source: where this is known from; link: address of the page that says more, where there is one.
    """

    id: str
    patterns: tuple[re.Pattern[str], ...]
    message: str
    advice: str
    source: str
    along_with: tuple[re.Pattern[str], ...] = ()
    fatal: bool = False
    link: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What explains a failure: the cause, and the line that shows it."""

    id: str
    message: str
    advice: str
    evidence: str
    source: str
    link: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    def describe(self, evidence: bool = True) -> str:
        """Cause, next step, page, identifier, and the line that shows it, as a module's message says them."""
        more = f" More: {self.link}" if self.link else ""
        line = f"; the log says: {self.evidence}" if evidence else ""
        return f"{self.message} {self.advice}{more} [{self.id}{line}]"


def read(rows: Iterable[Mapping[str, Any]]) -> tuple[Cause, ...]:
    """Causes from data; ValueError names the row and what is wrong with it."""
    causes: dict[str, Cause] = {}
    for number, row in enumerate(rows, 1):
        cause = _cause(row, f"cause {number} ({row.get('id', 'without an id')})")
        if cause.id in causes:
            raise ValueError(f"cause {number}: there is another one with the id {cause.id!r}")
        causes[cause.id] = cause
    return tuple(causes.values())


def _cause(row: Mapping[str, Any], where: str) -> Cause:
    missing = [name for name in REQUIRED if not row.get(name)]
    unknown = [name for name in row if name not in KNOWN]
    if missing or unknown:
        words = f"lacks {', '.join(missing)}" if missing else f"has unknown keys: {', '.join(unknown)}"
        raise ValueError(f"{where} {words}")
    cause = Cause(
        id=str(row["id"]),
        patterns=_patterns(row["patterns"], where),
        message=str(row["message"]),
        advice=str(row["advice"]),
        source=str(row["source"]),
        along_with=_patterns(row.get("along_with") or (), where),
        fatal=bool(row.get("fatal", False)),
        link=str(row.get("link") or ""),
    )
    for pattern in cause.patterns:
        try:
            groups = dict.fromkeys(pattern.groupindex, "")
            cause.message.format_map(groups)
            cause.advice.format_map(groups)
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"{where}: {pattern.pattern!r} does not give what the message needs: {error}") from None
    return cause


def _patterns(texts: Sequence[str], where: str) -> tuple[re.Pattern[str], ...]:
    if isinstance(texts, str):
        raise ValueError(f"{where}: patterns are a list")
    try:
        return tuple(re.compile(text) for text in texts)
    except re.error as error:
        raise ValueError(f"{where}: {error.pattern!r} is no regular expression: {error}") from None


def diagnose(causes: Iterable[Cause], lines: Sequence[str]) -> Diagnosis | None:
    """The first cause in order of priority of which the log has a line, or None."""
    for cause in causes:
        if cause.along_with and not any(pattern.search(line) for pattern in cause.along_with for line in lines):
            continue
        for line in lines:
            found = next(filter(None, (pattern.search(line) for pattern in cause.patterns)), None)
            if found:
                return _diagnosis(cause, found, line)
    return None


def fatal(causes: Iterable[Cause], lines: Sequence[str], accepted: Iterable[str] = ()) -> Diagnosis | None:
    """The first cause that makes even a start that answers a failure, unless it is `accepted` by its id."""
    left = set(accepted)
    return diagnose((cause for cause in causes if cause.fatal and cause.id not in left), lines)


def _diagnosis(cause: Cause, found: re.Match[str], line: str) -> Diagnosis:
    groups = {name: " ".join((value or "").split()) for name, value in found.groupdict().items()}
    begin = max(0, found.start() - 80)
    return Diagnosis(
        id=cause.id,
        message=cause.message.format_map(groups),
        advice=cause.advice.format_map(groups),
        evidence=" ".join(line[begin : begin + LONGEST_EVIDENCE].split()),
        source=cause.source,
        link=cause.link,
    )
