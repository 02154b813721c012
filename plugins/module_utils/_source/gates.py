# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Terms of `or` gates: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .analogy import Analogy
from .errors import SourceError
from .names import FUNCTIONS, Function, Scope
from .prove import twin
from .spec import Gate, expression
from .text import SourceText, Splice, close_parens, insertion, only_comment_follows, skip_blank

TESTS = (
    *(ast.BoolOp, ast.If, ast.While, ast.IfExp, ast.Assert, ast.comprehension),
    *(ast.Return, ast.Lambda, ast.NamedExpr),
)


@dataclass
class GateTarget:
    """A place where the terms are tested. `node` is the `or`, or the one term that stands alone."""

    source: SourceText
    qualified: str
    scopes: tuple[Scope, ...]
    node: ast.expr

    @property
    def line(self) -> int:
        """Return the line of the gate."""
        return self.node.lineno

    @property
    def slot(self) -> str:
        """Return what tells this place from others of its file."""
        return f"gate {self.qualified}"


def find(source: SourceText, what: Gate) -> list[GateTarget]:
    """Return every gate with all the terms, in the functions asked for (everywhere, if none are)."""
    wanted = [ast.dump(expression(term, "all_of")) for term in what.all_of]
    targets: list[GateTarget] = []
    for scopes, qualified in _scopes(source.tree, (source.tree,), "", what.function):
        for node, parent in _expressions(scopes[-1], bool(what.function)):
            if _is_gate(node, parent, wanted):
                targets.append(GateTarget(source, qualified or "<module>", scopes, node))
    return targets


def functions(source: SourceText, what: Gate) -> list[Function]:
    """Return the functions asked for that the file has."""
    scopes = _scopes(source.tree, (source.tree,), "", what.function) if what.function else ()
    return [scope[-1] for scope, _name in scopes if isinstance(scope[-1], FUNCTIONS)]


def _scopes(
    node: ast.AST, scopes: tuple[Scope, ...], prefix: str, wanted: tuple[str, ...]
) -> Iterator[tuple[tuple[Scope, ...], str]]:
    """Yield (scope chain, qualified name) of each wanted function; of every scope where none is named."""
    if not wanted:
        yield scopes, prefix.rstrip(".")
    for child in _own_children(node):
        qualified = prefix + child.name
        inner = (*scopes, child)
        if wanted and isinstance(child, FUNCTIONS) and _named(qualified, wanted):
            yield inner, qualified
            continue
        yield from _scopes(child, inner, qualified + ".", wanted)


def _named(qualified: str, wanted: tuple[str, ...]) -> bool:
    return any(qualified == name or qualified.endswith("." + name) for name in wanted)


def _own_children(node: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Yield the functions and classes directly in a scope, in compound statements too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield child
        elif isinstance(child, (ast.stmt, ast.excepthandler)) or type(child).__name__ == "match_case":
            yield from _own_children(child)


def _expressions(scope: ast.AST, nested: bool) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield (expression, parent) of a scope; of the functions in it too if `nested`."""
    todo: list[ast.AST] = [ast.Module(body=list(getattr(scope, "body", [])), type_ignores=[])]
    while todo:
        parent = todo.pop()
        for child in reversed(list(ast.iter_child_nodes(parent))):
            if isinstance(child, ast.JoinedStr):
                # before Python 3.12, what stands in an f-string has no true position
                continue
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)) and not nested:
                # these parts of a definition are evaluated out here
                todo += [ast.Expr(value=part) for part in _outer_parts(child)]
                continue
            todo.append(child)
            if isinstance(child, ast.expr):
                yield child, parent


def _outer_parts(node: ast.AST) -> list[ast.expr]:
    parts: list[ast.expr] = list(getattr(node, "decorator_list", []))
    if isinstance(node, FUNCTIONS):
        return parts + node.args.defaults + [part for part in node.args.kw_defaults if part]
    return parts + list(getattr(node, "bases", []))


def _is_gate(node: ast.expr, parent: ast.AST, wanted: list[str]) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        terms = [ast.dump(value) for value in node.values]
        return all(term in terms for term in wanted)
    if len(wanted) > 1 or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or):
        return False
    tested = isinstance(parent, TESTS)
    test = getattr(parent, "test", node)
    inside = parent.ifs if isinstance(parent, ast.comprehension) else [node]
    return tested and test is node and node in inside and ast.dump(node) == wanted[0]


def has_term(target: GateTarget, add: str, meanings: list[str]) -> bool:
    """Say whether the gate has the term already, by name or spelled out."""
    if not isinstance(target.node, ast.BoolOp):
        return False
    terms = {ast.dump(value) for value in target.node.values}
    return bool(terms & {ast.dump(expression(add, "add")), *meanings})


def plan_term(target: GateTarget, what: Gate, expected: ast.Module) -> list[Splice]:
    """Return the splices that add the term, and change `expected` (a fresh tree) in the same way.

    :raises SourceError: the term cannot be added safely.
    """
    source, node = target.source, target.node
    add = expression(what.add, "add")
    same, parent = twin(expected, node)
    if not isinstance(node, ast.BoolOp):
        _replace(parent, same, ast.BoolOp(op=ast.Or(), values=[same, add]))
        return [insertion(source.start(node), "("), insertion(source.end(node), f" or {what.add})")]
    wanted = {ast.dump(expression(term, "all_of")) for term in what.all_of}
    index = max(at for at, value in enumerate(node.values) if ast.dump(value) in wanted)
    same.values.insert(index + 1, add)
    return _insert_operand(source, node, index, what.add)


def _insert_operand(source: SourceText, node: ast.BoolOp, index: int, new: str) -> list[Splice]:
    text, values = source.text, node.values
    if index == 0:
        end = _between(source, values[0], values[1])[0]
        return [insertion(end, f" or {new}")]
    left_end, operator, right, opened = _between(source, values[index - 1], values[index])
    end = close_parens(text, source.end(values[index]), opened)
    # a newline here, outside of the operands' own parentheses, means that others surround them all
    gap = text[left_end:right]
    line_end = source.line_end(end)
    inline = "\n" not in gap.replace("\r", "\n") or "\\" in gap or not only_comment_follows(source, end)
    if inline or line_end >= len(text):
        return [insertion(end, f" or {new}")]
    newline = source.newline(left_end, end)
    indent = source.indent(operator)
    if indent is not None:
        return [insertion(line_end, f"{newline}{indent}or {new}")]
    indent = source.indent(right) or ""
    if end == line_end:
        return [insertion(end, f" or{newline}{indent}{new}")]
    return [insertion(end, " or"), insertion(line_end, f"{newline}{indent}{new}")]


def _between(source: SourceText, left: ast.expr, right: ast.expr) -> tuple[int, int, int, int]:
    """Return (end of the left operand, offset of the `or`, start of the right operand, parentheses before that).

    Parentheses belong to the operands that they surround.
    """
    text = source.text
    at = end = source.end(left)
    while True:
        at = skip_blank(text, at)
        if text[at] != ")":
            break
        at += 1
        end = at
    operator, opened = at, 0
    if text[at : at + 2] != "or":
        raise SourceError("the operator of the gate was not found", source.name, left.lineno)
    at = start = skip_blank(text, at + 2)
    while text[at] == "(" and at < source.start(right):
        opened += 1
        at = skip_blank(text, at + 1)
    return end, operator, start, opened


def _replace(parent: ast.AST, old: ast.expr, new: ast.expr) -> None:
    for field, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, field, new)
        elif isinstance(value, list):
            value[:] = [new if item is old else item for item in value]


def analogy(what: Gate) -> Analogy:
    """Return how `add` follows from `like`."""
    return Analogy(what.like, what.add)


__all__: list[str] = ["GateTarget", "analogy", "find", "functions", "has_term", "plan_term"]
