# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give a name the definition of its sibling, capability changed: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
from typing import Any

from .analogy import Analogy
from .copies import Added, add_to, find_alias, is_fallback, last_term
from .errors import SourceError
from .modules import Modules
from .names import BUILTINS, FUNCTIONS, Binding, Bindings, Scope, bindings, statements, used_names
from .scopes import why_not_bound
from .text import SourceText, Splice, apply_splices, element_end, insert_element, insertion, only_comment_follows


class Definitions:
    """The definitions that a new term needs, as changes of one file.

    :param source: the file.
    :param scopes: the scopes around the gate, the module first.
    :param gate: the gate.
    :param analogy: how the new names follow from the old ones.
    :param modules: where imports come from.
    :param prefix: path of the root from where imports start, with a slash, or nothing.
    """

    def __init__(
        self,
        source: SourceText,
        scopes: tuple[Scope, ...],
        gate: ast.expr,
        analogy: Analogy,
        modules: Modules,
        prefix: str = "",
    ) -> None:
        self._source = source
        self._scopes = scopes
        around = [item for item in statements(scopes[-1]) if item.lineno <= gate.lineno <= (item.end_lineno or 0)]
        self._statement = around[-1] if around else scopes[-1].body[0]
        # a class body's names are not seen from its methods
        seen = [scope for scope in scopes if scope is scopes[-1] or not isinstance(scope, ast.ClassDef)]
        self._bindings: list[Bindings] = [bindings(scope) for scope in seen]
        self._analogy = analogy
        self._modules = modules
        self._importer = prefix + source.name
        self._done: set[str] = set()
        self.splices: list[Splice] = []
        self._imported: set[tuple[int, str]] = set()
        self._added: list[tuple[ast.stmt, Added]] = []

    def lookup(self, name: str) -> list[Binding]:
        """Return the bindings of a name in the innermost scope that has any."""
        for scope in reversed(self._bindings):
            if name in scope:
                return scope[name]
        return []

    def clash(self, old: str) -> str | None:
        """Return why the counterpart of `old` means something else already, or None."""
        new = self._analogy.name(old)
        have = self.lookup(new)
        if new == old or not have:
            return None
        if self._same(self.lookup(old), have):
            return None
        return f"{new} is bound already in line {have[0].line}, and not as {old} is"

    def meanings(self, old: str) -> list[str]:
        """Return the dumps of the expressions that mean the counterpart of `old`."""
        found = []
        for binding in self.lookup(old):
            if binding.kind == "assign":
                value = self._counterpart(binding.node.value)  # type: ignore[attr-defined]
                if value is not None:
                    found += [ast.dump(value), ast.dump(last_term(value))]
        return found

    def _counterpart(self, node: ast.expr) -> ast.expr | None:
        try:
            splices = self._replacements(node)
        except SourceError:
            return None
        if not splices:
            return None
        text = self._analogy.copy_text(self._source, node, splices)
        try:
            return ast.parse(f"({text}\n)", mode="eval").body
        except SyntaxError:
            return None

    def _same(self, old: list[Binding], new: list[Binding]) -> bool:
        if len(old) != len(new):
            return False
        for one, two in zip(old, new):
            if one.kind == two.kind and is_fallback(one) and is_fallback(two):
                continue
            if one.kind != two.kind or one.kind not in ("import", "assign"):
                return False
            if one.kind == "import":
                names = [binding.alias.name if binding.alias else "" for binding in (one, two)]
                if self._analogy.name(names[0]) != names[1]:
                    return False
                continue
            wanted = self._counterpart(one.node.value)  # type: ignore[attr-defined]
            found = two.node.value  # type: ignore[attr-defined]
            if wanted is None or ast.dump(last_term(wanted)) != ast.dump(last_term(found)):
                return False
        return True

    def need(self, node: ast.expr) -> None:
        """See to it that the counterpart of an expression works where the gate stands.

        :raises SourceError: it cannot be made to.
        """
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and self._analogy.name(part.id) != part.id:
                self._bind(part.id)
            elif isinstance(part, ast.Attribute) and self._analogy.name(part.attr) != part.attr:
                self._check_attribute(part)

    def check_bound(self, node: ast.expr) -> None:
        """Check that all names of the new term will be bound where the gate stands.

        :raises SourceError: one will not.
        """
        for name in sorted(used_names(node) - self._done - BUILTINS):
            if not self.lookup(name):
                raise SourceError(f"{name} is not bound in this file", self._source.name)

    def _bind(self, old: str) -> None:
        new = self._analogy.name(old)
        clash = self.clash(old)
        if clash:
            raise SourceError(clash, self._source.name, self.lookup(new)[0].line, "conflict")
        if new in self._done:
            return
        if self.lookup(new):
            self._check_as_sure(new, old)
            return
        self._done.add(new)
        origin = self.lookup(old)
        if not origin:
            raise SourceError(f"{old}, which {new} is to be made like, is not bound in this file", self._source.name)
        self._check_not_set_elsewhere(old)
        for binding in origin:
            self._copy(binding, new, any(self._is_about_old(other) for other in origin))

    def _check_as_sure(self, new: str, old: str) -> None:
        reason, line = why_not_bound(self._scopes, new, self._statement)
        if reason and not why_not_bound(self._scopes, old, self._statement)[0]:
            raise SourceError(f"{new} {reason}", self._source.name, line or self._statement.lineno, "conflict")

    def _check_not_set_elsewhere(self, old: str) -> None:
        for node in ast.walk(self._source.tree):
            if isinstance(node, FUNCTIONS) and any(
                isinstance(part, ast.Global) and old in part.names for part in ast.walk(node)
            ):
                raise SourceError(f"{node.name} sets {old} too, as a global", self._source.name, node.lineno)

    def _is_about_old(self, binding: Binding) -> bool:
        """Say whether a binding has something in it that differs for the new name."""
        if binding.kind == "assign":
            return bool(self._replacements(binding.node.value))  # type: ignore[attr-defined]
        return isinstance(binding.node, ast.ImportFrom)

    def _copy(self, binding: Binding, new: str, about_old: bool) -> None:
        """Copy one binding for the new name.

        :param about_old: whether this or another binding of the same name differs for the new one; then one that
            only says no, in the other branch, goes for both.
        """
        if isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
            self._copy_import(binding.node, binding.alias, new)
        elif about_old and is_fallback(binding):
            self._copy_fallback(binding.node, new)  # type: ignore[arg-type]
        elif binding.kind == "assign":
            self._copy_assignment(binding.node)  # type: ignore[arg-type]
        else:
            old = next(name for found in self._bindings for name, items in found.items() if binding in items)
            raise SourceError(
                f"{old} is bound here in a way that cannot be copied for {new}", self._source.name, binding.line
            )

    def _copy_fallback(self, statement: ast.stmt, new: str) -> None:
        source = self._source
        start, end = source.start(statement), source.end(statement)
        if isinstance(statement, ast.FunctionDef):
            at = source.text.index(statement.name, start + len("def"))
            old, at = statement.name, at - start
        else:
            target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target  # type: ignore[attr-defined]
            old, at = target.id, source.start(target) - start
        self._insert_after(statement, apply_splices(source.text[start:end], [Splice(at, old, new)]))
        copied = self._analogy.transform(statement, {})
        if isinstance(copied, ast.FunctionDef):
            copied.name = new
        self._added.append((statement, copied))

    def _insert_after(self, statement: ast.stmt, text: str) -> None:
        """Put a statement after another one: on its own line or, where others follow on that one's, behind it."""
        source = self._source
        start, end = source.start(statement), source.end(statement)
        indent = source.indent(start)
        if indent is None or not only_comment_follows(source, end):
            self.splices.append(insertion(end, f"; {text}"))
        else:
            self.splices.append(insertion(source.line_end(end), f"{source.newline(start, end)}{indent}{text}"))

    def _copy_assignment(self, statement: ast.stmt) -> None:
        source = self._source
        value: ast.expr = statement.value  # type: ignore[attr-defined]
        inner = self._replacements(value)
        if not inner:
            raise SourceError(
                f"this definition names no {self._analogy.old} to make {self._analogy.new} from",
                source.name,
                statement.lineno,
            )
        self.need(value)
        for name in self._renamed_imports(value):
            for binding in self.lookup(name):
                if isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
                    self._copy_import(binding.node, binding.alias, self._analogy.name(binding.alias.name))
        target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        head = Splice(source.start(target), target.id, self._analogy.name(target.id))
        start, end = source.start(statement), source.end(statement)
        splices = [splice._replace(start=splice.start - start) for splice in [head, *inner]]
        self._insert_after(statement, apply_splices(source.text[start:end], splices))
        self._added.append((statement, self._analogy.transform(statement, self._renamed_imports(value))))

    def _renamed_imports(self, node: ast.expr) -> dict[str, str]:
        """Return the names that are imported `as` something without the word, with what replaces them."""
        found = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and self._analogy.name(part.id) == part.id:
                for binding in self.lookup(part.id):
                    if binding.alias is not None and binding.alias.asname and isinstance(binding.node, ast.ImportFrom):
                        new = self._analogy.name(binding.alias.name)
                        if new != binding.alias.name:
                            found[part.id] = new
        return found

    def _replacements(self, node: ast.expr) -> list[Splice]:
        renamed = self._renamed_imports(node)
        aliases = [
            Splice(self._source.start(part), part.id, renamed[part.id])
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and part.id in renamed
        ]
        if aliases:
            self._analogy.check_rest(self._source, node, {splice.start for splice in aliases})
            return sorted(aliases)
        return self._analogy.replacements(self._source, node)

    def _copy_import(self, statement: ast.ImportFrom, alias: ast.alias, new: str) -> None:
        wanted = self._analogy.name(alias.name)
        if (statement.lineno, new) in self._imported:
            return
        self._imported.add((statement.lineno, new))
        where = (self._source.name, statement.lineno)
        dotted = self._modules.path(statement, self._importer)
        if wanted == alias.name:
            raise SourceError(f"{alias.name} as {alias.asname} has no {self._analogy.old} to change", *where)
        if self._modules.source(dotted) is None:
            raise SourceError(f"{dotted}, which would have to provide {wanted}, is not found under the root", *where)
        if not self._modules.provides(dotted, wanted, alias.name):
            conditional = " for sure, or not for an importer" if self._modules.mentions(dotted, wanted) else ""
            raise SourceError(f"{wanted} does not exist in {self._modules.describe(dotted)}{conditional}", *where)
        text = wanted if wanted == new else f"{wanted} as {new}"
        start, end, inside = find_alias(self._source, statement, alias)
        newline = self._source.newline(start, end)
        if inside:
            end, comma = element_end(self._source.text, end, ")")
            self.splices += insert_element(self._source, start, end, comma, text, newline)
        else:
            self.splices.append(insertion(end, f", {text}"))
        copied = ast.alias(name=wanted, asname=None if wanted == new else new)
        self._added.append((statement, (statement.names.index(alias), copied)))

    def _check_attribute(self, node: ast.Attribute) -> None:
        wanted = self._analogy.name(node.attr)
        base: ast.expr = node.value
        while isinstance(base, (ast.Attribute, ast.Call, ast.Subscript)):
            base = base.func if isinstance(base, ast.Call) else base.value
        where = (self._source.name, node.lineno)
        for binding in self.lookup(base.id) if isinstance(base, ast.Name) else []:
            if binding.alias is not None and self._imported_knows(binding, wanted):
                return
            if binding.alias is None and wanted in self._source.text:
                return
        raise SourceError(
            f"{ast.unparse(node.value)} is not known to have {wanted}; its source says nothing of it", *where
        )

    def _imported_knows(self, binding: Binding, wanted: str) -> bool:
        if binding.alias is None:
            return False
        if isinstance(binding.node, ast.ImportFrom):
            dotted = self._modules.path(binding.node, self._importer)
            places = [dotted, f"{dotted}.{binding.alias.name}"]
        else:
            places = [binding.alias.name]
        for place in list(places):
            source = self._modules.source(place)
            for other in bindings(source.tree).get(binding.alias.name, []) if source else []:
                if isinstance(other.node, ast.ImportFrom) and source:
                    places.append(self._modules.path(other.node, source.name))
        return any(self._modules.mentions(place, wanted) or self._modules.provides(place, wanted) for place in places)

    def change(self, expected: ast.Module) -> None:
        """Make the additions in a fresh tree of the same text."""
        for statement, added in self._added:
            add_to(expected, statement, added)
