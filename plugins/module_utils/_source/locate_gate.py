# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find where a gate edit belongs and what stands there: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from . import gates
from .definitions import Definitions
from .errors import SourceError
from .locate import Found, Locator
from .modules import Modules
from .spec import Edit, Gate, expression
from .text import SourceText, Splice

WORD = re.compile(r"\w+")


class GateLocator:
    """Finds gate edits in the tree of a locator."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._prefix = locator.tree.package()[1]
        self._modules = Modules(locator.tree.module)

    def locate(self, edit: Edit, what: Gate) -> Found:
        """Return where a gate edit belongs and what stands there now."""
        words = [[word] for term in what.all_of for word in WORD.findall(term)]
        names = [name.rpartition(".")[2] for name in what.function]
        looked, sources = self._locator.sources(what.within, [*words, names])
        targets = [target for source in sources for target in self._locator.within_depth(source, gates.find, what)]
        if not targets:
            return self._no_gate(edit, what, looked, sources)
        if len(targets) > 1:
            return self._locator.ambiguous(targets)
        target = targets[0]
        file, line = target.source.name, target.line
        self._locator.check_made_once(target.source, target.scopes)
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
                return Found(exc.state, f"{exc}{self._locator.age(edit)}", target, file, line)
        return Found("absent", "", target, file, line)

    def _no_gate(self, edit: Edit, what: Gate, looked: int, sources: Sequence[SourceText]) -> Found:
        wanted = f"an `or` of {' and '.join(what.all_of)}" if len(what.all_of) > 1 else f"a test of {what.all_of[0]}"
        if what.function:
            wanted += f" in {' or '.join(what.function)}"
        found = self._locator.nothing(edit, looked, wanted)
        bare = [f"{source.name}:{node.lineno}" for source in sources for node in gates.functions(source, what)]
        if bare:
            found.message += f"; the function is there without it: {', '.join(bare)}"
        return found

    def _definitions(self, target: gates.GateTarget, what: Gate) -> Definitions:
        return Definitions(target.source, target.scopes, target.node, gates.analogy(what), self._modules, self._prefix)

    def plan(self, target: gates.GateTarget, what: Gate, expected: ast.Module) -> list[Splice]:
        """Return the splices that add the term and what it needs, and change `expected` in the same way.

        :raises SourceError: the term cannot be added safely.
        """
        definitions = self._definitions(target, what)
        definitions.need(expression_in(target, what))
        definitions.check_bound(expression(what.add, "add"))
        splices = definitions.splices + gates.plan_term(target, what, expected)
        definitions.change(expected)
        return sorted(splices, key=lambda splice: splice.start)


def expression_in(target: gates.GateTarget, what: Gate) -> ast.expr:
    """Return the term of the gate that the new one is made like."""
    like = ast.dump(expression(what.like, "like"))
    terms = target.node.values if isinstance(target.node, ast.BoolOp) else [target.node]
    return next(term for term in terms if ast.dump(term) == like)
