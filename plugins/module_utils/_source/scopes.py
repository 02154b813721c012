# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a name is sure to have a value at some place: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from .names import COMPREHENSIONS, FUNCTIONS, Scope, bindings, known_bindings

# what is known of a name at a place: no value, one on some ways to it, one on all; DEAD: there is no way to it
NO, MAYBE, YES, DEAD = "no", "maybe", "yes", "dead"
LOOPS = (ast.For, ast.AsyncFor, ast.While)
JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def bound_at_end(scope: Scope, name: str) -> str:
    """Return NO, MAYBE or YES: whether a name has a value when a module, class or function body has been run."""
    return _Flow(name, None).run(scope)


def bound_before(scope: Scope, name: str, statement: ast.stmt) -> str:
    """Return NO, MAYBE or YES: whether a name has a value when `statement`, somewhere in the scope, is reached."""
    return _Flow(name, statement).run(scope)


def why_not_bound(scopes: Sequence[Scope], name: str, statement: ast.stmt, nested: bool = False) -> tuple[str, int]:
    """Return why a name may have no value where a statement uses it, with a line of the name; ("", 0) if it has one.

    :param scopes: the module first, the scope that holds the statement last.
    :param nested: the use stands in a lambda or comprehension, which does not see the names of a class body.
    """
    at: ast.stmt | None = statement
    line, conditional = 0, False
    for depth in range(len(scopes) - 1, -1, -1):
        scope, own = scopes[depth], depth == len(scopes) - 1
        if not isinstance(scope, ast.ClassDef) or (own and not nested):
            found = known_bindings(scope).get(name, [])
            local = bool(found) and not _declared(scope, name)
            before = bound_before(scope, name, at) if at is not None else NO
            end = bound_at_end(scope, name) if local and at is None else NO
            if local and (before == YES or end == YES):
                return "", 0
            if local:
                line = line or found[0].line
                conditional = conditional or MAYBE in (before, end)
                if not isinstance(scope, (ast.ClassDef, ast.Module)):
                    # elsewhere the name would be another one; a function's own is the only one that counts
                    break
        if isinstance(scope, FUNCTIONS):
            # what stands outside of a function has been run to its end, or at least to the function
            at = None if not _reached(scopes[:depth], name, scope) else scope
        elif isinstance(scope, ast.ClassDef) and at is not None:
            at = scope
    if not line:
        return "is not defined there", 0
    if conditional:
        return f"has a value there only under a condition, see line {line}", line
    if line > statement.lineno:
        return f"is defined only later, in line {line}", line
    return f"is bound in line {line}, but has no value there", line


def _reached(outer: Sequence[Scope], name: str, function: ast.stmt) -> bool:
    """Say whether a name outside of a function has a value where the function is made, and keeps one."""
    for scope in reversed(outer):
        if not isinstance(scope, ast.ClassDef) and name in known_bindings(scope):
            return bound_before(scope, name, function) == YES and bound_at_end(scope, name) != NO
        if not isinstance(scope, ast.Module):
            function = scope
    return False


def _declared(scope: Scope, name: str) -> bool:
    """Say whether a function declares a name to be another scope's."""
    if not isinstance(scope, FUNCTIONS):
        return False
    return any(name in node.names for node in ast.walk(scope) if isinstance(node, (ast.Global, ast.Nonlocal)))


def names_by_place(node: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names that an expression needs (evaluated in its own scope, in a scope inside)."""
    own: set[str] = set()
    inner: set[str] = set()
    todo: list[tuple[ast.AST, bool, frozenset[str]]] = [(node, False, frozenset())]
    while todo:
        part, nested, hidden = todo.pop()
        if isinstance(part, ast.Name):
            if isinstance(part.ctx, ast.Load) and part.id not in hidden:
                (inner if nested else own).add(part.id)
            continue
        if isinstance(part, ast.Lambda):
            arguments = frozenset(item.arg for item in ast.walk(part.args) if isinstance(item, ast.arg))
            todo += [(item, nested, hidden) for item in [*part.args.defaults, *part.args.kw_defaults] if item]
            todo.append((part.body, True, hidden | arguments))
            continue
        if isinstance(part, COMPREHENSIONS):
            stored = frozenset(
                item.id for item in ast.walk(part) if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load)
            )
            # the first iterable is evaluated outside
            first: ast.AST = part.generators[0].iter
            todo.append((first, nested, hidden))
            todo += [(item, True, hidden | stored) for item in ast.iter_child_nodes(part) if item is not first]
            continue
        if isinstance(part, ast.comprehension):
            # the outermost one's iterable has been looked at
            todo += [(item, nested, hidden) for item in (part.target, part.iter, *part.ifs)]
            continue
        todo += [(item, nested, hidden) for item in ast.iter_child_nodes(part)]
    return own, inner - own


class _Found(Exception):
    """The place was reached; the argument is what is known there."""


class _Flow:
    """Follows one name through the statements of a scope."""

    def __init__(self, name: str, until: ast.stmt | None) -> None:
        self.name, self.until = name, until

    def run(self, scope: Scope) -> str:
        arguments: list[ast.arg] = []
        if isinstance(scope, FUNCTIONS):
            arguments = [item for item in ast.walk(scope.args) if isinstance(item, ast.arg)]
        start = YES if any(item.arg == self.name for item in arguments) else NO
        try:
            state = self._block(scope.body, start)
        except _Found as found:
            state = str(found)
        # what comes after a jump is never run, so nothing is bound there
        return NO if state == DEAD else state

    def _block(self, body: Sequence[ast.stmt], state: str) -> str:
        for statement in body:
            if statement is self.until:
                raise _Found(state)
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: str) -> str:
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, LOOPS):
            return self._loop(node, state)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inside = self._block(node.body, self._effect(node.items, state))
            swallows = any("suppress" in ast.unparse(item.context_expr) for item in node.items)
            return _merge([state, inside]) if swallows else inside
        if hasattr(node, "handlers"):
            return self._try(node, state)
        if type(node).__name__ == "Match":
            ways = [self._block(case.body, self._effect([case.pattern], state)) for case in node.cases]  # type: ignore[attr-defined]
            return _merge([state, *ways])
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return YES if node.name == self.name else self._effect(node.decorator_list, state)
        state = self._effect([node], state)
        return DEAD if isinstance(node, JUMPS) else state

    def _if(self, node: ast.If, state: str) -> str:
        # a chain of elifs is walked in a loop; it may be longer than Python's stack is deep
        ways: list[str] = []
        while True:
            state = self._effect([node.test], state)
            truth = constant_truth(node.test)
            before = DEAD if truth is False else state
            way = self._block(node.body, before)
            ways.append(DEAD if before == DEAD else way)
            after = DEAD if truth is True else state
            if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and node.orelse[0] is not self.until:
                node, state = node.orelse[0], after
                if after == DEAD:
                    # never run, but the place may be in it
                    self._block([node], DEAD)
                    return _merge(ways)
                continue
            rest = self._block(node.orelse, after)
            return _merge([*ways, DEAD if after == DEAD else rest])

    def _loop(self, node: Any, state: str) -> str:
        before = self._effect([node.test], state) if isinstance(node, ast.While) else self._effect([node.iter], state)
        inside = before if isinstance(node, ast.While) else self._effect([node.target], before)
        endless = isinstance(node, ast.While) and constant_truth(node.test) is True
        end = self._block(node.body, inside)
        end = _merge([before, end, MAYBE]) if self._touches(node.body) else end
        after = end if endless and end != DEAD else _merge([before, end])
        return self._block(node.orelse, after)

    def _try(self, node: Any, state: str) -> str:
        inside = self._block(node.body, state)
        # a handler may begin after any statement of the body
        start = _merge([state, inside, MAYBE]) if self._touches(node.body) else state
        if state == YES and not self._deletes(node.body):
            start = YES
        ways = [self._block(node.orelse, inside)]
        for handler in node.handlers:
            way = self._block(handler.body, YES if handler.name == self.name else start)
            # the name after `as` is gone at the end of its handler
            ways.append(NO if handler.name == self.name and way != DEAD else way)
        return self._block(node.finalbody, _merge(ways))

    def _touches(self, body: Iterable[ast.AST]) -> bool:
        return self.name in bindings(ast.Module(body=list(body), type_ignores=[]))  # type: ignore[arg-type]

    def _deletes(self, body: Iterable[ast.AST]) -> bool:
        deletes = (node for part in body for node in ast.walk(part) if isinstance(node, ast.Delete))
        return any(getattr(item, "id", "") == self.name for node in deletes for item in node.targets)

    def _effect(self, parts: Iterable[Any], state: str) -> str:
        """Return what is known after some expressions, or a simple statement."""
        for part in parts:
            if isinstance(part, ast.Delete) and self._deletes([part]):
                return NO if state != DEAD else DEAD
            if isinstance(part, ast.AnnAssign) and part.value is None:
                continue
            state = self._bound_by(part, state)
        return state

    def _bound_by(self, part: ast.AST, state: str) -> str:
        todo: list[tuple[ast.AST, bool]] = [(part, True)]
        while todo:
            node, sure = todo.pop()
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.Name):
                names = [] if isinstance(node.ctx, ast.Load) else [node.id]
            else:
                captured = [getattr(node, option, None) for option in ("name", "rest")]
                names = [item for item in captured if isinstance(item, str)]
            if self.name in names and state != DEAD:
                state = YES if sure else _merge([state, YES])
            if isinstance(node, ast.Lambda):
                continue
            doubtful = isinstance(node, (*COMPREHENSIONS, ast.BoolOp, ast.IfExp)) or type(node).__name__ == "MatchOr"
            if isinstance(node, COMPREHENSIONS):
                todo += [(item.target, False) for item in ast.walk(node) if isinstance(item, ast.NamedExpr)]
                continue
            todo += [(child, sure and not doubtful) for child in ast.iter_child_nodes(node)]
        return state


def constant_truth(test: ast.expr) -> bool | None:
    """Return whether a condition is true at run time; None where the source alone does not tell."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = constant_truth(test.operand)
        return None if truth is None else not truth
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", "")):
        return False
    return None


def _merge(states: Iterable[str]) -> str:
    """Return what is known where several ways meet."""
    live = {state for state in states if state != DEAD}
    if not live:
        return DEAD
    return live.pop() if len(live) == 1 else MAYBE


__all__ = ["MAYBE", "NO", "YES", "bound_at_end", "bound_before", "constant_truth", "names_by_place", "why_not_bound"]
