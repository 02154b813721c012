# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From one capability to another by analogy (sm100 to sm120): PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping
from typing import Any

from .errors import SourceError, SpecError
from .names import is_whole
from .text import SourceText, Splice, apply_splices

DIGITS = re.compile(r"\d+")
# what a number has to be compared with to count as a capability
MEASURE = re.compile(r"capabilit|major|(?<![a-z])(?:sm|cc|cap|arch)(?![a-z])", re.IGNORECASE)


class Analogy:
    """The one word in which two terms differ, and what follows from it for names and numbers.

    `_is_sm100_supported` and `_is_sm120_supported` give sm100 -> sm120 in names, 100 -> 120 and 10 -> 12 in
    numbers, where a definition has no name to change.

    :raises SpecError: the two differ in no word, or in more than one.
    """

    def __init__(self, like: str, add: str) -> None:
        pairs = {
            (old, new) for one, two in self._identifiers(like, add) for old, new in self._words(one, two) if old != new
        }
        if len(pairs) != 1:
            raise SpecError(f"{add} cannot be made like {like}: they have to differ in exactly one word")
        self.old, self.new = pairs.pop()
        self.numbers = self._numbers()

    @staticmethod
    def _identifiers(like: str, add: str) -> list[tuple[str, str]]:
        one, two = (re.findall(r"\w+", text) for text in (like, add))
        if len(one) != len(two):
            raise SpecError(f"{add} cannot be made like {like}: they have different shapes")
        return list(zip(one, two))

    @staticmethod
    def _words(one: str, two: str) -> list[tuple[str, str]]:
        old, new = one.split("_"), two.split("_")
        if len(old) != len(new):
            raise SpecError(f"{two} cannot be made like {one}: they have to differ in exactly one word")
        return list(zip(old, new))

    def _numbers(self) -> dict[int, int]:
        one, two = DIGITS.findall(self.old), DIGITS.findall(self.new)
        if len(one) != 1 or len(two) != 1:
            return {}
        pairs = {int(one[0]): int(two[0])}
        if len(one[0]) > 1 and len(two[0]) > 1:
            pairs[int(one[0][:-1])] = int(two[0][:-1])
        return pairs

    def name(self, name: str) -> str:
        """Return the counterpart of a name; the name itself where it has none."""
        return "_".join(self.new if word == self.old else word for word in name.split("_"))

    def replacements(self, source: SourceText, node: ast.AST) -> list[Splice]:
        """Return what to change in the text of `node` to get its counterpart (offsets into the file).

        :raises SourceError: something else in it may be about the old one too, and its counterpart is not sure.
        """
        found = self._named(source, node)
        numbers = [] if found else self._numbered(source, node)
        self.check_rest(source, node, {splice.start for splice in [*found, *numbers]})
        return sorted([*found, *numbers], key=lambda splice: splice.start)

    def check_rest(self, source: SourceText, node: ast.AST, done: set[int]) -> None:
        """Check that nothing of the old one is left in an expression beside what changes.

        :param done: the offsets that change.
        :raises SourceError: there is a number or a string that may mean it.
        """
        for part in ast.walk(node):
            value = part.value if isinstance(part, ast.Constant) else None
            number = is_whole(value) and value in self.numbers and source.start(part) not in done
            if number or (isinstance(value, str) and self.old in value):
                raise SourceError(
                    f"{source.segment(part)} here may be about {self.old} or not, so that there is no sure counterpart "
                    f"for {self.new}; write the definition of the new name into the source by hand",
                    source.name,
                    getattr(part, "lineno", None),
                )

    def _named(self, source: SourceText, node: ast.AST) -> list[Splice]:
        found = []
        for part in ast.walk(node):
            name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            end = source.end(part) if name else 0
            if name and self.name(name) != name and source.text[end - len(name) : end] == name:
                found.append(Splice(end - len(name), name, self.name(name)))
        return found

    def _numbered(self, source: SourceText, node: ast.AST) -> list[Splice]:
        """Return the changes of the one comparison that says which capability is meant, `== 10` or `in (100,)`."""
        compared = [part for part in ast.walk(node) if isinstance(part, ast.Compare) and self._decides(part)]
        literals = self._literals(compared[0].comparators[0]) if len(compared) == 1 else []
        return [
            Splice(source.start(part), str(old), str(new))
            for part in literals
            for old, new in self.numbers.items()
            if part.value == old and source.segment(part) == str(old)
        ]

    def _decides(self, node: ast.Compare) -> bool:
        single = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.In))
        return single and bool(MEASURE.search(ast.unparse(node.left))) and bool(self._literals(node.comparators[0]))

    def _literals(self, node: ast.expr) -> list[ast.Constant]:
        """Return the old numbers of `10`, `(10, 0)` or a sequence of such; none where there is anything else in it."""
        if isinstance(node, ast.Constant):
            return [node] if is_whole(node.value) and node.value in self.numbers else []
        if not isinstance(node, (ast.Tuple, ast.List, ast.Set)) or not node.elts:
            return []
        minor = node.elts[-1]
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and getattr(minor, "value", None) == 0:
            return self._literals(node.elts[0])
        each = [self._literals(item) for item in node.elts]
        return [item for items in each for item in items] if all(each) else []

    def transform(self, node: ast.AST, renamed: Mapping[str, str]) -> Any:
        """Return a copy of `node` with its counterpart's names: the tree that the copied text has to have.

        :param renamed: names that change in another way than by the word.
        """
        copied = copy.deepcopy(node)
        named = bool(renamed)
        for part in ast.walk(copied):
            if isinstance(part, ast.Name):
                new = renamed.get(part.id) or (self.name(part.id) if not renamed else part.id)
                named = named or (new != part.id and isinstance(part.ctx, ast.Load))
                part.id = self.name(part.id) if isinstance(part.ctx, ast.Store) else new
            elif isinstance(part, ast.Attribute) and not renamed:
                named = named or self.name(part.attr) != part.attr
                part.attr = self.name(part.attr)
        for part in ast.walk(copied):
            if not named and isinstance(part, ast.Constant) and is_whole(part.value):
                # whatever else holds such a number was refused before
                part.value = self.numbers.get(part.value, part.value)
        return copied

    def copy_text(self, source: SourceText, node: ast.AST, extra: list[Splice] | None = None) -> str:
        """Return the text of `node` with its counterpart's names."""
        start = source.start(node)
        splices = self.replacements(source, node) if extra is None else extra
        return apply_splices(source.segment(node), [splice._replace(start=splice.start - start) for splice in splices])
