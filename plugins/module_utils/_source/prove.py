# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof that an edit did what was asked and nothing else: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from .errors import SourceError
from .names import nodes_on
from .text import SourceText


def same_tree(one: object, two: object) -> bool:
    """Say whether two trees are equal in everything but positions."""
    todo = [(one, two)]
    while todo:
        left, right = todo.pop()
        kind = left.__class__
        if kind is not right.__class__:
            return False
        if isinstance(left, ast.AST):
            for field in left._fields:
                todo.append((getattr(left, field, None), getattr(right, field, None)))
        elif kind is list:
            if len(left) != len(right):  # type: ignore[arg-type]
                return False
            todo.extend(zip(left, right))  # type: ignore[call-overload]
        elif left != right or (kind in (float, complex) and repr(left) != repr(right)):
            return False
    return True


def twin(expected: ast.Module, node: ast.AST) -> tuple[Any, ast.AST]:
    """Return the node of a tree of the same text that stands where `node` does, and its parent."""

    def place(one: ast.AST) -> tuple[Any, ...]:
        names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
        return (type(one), *(getattr(one, name, None) for name in names))

    wanted = place(node)
    for child, parent in nodes_on(expected, [node.lineno]):  # type: ignore[attr-defined]
        if place(child) == wanted:
            return child, parent
    raise LookupError("a tree parsed from the same text lacks a node")


def prove(after: SourceText, expected: ast.Module, line: int) -> None:
    """Check the text after an edit: it parses, and its tree is the expected one.

    :raises SourceError: it is not.
    """
    try:
        tree = after.tree
    except SourceError as exc:
        raise SourceError(f"the edit would leave text that does not parse ({exc.reason})", after.name, line) from exc
    if not same_tree(tree, expected):
        raise SourceError("the edit would change more or less than was asked", after.name, line)


def prove_compiles(after: SourceText) -> None:
    """Check that the bytes, as they would be written, compile.

    :raises SourceError: they do not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(after.raw, after.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
            line = getattr(exc, "lineno", None) or 1
            raise SourceError(f"the edited text would not compile: {exc}", after.name, line) from exc
