# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What else in the source may change or replace a dict, and so undo an edit of it: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Callable

from .errors import SourceError
from .names import FUNCTIONS, Function, Scope, children_on, known_bindings, nodes_on
from .text import SourceText

if TYPE_CHECKING:
    from .dicts import DictTarget

MUTATORS = {"update", "pop", "clear", "setdefault", "popitem", "__setitem__", "__delitem__", "__ior__"}
# functions of operator that change what their first argument is; those of dict do too, dict.update(D, …)
APPLIED = {"setitem", "delitem", "ior"}
DICT_TYPES = {"dict", "OrderedDict", "defaultdict"}
BY_NAME = {"setattr", "delattr", "__setattr__", "__delattr__"}
# says whether a key, as an expression, is surely another one than the edit's
Other = Callable[[ast.expr], bool]


def check(source: SourceText, target: DictTarget, other_key: Other) -> None:
    """Check that nothing in the dict's own file changes or replaces it in a way that could undo the edit.

    :raises SourceError: something may.
    """
    scope = target.scopes[-1]
    inside = isinstance(scope, FUNCTIONS)
    tree = scope if inside else source.tree
    _check(source, target, other_key, tree, {target.name, *_aliases(tree, source, target.name)})
    others = [item for item in known_bindings(scope).get(target.name, []) if not _is_statement(item.node, target)]
    if others:
        line = others[0].line
        raise SourceError(
            f"{target.qualified} is bound again here, which may undo the edit", source.name, line, "conflict"
        )
    words = ("global", "nonlocal")
    for function in ast.walk(tree) if any(word in source.text for word in words) else ():
        if isinstance(function, FUNCTIONS) and function is not scope and _rebinds(function, scope, target.name):
            line = known_bindings(function)[target.name][0].line
            text = f"{function.name} binds {target.qualified} again here, which may undo the edit"
            raise SourceError(text, source.name, line, "conflict")


def check_other(source: SourceText, target: DictTarget, other_key: Other) -> None:
    """Check that another file, which may import the dict or what holds it, does not change it.

    :raises SourceError: it may.
    """
    if isinstance(target.scopes[-1], FUNCTIONS):
        return
    names = {
        alias.asname or alias.name
        for node, _parent in nodes_on(source.tree, source.lines_with(target.name))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == target.name and isinstance(target.scopes[-1], ast.Module)
    }
    _check(source, target, other_key, source.tree, names)


def _aliases(tree: ast.AST, source: SourceText, name: str) -> set[str]:
    """Return the names that are given to the same dict, `OTHER = NAME`."""
    found = set()
    for node, _parent in nodes_on(tree, source.lines_with(name)):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if name in (getattr(value, "id", ""), getattr(value, "attr", "")):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _is_statement(node: ast.AST, target: DictTarget) -> bool:
    return any(part is node for part in ast.walk(target.statement))


def _rebinds(function: Function, scope: Scope, name: str) -> bool:
    """Say whether a function binds a name of the module, or of the function around it, that it declares so."""
    kind = ast.Nonlocal if isinstance(scope, FUNCTIONS) else ast.Global
    if isinstance(scope, ast.ClassDef):
        return False
    declared = any(isinstance(node, kind) and name in node.names for node in ast.walk(function))
    return declared and name in known_bindings(function)


def _check(source: SourceText, target: DictTarget, other_key: Other, tree: ast.AST, names: set[str]) -> None:
    lines = sorted({line for name in (target.name, *names) for line in source.lines_with(name)})
    own = source is target.source or source.name == target.source.name
    scope = target.scopes[-1]
    for node, functions in _walk(tree, lines):
        for dict_node, text in _changes(node, target.name, names, other_key):
            if isinstance(dict_node, ast.Name):
                local = any(dict_node.id in _own_names(function) for function in functions)
                # methods do not see the names of their class
                if dict_node.id not in names or local or (isinstance(scope, ast.ClassDef) and functions):
                    continue
            elif isinstance(dict_node, ast.Attribute) and not _may_hold(dict_node.value, source, target, own):
                continue
            raise SourceError(
                f"{text} changes {target.qualified} ({target.source.name}:{target.line}) and may undo the edit",
                source.name,
                getattr(node, "lineno", target.line),
                "conflict",
            )


def _may_hold(node: ast.expr, source: SourceText, target: DictTarget, own: bool) -> bool:
    """Say whether an expression, of which the dict's name is an attribute, may be the module or class of the dict."""
    scope = target.scopes[-1]
    if isinstance(scope, FUNCTIONS):
        return False
    if own:
        # self, cls, the class by name or by some other way; a module rarely names itself
        return isinstance(scope, ast.ClassDef) or getattr(node, "id", "") not in ("self", "cls")
    parts = target.source.name[: -len(".py")].split("/")
    holder = scope.name if isinstance(scope, ast.ClassDef) else parts[-2] if parts[-1] == "__init__" else parts[-1]
    name = str(getattr(node, "attr", "") or getattr(node, "id", ""))
    if name == holder:
        return True
    for binding in known_bindings(source.tree).get(name, []):
        if binding.alias is not None and binding.alias.name.rpartition(".")[2] == holder:
            return True
    return False


def _walk(scope: ast.AST, lines: Sequence[int]) -> Iterator[tuple[ast.AST, tuple[Function, ...]]]:
    """Yield (node, the functions around it inside `scope`) for the nodes on some lines."""
    todo: list[tuple[ast.AST, tuple[Function, ...]]] = [(child, ()) for child in children_on(scope, lines)]
    while todo:
        node, functions = todo.pop()
        yield node, functions
        inner = (*functions, node) if isinstance(node, FUNCTIONS) else functions
        todo += [(child, inner) for child in children_on(node, lines)]


def _own_names(function: Function) -> set[str]:
    """Return the names that are the function's own."""
    declared = {
        name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    return set(known_bindings(function)) - declared


def _changes(node: ast.AST, name: str, names: set[str], other_key: Other) -> Iterator[tuple[ast.AST, str]]:
    """Yield (expression for the dict, text) for each way in which a node changes it."""

    def is_it(part: ast.AST) -> bool:
        # an attribute of that name is the dict of a class, or of an imported module
        return (isinstance(part, ast.Name) and part.id in names) or (
            isinstance(part, ast.Attribute) and part.attr == name
        )

    if isinstance(node, ast.Subscript) and _is_namespace(node.value) and getattr(node.slice, "value", None) == name:
        yield node, f"{ast.unparse(node)} = …"
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        deleted = isinstance(node.ctx, ast.Del)
        text = f"del {ast.unparse(node)}" if deleted else f"{ast.unparse(node)} = …"
        if is_it(node.value) and not other_key(node.slice):
            yield node.value, text
    elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and is_it(node):
        yield node, f"{'del ' if isinstance(node.ctx, ast.Del) else ''}{ast.unparse(node)}{_assigns(node)}"
    elif isinstance(node, ast.AugAssign) and is_it(node.target):
        yield node.target, f"{name} {'|' if isinstance(node.op, ast.BitOr) else 'operator '}= …"
    elif isinstance(node, ast.Delete):
        yield from ((item, f"del {name}") for item in node.targets if is_it(item) and isinstance(item, ast.Name))
    elif isinstance(node, ast.Call):
        yield from _calls(node, name, is_it)


def _assigns(node: ast.Attribute) -> str:
    return "" if isinstance(node.ctx, ast.Del) else " = …"


def _is_namespace(node: ast.expr) -> bool:
    """Say whether an expression is globals(), vars(x) or x.__dict__."""
    called = node.func if isinstance(node, ast.Call) else node
    return (getattr(called, "id", "") or getattr(called, "attr", "")) in ("globals", "vars", "locals", "__dict__")


def _calls(node: ast.Call, name: str, is_it: Callable[[ast.AST], bool]) -> Iterator[tuple[ast.AST, str]]:
    called = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
    of_dict = getattr(getattr(node.func, "value", None), "id", "") in DICT_TYPES
    if isinstance(node.func, ast.Attribute) and called in MUTATORS and is_it(node.func.value):
        yield node.func.value, f"{name}.{called}(…)"
    elif node.args and is_it(node.args[0]) and (called in APPLIED or (called in MUTATORS and of_dict)):
        yield node.args[0], f"{ast.unparse(node.func)}({name}, …)"
    elif called in BY_NAME:
        named = [item for item in node.args[:2] if isinstance(item, ast.Constant) and item.value == name]
        yield from ((node, f"{called}(…, {name!r}, …)") for _item in named)


__all__ = ["check", "check_other"]
