# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find where an edit belongs and what stands there: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Protocol

from . import dicts
from .errors import SourceError
from .names import FUNCTIONS
from .spec import DictEntry, Edit
from .text import SourceText, Splice
from .tree import Tree

if TYPE_CHECKING:
    from .locate_gate import GateLocator

Base = Callable[[str], SourceText]


class Target(Protocol):
    """A place that an edit belongs to."""

    source: SourceText
    qualified: str
    node: ast.expr

    @property
    def line(self) -> int:
        """Return its line."""

    @property
    def slot(self) -> str:
        """Return what tells it from the other places of its file."""


@dataclass
class Found:
    """Where an edit belongs. `state` is one of the six; without a target `message` says why."""

    state: str
    message: str = ""
    target: Target | None = None
    file: str | None = None
    line: int | None = None
    candidates: list[str] = field(default_factory=list)
    fatal: bool = False


class Locator:
    """Finds edits in a tree.

    :param base: gives a file as it is without our own edits.
    """

    def __init__(self, tree: Tree, base: Base) -> None:
        self.tree = tree
        self._base = base

    def locate(self, edit: Edit) -> Found:
        """Return where an edit belongs and what stands there now. Refusals come back as `fatal`."""
        try:
            if isinstance(edit.what, DictEntry):
                return self._dict(edit, edit.what)
            return self._gates().locate(edit, edit.what)
        except SourceError as exc:
            return Found(exc.state, str(exc), file=exc.file, line=exc.line, fatal=True)
        except RecursionError:
            return Found("not_found", "the source is nested too deeply to be looked through", fatal=True)

    def sources(self, within: Sequence[str], needles: Sequence[Sequence[str]]) -> tuple[int, list[SourceText]]:
        """Return how many files match, and those that hold one of each group of needles."""
        names = self.tree.files(within)
        groups = [[needle.encode() for needle in group] for group in needles if group]
        found = []
        for name in names:
            raw = self.tree.raw(name)
            if all(any(needle in raw for needle in group) for group in groups):
                found.append(self._parsed(self._base(name)))
        return len(names), found

    def _parsed(self, source: SourceText) -> SourceText:
        try:
            _tree = source.tree
        except SourceError as exc:
            here = ".".join(map(str, sys.version_info[:3]))
            wants = self.tree.requires_python()
            hint = f"; this is Python {here}" + (f", the tree asks for {wants}" if wants else "")
            hint += ": if the source is newer than that, run with the Python that the source is for"
            raise SourceError(exc.reason + hint, exc.file, exc.line) from exc
        return source

    def nothing(self, edit: Edit, looked: int, what: str) -> Found:
        """Return that the place does not exist."""
        within = ", ".join(edit.what.within) or "the root"
        if not looked:
            return Found("not_found", f"no file matches {within} below {self.tree.folder}{self.age(edit)}")
        return Found("not_found", f"none of the {looked} files in {within} has {what}{self.age(edit)}")

    def age(self, edit: Edit) -> str:
        """Return what versions have to do with it, in parentheses, or nothing."""
        version = self.tree.version()
        if edit.since:
            says = f"; this tree says it is {version}" if version else ""
            return f" (the edit is for source from {edit.since} on{says}: older source has no such place)"
        return f" (this tree says it is {version})" if version else ""

    def _dict(self, edit: Edit, what: DictEntry) -> Found:
        looked, sources = self.sources(what.within, [[name.rpartition(".")[2] for name in what.name]])
        targets = [target for source in sources for target in self.within_depth(source, dicts.find, what)]
        fit = [target for target in targets if isinstance(target.node, ast.Dict)]
        if not fit and targets:
            dicts.state(targets[0], what)
        if not fit:
            return self.nothing(edit, looked, f"an assignment to {' or '.join(what.name)}")
        if len(fit) > 1:
            return self.ambiguous(fit)
        target = fit[0]
        again = [other for other in targets if other is not target]
        for other in again:
            if other.slot == target.slot and other.source is target.source:
                raise SourceError(
                    f"{target.qualified} is assigned again here", other.source.name, other.line, "conflict"
                )
        # a function's own variable of that name is another thing; what a call built elsewhere may be the one meant
        meant = [other for other in again if not isinstance(other.scopes[-1], FUNCTIONS)]
        if meant:
            return self.ambiguous([target, *meant])
        self.check_made_once(target.source, target.scopes)
        state, message = dicts.state(target, what)
        if state == "absent" and edit.state == "present":
            for source in sources:
                if source is not target.source:
                    dicts.check_other(source, target, what)
        return Found(state, message, target, target.source.name, target.line)

    def within_depth(self, source: SourceText, find: Callable[[SourceText, Any], list[Any]], what: Any) -> list[Any]:
        """Return what `find` finds in a file.

        :raises SourceError: the file is nested too deeply to be looked through.
        """
        try:
            return find(source, what)
        except RecursionError as exc:
            raise SourceError("is nested too deeply to be looked through", source.name, 1) from exc

    def check_made_once(self, source: SourceText, scopes: Sequence[ast.AST]) -> None:
        """Check that no function or class around a place is defined again after it, which makes the first one dead.

        :raises SourceError: one is.
        """
        for outer, inner in zip(scopes, scopes[1:]):
            for block in _blocks(outer):
                later = block[block.index(inner) + 1 :] if inner in block else []
                for other in later:
                    plain = isinstance(other, (*FUNCTIONS, ast.ClassDef)) and not other.decorator_list
                    if plain and getattr(other, "name", "") == getattr(inner, "name", None):
                        text = f"{inner.name} is defined again here, so the one in line {inner.lineno} counts no more"  # type: ignore[attr-defined]
                        raise SourceError(text, source.name, getattr(other, "lineno", 1), "conflict")

    def ambiguous(self, targets: Sequence[Target]) -> Found:
        """Return that there are several places."""
        places = [f"{target.source.name}:{target.line} ({target.qualified})" for target in targets]
        message = f"{len(places)} places match: {', '.join(places)}; narrow within, or name the one that is meant"
        return Found("ambiguous", message, candidates=places)

    def _gates(self) -> GateLocator:
        # Python compiles a module's files anew in every run on a host: without a gate, none of the code for gates
        from .locate_gate import GateLocator

        return GateLocator(self)

    def plan(self, target: Any, edit: Edit) -> tuple[list[Splice], ast.Module]:
        """Return the splices for an absent edit, and the tree that the text has to have after them.

        :raises SourceError: the edit cannot be done safely.
        """
        expected = target.source.fresh_tree()
        if isinstance(edit.what, DictEntry):
            return dicts.plan(target, edit.what, expected), expected
        return self._gates().plan(target, edit.what, expected), expected


def _blocks(scope: ast.AST) -> list[list[Any]]:
    """Return the lists of statements of a scope, those of compound statements too."""
    found, todo = [], [scope]
    while todo:
        node = todo.pop()
        for _field, value in ast.iter_fields(node):
            if not isinstance(value, list) or not value or isinstance(value[0], ast.expr):
                continue
            if isinstance(value[0], ast.stmt):
                found.append(value)
            todo += [item for item in value if not isinstance(item, (*FUNCTIONS, ast.ClassDef))]
    return found
