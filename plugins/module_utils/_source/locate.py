# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find where an edit belongs and what stands there: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Callable, Union, cast

from . import dicts, gates
from .definitions import Definitions
from .errors import SourceError
from .modules import Modules
from .spec import DictEntry, Edit, Gate, expression
from .text import SourceText, Splice
from .tree import Tree

Target = Union[dicts.DictTarget, gates.GateTarget]
Base = Callable[[str], SourceText]
WORD = re.compile(r"\w+")


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
        self._tree = tree
        self._base = base
        self._prefix = tree.package()[1]
        self._modules = Modules(tree.module)

    def locate(self, edit: Edit) -> Found:
        """Return where an edit belongs and what stands there now. Refusals come back as `fatal`."""
        try:
            return self._dict(edit, edit.what) if isinstance(edit.what, DictEntry) else self._gate(edit, edit.what)
        except SourceError as exc:
            return Found(exc.state, str(exc), file=exc.file, line=exc.line, fatal=True)

    def _sources(self, within: Sequence[str], needles: Sequence[Sequence[str]]) -> tuple[int, list[SourceText]]:
        """Return how many files match, and those that hold one of each group of needles."""
        names = self._tree.files(within)
        groups = [[needle.encode() for needle in group] for group in needles if group]
        found = []
        for name in names:
            raw = self._tree.raw(name)
            if all(any(needle in raw for needle in group) for group in groups):
                found.append(self._parsed(self._base(name)))
        return len(names), found

    def _parsed(self, source: SourceText) -> SourceText:
        try:
            _tree = source.tree
        except SourceError as exc:
            here = ".".join(map(str, sys.version_info[:3]))
            wants = self._tree.requires_python()
            hint = f"; this is Python {here}" + (f", the tree asks for {wants}" if wants else "")
            hint += ": if the source is newer than that, run with the Python that the source is for"
            raise SourceError(exc.reason + hint, exc.file, exc.line) from exc
        return source

    def _nothing(self, edit: Edit, looked: int, what: str) -> Found:
        within = ", ".join(edit.what.within) or "the root"
        if not looked:
            return Found("not_found", f"no file matches {within} below {self._tree.folder}{self._age(edit)}")
        return Found("not_found", f"none of the {looked} files in {within} has {what}{self._age(edit)}")

    def _age(self, edit: Edit) -> str:
        version = self._tree.version()
        if edit.since:
            says = f"; this tree says it is {version}" if version else ""
            return f" (the edit is for source from {edit.since} on{says}: older source has no such place)"
        return f" (this tree says it is {version})" if version else ""

    def _dict(self, edit: Edit, what: DictEntry) -> Found:
        looked, sources = self._sources(what.within, [[name.rpartition(".")[2] for name in what.name]])
        targets = [target for source in sources for target in dicts.find(source, what)]
        fit = [target for target in targets if isinstance(target.node, ast.Dict)]
        if not fit and targets:
            dicts.state(targets[0], what)
        if not fit:
            return self._nothing(edit, looked, f"an assignment to {' or '.join(what.name)}")
        if len(fit) > 1:
            return self._ambiguous(fit)
        target = fit[0]
        for other in targets:
            if other is not target and other.slot == target.slot and other.source is target.source:
                raise SourceError(f"{target.qualified} is assigned again here", other.source.name, other.line)
        state, message = dicts.state(target, what)
        if state == "absent" and edit.state == "present":
            self._check_others(target, what, sources)
        return Found(state, message, target, target.source.name, target.line)

    def _check_others(self, target: dicts.DictTarget, what: DictEntry, sources: Sequence[SourceText]) -> None:
        """Look for changes of a module's dict in the other files that import it."""
        for source in sources:
            imported = any(
                isinstance(node, ast.ImportFrom) and any(alias.name == target.name for alias in node.names)
                for node in ast.walk(source.tree)
            )
            if source is not target.source and imported:
                dicts.check_shadow(source, target, what)

    def _ambiguous(self, targets: Sequence[Target]) -> Found:
        places = [f"{target.source.name}:{target.line} ({target.qualified})" for target in targets]
        message = f"{len(places)} places match: {', '.join(places)}; narrow within, or name the one that is meant"
        return Found("ambiguous", message, candidates=places)

    def _gate(self, edit: Edit, what: Gate) -> Found:
        words = [[word] for term in what.all_of for word in WORD.findall(term)]
        names = [name.rpartition(".")[2] for name in what.function]
        looked, sources = self._sources(what.within, [*words, names])
        targets = [target for source in sources for target in gates.find(source, what)]
        if not targets:
            return self._no_gate(edit, what, looked, sources)
        if len(targets) > 1:
            return self._ambiguous(targets)
        target = targets[0]
        file, line = target.source.name, target.line
        definitions = self._definitions(target, what)
        like = expression(what.like, "like")
        olds = sorted({part.id for part in ast.walk(like) if isinstance(part, ast.Name)})
        for clash in filter(None, map(definitions.clash, olds)):
            return Found("conflict", f"{file}: {clash}", target, file, line)
        meanings = definitions.meanings(like.id) if isinstance(like, ast.Name) else []
        if gates.has_term(target, what.add, meanings):
            return Found("upstream", f"{file}:{line} tests {what.add} already", target, file, line)
        if edit.state == "present":
            try:
                definitions.need(like)
            except SourceError as exc:
                return Found(exc.state, f"{exc}{self._age(edit)}", target, file, line)
        return Found("absent", "", target, file, line)

    def _no_gate(self, edit: Edit, what: Gate, looked: int, sources: Sequence[SourceText]) -> Found:
        wanted = f"an `or` of {' and '.join(what.all_of)}" if len(what.all_of) > 1 else f"a test of {what.all_of[0]}"
        if what.function:
            wanted += f" in {' or '.join(what.function)}"
        found = self._nothing(edit, looked, wanted)
        bare = [f"{source.name}:{node.lineno}" for source in sources for node in gates.functions(source, what)]
        if bare:
            found.message += f"; the function is there without it: {', '.join(bare)}"
        return found

    def _definitions(self, target: gates.GateTarget, what: Gate) -> Definitions:
        return Definitions(target.source, target.scopes, gates.analogy(what), self._modules, self._prefix)

    def plan(self, target: Target, edit: Edit) -> tuple[list[Splice], ast.Module]:
        """Return the splices for an absent edit, and the tree that the text has to have after them.

        :raises SourceError: the edit cannot be done safely.
        """
        expected = target.source.fresh_tree()
        if isinstance(edit.what, DictEntry):
            return dicts.plan(cast(dicts.DictTarget, target), edit.what, expected), expected
        target = cast(gates.GateTarget, target)
        definitions = self._definitions(target, edit.what)
        definitions.need(expression_in(target, edit.what))
        definitions.check_bound(expression(edit.what.add, "add"))
        splices = definitions.splices + gates.plan_term(target, edit.what, expected)
        definitions.change(expected)
        return sorted(splices, key=lambda splice: splice.start), expected


def expression_in(target: gates.GateTarget, what: Gate) -> ast.expr:
    """Return the term of the gate that the new one is made like."""
    like = ast.dump(expression(what.like, "like"))
    terms = target.node.values if isinstance(target.node, ast.BoolOp) else [target.node]
    return next(term for term in terms if ast.dump(term) == like)
