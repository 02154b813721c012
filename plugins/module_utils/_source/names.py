# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which names a piece of Python binds and uses: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import bisect
import builtins
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Union

if TYPE_CHECKING:
    from typing import TypeGuard

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Scope = Union[ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__package__", "__spec__"}


class Binding(NamedTuple):
    """One place that gives a name a value. `kind`: import, assign, def, argument or other."""

    kind: str
    node: ast.AST
    alias: ast.alias | None
    line: int


Bindings = dict[str, list[Binding]]


def bindings(scope: Scope) -> Bindings:
    """Return every binding of a scope itself (nested functions and classes have scopes of their own)."""
    found: Bindings = {}

    def add(name: str, kind: str, node: ast.AST, alias: ast.alias | None = None) -> None:
        found.setdefault(name, []).append(Binding(kind, node, alias, getattr(node, "lineno", 1)))

    if isinstance(scope, FUNCTIONS):
        arguments = scope.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
        for argument in every:
            add(argument.arg, "argument", argument)
    todo: list[ast.AST] = list(reversed(scope.body))
    while todo:
        node = todo.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            add(node.name, "def", node)
            todo += node.decorator_list
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                add(alias.asname or alias.name.partition(".")[0], "import", node, alias)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            add(node.targets[0].id, "assign", node)
            todo.append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                add(node.target.id, "assign", node)
                todo.append(node.value)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                add(node.id, "other", node)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, COMPREHENSIONS):
            todo += [walrus for walrus in ast.walk(node) if isinstance(walrus, ast.NamedExpr)]
        else:
            for option in ("name", "rest"):
                # except … as NAME, and the captures of a match statement
                captured = getattr(node, option, None)
                if isinstance(captured, str) and not isinstance(node, ast.alias):
                    add(captured, "other", node)
            todo += reversed(list(ast.iter_child_nodes(node)))
    return found


@functools.lru_cache(maxsize=64)
def known_bindings(scope: Scope) -> Bindings:
    """Return the bindings of a scope whose tree does not change any more, found once. Treat them as read-only."""
    return bindings(scope)


def used_names(node: ast.AST) -> set[str]:
    """Return the names an expression needs from around it."""
    loaded: set[str] = set()
    own: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (loaded if isinstance(part.ctx, ast.Load) else own).add(part.id)
        elif isinstance(part, ast.arg):
            own.add(part.arg)
    return loaded - own


def statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a scope in text order, into compound ones, not into functions and classes."""
    todo = _parts(scope)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo += _parts(node)


def _parts(node: ast.AST) -> list[ast.AST]:
    """Return the statements, handlers and cases of a node, the last one first."""
    found: list[ast.AST] = []
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        body = getattr(node, name, [])
        found += body if isinstance(body, list) else []
    return found[::-1]


def children_on(node: ast.AST, lines: Sequence[int]) -> Iterator[ast.AST]:
    """Yield the children of a node whose text touches one of the lines (in ascending order)."""
    for child in ast.iter_child_nodes(node):
        start = getattr(child, "lineno", None)
        if start is None:
            yield child
            continue
        for decorator in getattr(child, "decorator_list", ()):
            start = min(start, decorator.lineno)
        at = bisect.bisect_left(lines, start)
        if at < len(lines) and lines[at] <= (child.end_lineno or start):  # type: ignore[attr-defined]
            yield child


def nodes_on(tree: ast.AST, lines: Sequence[int]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield (node, its parent) for the nodes whose text touches one of the lines."""
    todo = [tree]
    while todo:
        parent = todo.pop()
        for child in children_on(parent, lines):
            todo.append(child)
            yield child, parent


class Unknown(Exception):
    """The value of an expression cannot be told from the source."""


def constant(node: ast.expr, lookup: Callable[[str], ast.expr | None], depth: int = 0) -> Any:
    """Return the value of an expression made of literals, arithmetic and names of such.

    :param lookup: gives the expression that a name stands for, or None.
    :raises Unknown: there is more in it than that.
    """
    if depth > 40:
        raise Unknown
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        meant = lookup(node.id)
        if meant is None:
            raise Unknown
        return constant(meant, lookup, depth + 1)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        items = [constant(item, lookup, depth + 1) for item in node.elts]
        try:
            return tuple(items) if isinstance(node, ast.Tuple) else items if isinstance(node, ast.List) else set(items)
        except TypeError as exc:
            raise Unknown from exc
    if isinstance(node, ast.Dict):
        return _constant_dict(node, lookup, depth)
    if isinstance(node, ast.UnaryOp):
        return _arithmetic(node.op, [constant(node.operand, lookup, depth + 1)])
    if isinstance(node, ast.BinOp):
        sides = [constant(side, lookup, depth + 1) for side in (node.left, node.right)]
        return _arithmetic(node.op, sides)
    raise Unknown


def _constant_dict(node: ast.Dict, lookup: Callable[[str], ast.expr | None], depth: int) -> dict[Any, Any]:
    result = {}
    for key, value in zip(node.keys, node.values):
        if key is None:
            raise Unknown
        try:
            result[constant(key, lookup, depth + 1)] = constant(value, lookup, depth + 1)
        except TypeError as exc:
            raise Unknown from exc
    return result


def _arithmetic(operator: ast.AST, values: list[Any]) -> Any:
    if not all(type(value) in (int, float) and abs(value) < 2**80 for value in values):
        raise Unknown
    one, two = values[0], values[-1]
    small = is_whole(two) and 0 <= two <= 64
    try:
        if len(values) == 1:
            if isinstance(operator, ast.USub):
                return -one
            if isinstance(operator, ast.UAdd):
                return +one
        elif isinstance(operator, ast.Add):
            return one + two
        elif isinstance(operator, ast.Sub):
            return one - two
        elif isinstance(operator, ast.Mult):
            return one * two
        elif isinstance(operator, ast.FloorDiv):
            return one // two
        elif isinstance(operator, ast.Div):
            return one / two
        elif isinstance(operator, ast.Pow) and small:
            return one**two
        elif isinstance(operator, ast.LShift) and small:
            return one << two
    except (ArithmeticError, TypeError) as exc:
        raise Unknown from exc
    raise Unknown


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a constant is a whole number. True is none, though Python says so."""
    return isinstance(value, int) and not isinstance(value, bool)


def same_value(one: Any, two: Any) -> bool:
    """Say whether two constants are equal, types included: 1 is not True, a list is no tuple."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return list(one) == list(two) and all(
            same_value(key, other) and same_value(one[key], two[other]) for key, other in zip(one, two)
        )
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same_value, one, two))
    return bool(one == two)
