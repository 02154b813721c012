# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute capabilities in names, numbers and comparisons: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from .errors import SourceError
from .names import is_whole

SM_WORD = re.compile(r"sm_?(\d{2,3})", re.IGNORECASE)
FAMILIES = {"hopper": (9,), "blackwell": (10, 11, 12)}
# a name that says a capability, and one that is a test by its name alone
NAMED = re.compile(r"sm_?\d{2,3}|hopper|blackwell", re.IGNORECASE)
PREDICATE = re.compile(r"^_*(?:is|has|use)_\w*(?:sm_?\d{2,3}|hopper|blackwell)\w*$", re.IGNORECASE)
MAJORS = frozenset(range(5, 20))
NUMBERS = frozenset({70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 107, 110, 120, 121})
OPERATORS = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.GtE: "at_least",
    ast.Gt: "above",
    ast.Lt: "below",
    ast.LtE: "at_most",
    ast.In: "member",
    ast.NotIn: "not_member",
}
MIRRORED = {"at_least": "at_most", "at_most": "at_least", "above": "below", "below": "above"}
Literal = Callable[[ast.expr], Any]


@dataclass
class Atom:
    """One capability test. `true` says whether it holds for the chip, `treats` whether it mentions the chip."""

    kind: str
    capabilities: list[str]
    true: bool | None
    treats: bool


@dataclass
class Chip:
    """A compute capability."""

    major: int
    minor: int

    @property
    def number(self) -> int:
        """Return it as one number, 120 for 12.0."""
        return self.major * 10 + self.minor

    def like(self, item: Any) -> Any:
        """Return the chip in the form of a literal: 12, 120 or (12, 0); None for no capability of an NVIDIA chip."""
        if isinstance(item, tuple) and len(item) == 2 and item[0] in MAJORS and is_whole(item[1]):
            # 9.4 and 9.5 are AMD's, which ROCm's torch reports in the same way
            return None if item[0] == 9 and item[1] else (self.major, self.minor)
        if is_whole(item) and item in MAJORS:
            return self.major
        return self.number if is_whole(item) and item in NUMBERS else None

    def named(self, name: str) -> bool:
        """Say whether a name mentions the chip."""
        majors = {int(digits) // 10 for digits in SM_WORD.findall(name)}
        for family, numbers in FAMILIES.items():
            majors |= set(numbers) if family in name.lower() else set()
        return self.major in majors or bool(re.search(rf"sm_?{self.major}x", name, re.IGNORECASE))

    def by_name(self, name: str) -> Atom | None:
        """Return what a predicate says by its name alone, such as `is_sm100_supported`."""
        if not PREDICATE.match(name):
            return None
        found: list[tuple[int, int | None]] = []
        for digits in SM_WORD.findall(name):
            number = int(digits)
            # is_sm100_supported and its like are of the whole generation
            found.append((number // 10, None if number % 10 == 0 else number % 10))
        for family, majors in FAMILIES.items():
            if family in name.lower():
                found += [(major, None) for major in majors]
        true = any(major == self.major and minor in (None, self.minor) for major, minor in found)
        if re.search(r"or_(newer|above|later|higher)|_plus", name):
            true = self.number >= min(major * 10 + (minor or 0) for major, minor in found)
        return Atom("predicate", [f"{major}.{minor or 0}" for major, minor in found], true, self.named(name))

    def listed(self, kind: str, values: Sequence[Any]) -> Atom | None:
        """Return what a comparison with literals says; None where one of them is no capability."""
        pairs = [(self.like(item), item) for item in values]
        if not pairs or any(mine is None for mine, _item in pairs):
            return None
        capabilities = [capability_text(item) for _mine, item in pairs]
        treats = any(int(float(text)) == self.major for text in capabilities)
        return Atom(kind, capabilities, _holds(kind, pairs), treats)

    def compared(self, node: ast.Compare, is_measure: Callable[[ast.expr], bool], literal: Literal) -> Atom | None:
        """Return what `capability >= 10`, `sm in (100, 103)` or `(9, 0) <= capability < (10, 0)` says."""
        sides = [node.left, *node.comparators]
        found = []
        for left, operator, right in zip(sides, node.ops, sides[1:]):
            kind = OPERATORS.get(type(operator), "")
            if is_measure(left):
                value = literal(right)
            elif is_measure(right) and kind not in ("member", "not_member"):
                value, kind = literal(left), MIRRORED.get(kind, kind)
            else:
                return None
            if value is None:
                return None
            many = kind in ("member", "not_member") and isinstance(value, (tuple, list, set, frozenset))
            atom = self.listed(kind, list(value) if many else [value]) if kind else None
            if atom is None:
                return None
            found.append(atom)
        if len(found) == 1:
            return found[0]
        capabilities = [text for atom in found for text in atom.capabilities]
        return Atom("range", capabilities, all(atom.true for atom in found), any(atom.treats for atom in found))

    def table(self, node: ast.Dict, literal: Literal) -> Atom | None:
        """Return what a dict literal whose keys are capabilities says."""
        keys = [literal(key) for key in node.keys if key is not None]
        if len(keys) < 2 or len(keys) != len(node.keys):
            return None
        numbers = all(is_whole(key) and key in NUMBERS for key in keys)
        majors = all(is_whole(key) and 7 <= key <= 13 for key in keys) and {9, 10} & set(keys)
        pairs = all(isinstance(key, tuple) and len(key) == 2 and key[0] in MAJORS for key in keys)
        if not (numbers or majors or pairs):
            return None
        true = any(self.like(key) == key for key in keys)
        return Atom("table", [capability_text(key) for key in keys], true, true)


def chip(capability: str) -> Chip:
    """Return the chip of a capability such as 12.0 or 12.

    :raises SourceError: it is none.
    """
    match = re.fullmatch(r"(\d{1,2})(?:\.(\d))?", capability.strip())
    if not match:
        raise SourceError(f"{capability!r} is no compute capability, such as 12.0")
    return Chip(int(match.group(1)), int(match.group(2) or 0))


def plain_literal(node: ast.expr) -> Any:
    """Return the value of a number, a tuple, a list, a set or a range of such; None for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        values = [plain_literal(part) for part in node.args]
        if node.func.id == "range" and 1 <= len(values) <= 2 and all(is_whole(value) for value in values):
            # only the numbers that can be capabilities; range(100, 110) goes through 107
            return [number for number in range(*values) if number in NUMBERS or number in MAJORS][:64]
        wraps = node.func.id in ("frozenset", "set", "tuple", "list") and len(values) == 1
        return values[0] if wraps and isinstance(values[0], (tuple, list, set)) else None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (int, tuple, list, set)) and not isinstance(value, bool) else None


def capability_text(item: Any) -> str:
    """Return a capability, 10, 100 or (10, 0), as text: 10.0."""
    if isinstance(item, tuple):
        return f"{item[0]}.{item[1]}"
    return f"{item}.0" if item in MAJORS else f"{item // 10}.{item % 10}"


def _holds(kind: str, pairs: Sequence[tuple[Any, Any]]) -> bool:
    if kind == "member":
        return any(mine == item for mine, item in pairs)
    if kind == "not_member":
        return all(mine != item for mine, item in pairs)
    mine, item = pairs[0]
    return bool(
        {
            "equal": mine == item,
            "not_equal": mine != item,
            "at_least": mine >= item,
            "above": mine > item,
            "below": mine < item,
            "at_most": mine <= item,
        }[kind]
    )
