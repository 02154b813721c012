# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an expression says of a chip, definitions of its names included: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from .chips import NAMED, PREDICATE, Atom, Chip, plain_literal
from .modules import Modules
from .names import FUNCTIONS, bindings
from .text import SourceText

MEASURE = re.compile(
    r"capability|capabilities|(?:^|_)(?:major|sm|cc|device_sm|sm_version|sm_major|cc_major|sm_arch|compute_cap|cuda_arch)$",
    re.IGNORECASE,
)
# a plain name of these is a measure whatever it is assigned from
PLAIN = re.compile(r"capability|device_sm|sm_major|cc_major|sm_version")
# what a capability comes from; an argument of one of these names is one, where the file has no version of that name
ORIGIN = re.compile(r"capabilit|device_sm|get_device_properties")
ARGUMENTS = {"major", "cc", "sm"}
# is_blackwell = partial(check, device_capability_majors=[10, 11, 12])
MAJORS_OPTION = re.compile(r"majors$|capabilit")


class Definitions:
    """What the names of a whole tree are made of. Names that say no capability are left out."""

    def __init__(self) -> None:
        self._shared: dict[str, list[tuple[Judge, ast.expr]]] = {}

    def add(self, name: str, judge: Judge, value: ast.expr) -> None:
        """Note what a name of a module stands for."""
        self._shared.setdefault(name, []).append((judge, value))

    def of(self, name: str) -> list[tuple[Judge, ast.expr]]:
        """Return what a name stands for in the modules that define it."""
        return self._shared.get(name, [])


class Judge:
    """Says what the expressions of one file mean.

    :param shared: where the definitions of all files come together.
    """

    def __init__(self, source: SourceText, wanted: Chip, shared: Definitions, modules: Modules) -> None:
        self.source, self.chip, self._shared, self._modules = source, wanted, shared, modules
        self._own: dict[str, list[tuple[str, ast.expr]]] = {}
        self._majors: set[str] = set()
        self._active: set[int] = set()
        self._constants: dict[str, Any] = {}
        self._versions: set[str] = set()
        for node, function in _with_functions(source.tree):
            if isinstance(node, FUNCTIONS):
                self._majors |= {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)} & ARGUMENTS
                self._define_function(node, function)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                self._define(node, node.value, function)
        # a name that both kinds of things are assigned to is a measure only where its text says so
        self._majors -= self._versions

    def _define(self, node: Any, value: ast.expr, function: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {
            str(getattr(part, "id", "") or getattr(part, "attr", ""))
            for target in targets
            for part in ast.walk(target)
            if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load)
        }
        words = {getattr(part, "id", "") or getattr(part, "attr", "") for part in ast.walk(value)}
        if {"major", "minor"} <= words or any(ORIGIN.search(word) for word in words if word):
            self._majors |= names
        elif any("version" in word for word in words if word):
            self._versions |= names
        for name in names:
            if NAMED.search(name) and not isinstance(value, (ast.Dict, ast.Constant)):
                self._own.setdefault(name, []).append((function, value))
                if not function:
                    self._shared.add(name, self, value)

    def _define_function(self, node: Any, function: str) -> None:
        """Take a function that says a capability for what it returns, if that is one expression."""
        if not PREDICATE.match(node.name):
            return
        returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None]
        values = [value for value in returned if not isinstance(value, ast.Constant)]
        if len(values) == 1:
            outer = function.rpartition(".")[0]
            self._own.setdefault(node.name, []).append((outer, values[0]))
            if not outer:
                self._shared.add(node.name, self, values[0])

    def atom(self, node: ast.expr, function: str) -> Atom | None:
        """Return what one capability test says, or None where the expression is none."""
        if isinstance(node, ast.Compare):
            return self.chip.compared(node, self.is_measure, self._literal)
        if isinstance(node, ast.Dict):
            return self.chip.table(node, plain_literal)
        called = node.func if isinstance(node, ast.Call) else node
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if not name or not isinstance(getattr(called, "ctx", ast.Load()), ast.Load) or not NAMED.search(name):
            return None
        if isinstance(node, ast.Call) and not PREDICATE.match(name):
            return None
        return self._by_definition(name, function) or self.chip.by_name(name)

    def _by_definition(self, name: str, function: str) -> Atom | None:
        """Return what the definitions of a name say, where there are some and they agree."""
        own = [item for item in self._own.get(name, []) if f"{function}.".startswith(f"{item[0]}.") or not item[0]]
        depth = max((len(where) for where, _value in own), default=0)
        chosen = [(self, value) for where, value in own if len(where) == depth]
        atoms = [judge._judged(value, function) for judge, value in chosen]
        if not any(atoms):
            # an attribute, or imported
            elsewhere = self._own.get(name, []) if not chosen else []
            atoms = [self._judged(value, where) for where, value in elsewhere]
            atoms = atoms if any(atoms) else [judge._judged(value, "") for judge, value in self._shared.of(name)]
        found = [atom for atom in atoms if atom is not None]
        if not found or any((atom.true, atom.treats) != (found[0].true, found[0].treats) for atom in found):
            return None
        return Atom(
            "predicate",
            sorted({text for atom in found for text in atom.capabilities}, key=float),
            found[0].true,
            found[0].treats,
        )

    def _judged(self, value: ast.expr, function: str) -> Atom | None:
        """Return a definition's capability tests as one; None where it has none."""
        if id(value) in self._active:
            return None
        self._active.add(id(value))
        try:
            atoms = [atom for _node, atom in self.atoms(value, function)]
            if not atoms:
                return self._majors_option(value)
            capabilities = [text for atom in atoms for text in atom.capabilities]
            return Atom("predicate", capabilities, self.value(value, function), any(atom.treats for atom in atoms))
        finally:
            self._active.discard(id(value))

    def _majors_option(self, value: ast.expr) -> Atom | None:
        for part in ast.walk(value):
            if isinstance(part, ast.keyword) and part.arg and MAJORS_OPTION.search(part.arg):
                majors = plain_literal(part.value)
                return self.chip.listed("member", list(majors)) if isinstance(majors, (list, tuple, set)) else None
        return None

    def atoms(self, node: ast.expr, function: str) -> Iterator[tuple[ast.expr, Atom]]:
        """Yield the capability tests of a boolean expression."""
        atom = self.atom(node, function)
        if atom:
            yield node, atom
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                yield from self.atoms(part, function)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self.atoms(node.operand, function)

    def value(self, node: ast.expr, function: str) -> bool | None:
        """Return what the capability tests of an expression come to, whatever its other terms are."""
        atom = self.atom(node, function)
        if atom:
            return atom.true
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand, function)
            return None if value is None else not value
        if isinstance(node, ast.BoolOp):
            values = [value for value in (self.value(part, function) for part in node.values) if value is not None]
            if values:
                return any(values) if isinstance(node.op, ast.Or) else all(values)
        return None

    def treats(self, node: ast.expr, function: str) -> bool:
        """Say whether a test mentions the chip: in a test, or in a name that has no definition here."""
        for part in ast.walk(node):
            if isinstance(part, (ast.Compare, ast.Dict, ast.Name, ast.Attribute)):
                atom = self.atom(part, function)
                name = getattr(part, "id", None) or getattr(part, "attr", None) or ""
                if atom.treats if atom else self.chip.named(name):
                    return True
        return False

    def is_measure(self, node: ast.expr) -> bool:
        """Say whether an expression is a capability, its major, or both as one number."""
        if isinstance(node, ast.Name):
            return (node.id in self._majors and "minor" not in node.id) or bool(PLAIN.search(node.id))
        if isinstance(node, ast.Subscript):
            if getattr(node.slice, "value", 0) == 1:
                return False
            held = node.value
            if (getattr(held, "id", None) or getattr(held, "attr", None)) in self._majors:
                return True
        if isinstance(node, ast.Attribute) and node.attr in self._majors:
            return "minor" not in node.attr
        names = [getattr(part, "attr", "") or getattr(part, "id", "") for part in ast.walk(node)]
        # sys.version_info.major, and a minor
        if "version_info" in names or self._versions & set(names) or (names and names[0] == "minor"):
            return False
        return any(name and MEASURE.search(name) for name in names)

    def _literal(self, node: ast.expr) -> Any:
        """Return a literal, or the one that a name of a module stands for."""
        value = plain_literal(node)
        if value is not None or not isinstance(node, ast.Name) or not node.id.isupper():
            return value
        if node.id not in self._constants:
            self._constants[node.id] = self._constant(node.id)
        return self._constants[node.id]

    def _constant(self, name: str) -> Any:
        found = bindings(self.source.tree).get(name, [])
        if not found:
            # imported where it is used
            scopes = [scope for scope in ast.walk(self.source.tree) if isinstance(scope, FUNCTIONS)]
            found = [item for scope in scopes for item in bindings(scope).get(name, [])]
        binding = found[0] if found else None
        if binding and isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
            source = self._modules.source(self._modules.path(binding.node, self.source.name))
            origin = bindings(source.tree).get(binding.alias.name, []) if source else []
            binding = origin[0] if origin else None
        if not binding or binding.kind != "assign":
            return None
        value = binding.node.value  # type: ignore[attr-defined]
        # of a table, the keys are what is looked for
        keys = [plain_literal(key) for key in value.keys if key] if isinstance(value, ast.Dict) else []
        return keys or plain_literal(value)


def _with_functions(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield (node, qualified name of the function or class that it stands in); a function is in itself."""
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, function = todo.pop()
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                inner = f"{function}.{child.name}".lstrip(".")
            yield child, inner
            todo.append((child, inner))
