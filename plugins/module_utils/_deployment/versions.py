# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang versions and the ranges that a model profile is keyed by. Private to the collection.

A release is three numbers and at most one `.postN` (0.5.10.post1), as every release from 0.4.6 to 0.5.23 is. What comes
before a release (0.5.24rc1) counts as that release, and what comes after one (0.5.23-14-g1a2b3c4, from `git describe`)
as the one before: a range in a profile is about renamed flags, and this is where they are renamed.
"""

from __future__ import annotations

import re

Version = tuple[int, int, int, int]

_VERSION = re.compile(
    r"v?(?P<release>[0-9]+\.[0-9]+\.[0-9]+)(?:\.post(?P<post>[0-9]+))?"
    r"(?:[.-]?rc[.]?[0-9]+)?"  # a candidate
    r"(?:[.-]?dev[0-9]*)?"  # a development version of setuptools-scm
    r"(?:-[0-9]+-g[0-9a-f]+|\+[A-Za-z0-9.]+)?"  # a commit after the tag, as Git or a wheel says it
)
_CLAUSE = re.compile(r"(<=|>=|==|<|>)\s*(\S+)")


def parse(text: str) -> Version:
    """Return (major, minor, patch, post) of a version or of a `git describe` of one.

    Raises ValueError when `text` is no SGLang version.
    """
    match = _VERSION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is no SGLang version such as 0.5.23 or 0.5.10.post1")
    major, minor, patch = (int(number) for number in match["release"].split("."))
    return major, minor, patch, int(match["post"] or 0)


def _clauses(spec: str) -> list[tuple[str, Version]]:
    clauses = []
    for clause in filter(None, (part.strip() for part in spec.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if not match:
            raise ValueError(f"'{clause}' is no version clause such as '>=0.5.10'")
        clauses.append((match[1], parse(match[2])))
    return clauses


def check(spec: str) -> None:
    """Raise ValueError when `spec` is no version range."""
    _clauses(spec)


def matches(version: str, spec: str) -> bool:
    """Tell whether `version` lies in `spec`, clauses joined by commas (">=0.5.10,<0.5.16"); "" is every version.

    Raises ValueError for a clause that cannot be read.
    """
    have = parse(version)
    return all(
        {
            "<": have < wanted,
            "<=": have <= wanted,
            ">": have > wanted,
            ">=": have >= wanted,
            "==": have == wanted,
        }[operator]
        for operator, wanted in _clauses(spec)
    )
