# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang versions and the ranges that a model profile is keyed by. Private to the collection.

A release is three numbers and at most one `.postN` (0.5.10.post1); every tag from 0.4.6 to 0.5.23 has that form.
"""

from __future__ import annotations

import re

Version = tuple[int, int, int, int]

_VERSION = re.compile(
    r"v?(\d+)\.(\d+)\.(\d+)(?:\.post(\d+))?(?:rc\d+|[.+-]?(?:dev|g)[\w.+-]*|\+[\w.]+|-\d+-g[0-9a-f]+)?$"
)
_CLAUSE = re.compile(r"\s*(<=|>=|==|<|>)\s*(\S+)\s*$")


def parse(text: str) -> Version:
    """Return (major, minor, patch, post) of a version or of a `git describe` of one.

    Raises ValueError when `text` is no SGLang version.
    """
    match = _VERSION.match(text.strip())
    if not match:
        raise ValueError(f"'{text}' is no SGLang version such as 0.5.23 or 0.5.10.post1")
    major, minor, patch, post = match.groups()
    return int(major), int(minor), int(patch), int(post or 0)


def matches(version: str, spec: str) -> bool:
    """Tell whether `version` lies in `spec`, clauses joined by commas (">=0.5.10,<0.5.16"); "" is every version.

    Raises ValueError for a clause that cannot be read.
    """
    have = parse(version)
    for clause in filter(None, (part.strip() for part in spec.split(","))):
        match = _CLAUSE.match(clause)
        if not match:
            raise ValueError(f"'{clause}' is no version clause such as '>=0.5.10'")
        operator, wanted = match.group(1), parse(match.group(2))
        holds = {
            "<": have < wanted,
            "<=": have <= wanted,
            ">": have > wanted,
            ">=": have >= wanted,
            "==": have == wanted,
        }[operator]
        if not holds:
            return False
    return True
