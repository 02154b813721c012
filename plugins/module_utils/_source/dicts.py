# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of dict literals: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import shadow
from .errors import SourceError, SpecError
from .names import BUILTINS, FUNCTIONS, Bindings, Scope, Unknown, constant, known_bindings, same_value, statements
from .prove import twin
from .scopes import names_by_place, why_not_bound
from .spec import DictEntry, entry_parts, expression
from .text import SourceText, Splice, element_end, insert_element, insertion, skip_blank


@dataclass
class DictTarget:
    """A place where one of the names is assigned. `node` is a Dict, or what stands in its place."""

    source: SourceText
    name: str
    qualified: str
    scopes: tuple[Scope, ...]
    statement: ast.stmt
    node: ast.expr

    @property
    def line(self) -> int:
        """Return the line of the assignment."""
        return self.statement.lineno

    @property
    def slot(self) -> str:
        """Return what tells this place from the others of its file."""
        return f"dict_entry {self.qualified}"


def find(source: SourceText, what: DictEntry) -> list[DictTarget]:
    """Return every assignment to one of the names, at module level, in classes and in functions."""
    return list(_find(source, what, source.tree, (), ""))


def _find(
    source: SourceText, what: DictEntry, scope: Scope, outer: tuple[Scope, ...], prefix: str
) -> Iterator[DictTarget]:
    scopes = (*outer, scope)
    for statement in statements(scope):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield from _find(source, what, statement, scopes, f"{prefix}{statement.name}.")
            continue
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                qualified = prefix + target.id
                if any(name == qualified or qualified.endswith("." + name) for name in what.name):
                    node = statement.value  # type: ignore[attr-defined]
                    yield DictTarget(source, target.id, qualified, scopes, statement, node)


def module_bindings(source: SourceText) -> Bindings:
    """Return the bindings of a module, found once."""
    return known_bindings(source.tree)


def _lookup(target: DictTarget) -> Any:
    module = module_bindings(target.source)

    def lookup(name: str) -> ast.expr | None:
        found = module.get(name, [])
        if len(found) == 1 and found[0].kind == "assign":
            value = found[0].node.value  # type: ignore[attr-defined]
            return value if isinstance(value, ast.expr) else None
        return None

    return lookup


def _entries(target: DictTarget, key: ast.expr) -> tuple[ast.Dict, list[int], list[Any]]:
    """Return the dict, the indexes of the entries with this key, and the keys' values (Unknown: the class).

    :raises SourceError: no literal, an unpacked mapping in it, or a key that stands twice.
    """
    source, node = target.source, target.node
    where = (source.name, target.line)
    if not isinstance(node, ast.Dict):
        kind = {"Call": "built by a call, ", "DictComp": "built by a comprehension, "}.get(type(node).__name__, "")
        raise SourceError(f"{target.qualified} is {kind}not a dict literal", *where)
    if any(item is None for item in node.keys):
        raise SourceError(f"{target.qualified} unpacks another mapping, which may hold the key", *where)
    lookup = _lookup(target)
    values = [_value(item, lookup) for item in node.keys if item is not None]
    identities = [_identity(value, item) for value, item in zip(values, node.keys)]
    seen: set[Any] = set()
    for item, identity in zip(node.keys, identities):
        if identity in seen:
            text, line = source.segment(item or node), (item or node).lineno
            raise SourceError(f"{target.qualified} has the key {text} twice", source.name, line, "conflict")
        seen.add(identity)
    wanted = _identity(_value(key, lookup), key)
    matches = [index for index, identity in enumerate(identities) if identity == wanted]
    return node, matches, values


def _value(node: ast.expr, lookup: Any) -> Any:
    try:
        value = constant(node, lookup)
        hash(value)
    except (Unknown, TypeError):
        return Unknown
    return value


def _identity(value: Any, node: ast.expr | None) -> Any:
    """Return what two keys have in common if they are the same key: their value or, if not known, their text."""
    return (Unknown, ast.dump(node)) if value is Unknown and node else (None, value)


def state(target: DictTarget, what: DictEntry) -> tuple[str, str]:
    """Return what stands in the dict, `absent`, `upstream` or `conflict`, and a word about it.

    :raises SourceError: the dict cannot be edited safely.
    """
    source = target.source
    key = expression(what.key, "key")
    node, matches, values = _entries(target, key)
    if matches:
        found = node.values[matches[0]]
        wanted, _text = _wanted(target, what, node)
        line = found.lineno
        if _means_the_same(target, found, wanted):
            return "upstream", f"{source.name}:{line} has the key {what.key} already, with the same meaning"
        text = " ".join(source.segment(found).split())
        return "conflict", f"{source.name}:{line} has the key {what.key} already, with another meaning: {text}"
    kinds = {type(value) for value in values if value is not Unknown}
    wanted_key = _value(key, _lookup(target))
    unknown = [item for item, value in zip(node.keys, values) if value is Unknown and item is not None]
    if unknown and wanted_key is not Unknown:
        line = unknown[0].lineno
        text = f"{target.qualified} has the key {source.segment(unknown[0])}, whose value the source does not tell"
        raise SourceError(f"{text}; it may be {what.key}", source.name, line, "conflict")
    if kinds and not unknown and wanted_key is not Unknown and type(wanted_key) not in kinds:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise SourceError(
            f"{target.qualified} has keys of type {names}, the key {what.key} is {type(wanted_key).__name__}",
            source.name,
            target.line,
        )
    return "absent", ""


def _means_the_same(target: DictTarget, one: ast.expr, two: ast.expr) -> bool:
    if ast.dump(one) == ast.dump(two):
        return True
    lookup = _lookup(target)
    try:
        return same_value(constant(one, lookup), constant(two, lookup))
    except Unknown:
        return False


def _wanted(target: DictTarget, what: DictEntry, node: ast.Dict) -> tuple[ast.expr, str]:
    """Return the value to write, as a tree and as text.

    :raises SourceError: there is no entry `like`.
    """
    if what.value is not None:
        return entry_parts(what.key, what.value)[1], what.value
    source = target.source
    _node, matches, _values = _entries(target, expression(what.like or "", "like"))
    if not matches:
        raise SourceError(f"{target.qualified} has no key {what.like} to be like", source.name, target.line)
    value = node.values[matches[0]]
    colon = skip_blank(source.text, _key_end(source, node, matches[0]))
    while source.text[colon] == ")":
        colon = skip_blank(source.text, colon + 1)
    start = skip_blank(source.text, colon + 1)
    return value, source.text[start : element_end(source.text, source.end(value), "}")[0]]


def _key_end(source: SourceText, node: ast.Dict, index: int) -> int:
    return source.end(node.keys[index] or node.values[index])


def plan(target: DictTarget, what: DictEntry, expected: ast.Module) -> list[Splice]:
    """Return the splices that add the entry, and change `expected` (a fresh tree) in the same way.

    :raises SourceError: the entry cannot be added safely.
    """
    source, node = target.source, target.node
    if not isinstance(node, ast.Dict):
        raise TypeError("only a dict literal can be planned for")
    wanted, text = _wanted(target, what, node)
    _check_names(target, what, wanted)
    shadow.check(source, target, _other_key(target, what))
    newline = source.newline(source.start(node), source.end(node))
    same, _parent = twin(expected, node)
    same.keys.append(expression(what.key, "key"))
    same.values.append(wanted)
    last = node.keys[-1] or node.values[-1] if node.keys else node
    if what.value is not None:
        indent = source.indent(source.start(last)) or source.indent(source.start(target.statement)) or ""
        text = newline.join(line if not at else indent + line for at, line in enumerate(text.split("\n")))
    if not node.keys:
        return _first_entry(source, node, f"{what.key}: {text}", newline)
    end, comma = element_end(source.text, source.end(node.values[-1]), "}")
    return insert_element(source, source.start(last), end, comma, f"{what.key}: {text}", newline)


def _first_entry(source: SourceText, node: ast.Dict, entry: str, newline: str) -> list[Splice]:
    closing = source.end(node) - 1
    indent = source.indent(closing)
    if indent is None:
        return [insertion(closing, entry)]
    return [insertion(source.line_start(closing), f"{indent}    {entry},{newline}")]


def _check_names(target: DictTarget, what: DictEntry, wanted: ast.expr) -> None:
    """Check that every name in key and value has a value where the dict is made.

    What an entry `like` names is in that dict already.

    :raises SourceError: one may have none.
    """
    parts = [expression(what.key, "key"), *([wanted] if what.value is not None else [])]
    for part in parts:
        for nested, names in enumerate(names_by_place(part)):
            for name in sorted(names - BUILTINS):
                reason, _line = why_not_bound(target.scopes, name, target.statement, bool(nested))
                if reason:
                    raise SourceError(f"the value names {name}, which {reason}", target.source.name, target.line)


def check_other(source: SourceText, target: DictTarget, what: DictEntry) -> None:
    """Check that another file does not change this dict.

    :raises SourceError: it may.
    """
    shadow.check_other(source, target, _other_key(target, what))


def _other_key(target: DictTarget, what: DictEntry) -> shadow.Other:
    lookup = _lookup(target)

    def other(index: ast.expr) -> bool:
        one, two = _value(index, lookup), _value(expression(what.key, "key"), lookup)
        return one is not Unknown and two is not Unknown and bool(one != two)

    return other


__all__ = ["DictTarget", "SpecError", "check_other", "find", "plan", "state"]
