# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a benchmark asks for: shapes of requests, as a profile or an operator gives them. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Shape

KEYS = ("input_tokens", "output_tokens", "concurrency", "requests")
_MOST = {"input_tokens": 10**7, "output_tokens": 10**7, "concurrency": 10**5, "requests": 10**6}


def problems(where: str, shapes: Any) -> list[str]:
    """Return what is wrong with a list of shapes that `where` gives, a sentence each."""
    if not isinstance(shapes, Sequence) or isinstance(shapes, str):
        return [f"{where} has to be a list of shapes, each a map of {', '.join(KEYS)}."]
    found: list[str] = []
    for number, one in enumerate(shapes, 1):
        if not isinstance(one, Mapping) or set(one) != set(KEYS):
            found.append(f"{where}, shape {number}, has to be a map of {', '.join(KEYS)}, and is {one!r}.")
            continue
        wrong = [key for key in KEYS if not _whole(one[key], _MOST[key])]
        found += [
            f"{where}, shape {number}, sets {key} to {one[key]!r}, which is no whole number from 1." for key in wrong
        ]
        if not wrong and int(one["requests"]) < int(one["concurrency"]):
            found.append(
                f"{where}, shape {number}, has {one['requests']} requests, and {one['concurrency']} at a time would "
                "never be reached."
            )
    names = [tuple(int(one[key]) for key in KEYS) for one in shapes] if not found else []
    if len(set(names)) < len(names):
        found.append(f"{where} has a shape twice.")
    return found


def _whole(value: Any, most: int) -> bool:
    if isinstance(value, bool) or not str(value).isdigit():
        return False
    return 1 <= int(value) <= most


def read(shapes: Sequence[Mapping[str, Any]]) -> tuple[Shape, ...]:
    """Return sound shapes as the logic takes them. Raises ValueError for others."""
    wrong = problems("shapes", shapes)
    if wrong:
        raise ValueError("\n".join(wrong))
    return tuple(Shape(*(int(one[key]) for key in KEYS)) for one in shapes)
