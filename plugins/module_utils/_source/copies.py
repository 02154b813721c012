# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where copied imports and definitions go, and which ones are mere fallbacks: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import re
from typing import Union

from .errors import SourceError
from .names import Binding
from .prove import twin
from .text import SourceText, skip_blank

# a statement to put after another one, or a name to put after the one at an index of an import
Added = Union[ast.stmt, tuple[int, ast.alias]]
WORD = re.compile(r"\w+")


def is_fallback(binding: Binding) -> bool:
    """Say whether a binding only says no: `= None`, `= False`, `= lambda: False`, or a function that returns that.

    Such a binding stands where an import failed, or where there is no such hardware, and goes for any chip.
    """
    node = binding.node
    if binding.kind == "assign":
        value: ast.expr | None = node.value  # type: ignore[attr-defined]
        return _says_no(value.body if isinstance(value, ast.Lambda) else value)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    body = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if len(body) != 1 or isinstance(body[0], ast.Pass):
        return len(body) < 2
    return isinstance(body[0], ast.Return) and _says_no(body[0].value)


def _says_no(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (None, False))


def last_term(node: ast.expr) -> ast.expr:
    """Return the last term of an `and`, or the expression itself."""
    return node.values[-1] if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else node


def find_alias(source: SourceText, statement: ast.ImportFrom, alias: ast.alias) -> tuple[int, int, bool]:
    """Return (start, end) of an imported name, `as` part included, and whether parentheses surround the list."""
    text, at = source.text, source.start(statement)
    while True:
        at = skip_blank(text, at)
        word = WORD.match(text, at)
        at = word.end() if word else at + 1
        if word and word.group() == "import":
            break
    at = skip_blank(text, at)
    inside = text[at] == "("
    at += inside
    for candidate in statement.names:
        at = start = skip_blank(text, at)
        end = start
        for name in (candidate.name, "as", candidate.asname) if candidate.asname else (candidate.name,):
            at = skip_blank(text, at)
            if not text.startswith(name or "", at):
                raise SourceError("the list of imported names was not understood", source.name, statement.lineno)
            at = end = at + len(name or "")
        if candidate is alias:
            return start, end, inside
        at = skip_blank(text, at) + 1
    raise LookupError("an alias of another statement")


def add_to(expected: ast.Module, statement: ast.stmt, added: Added) -> None:
    """Make an addition in a fresh tree of the same text."""
    same, parent = twin(expected, statement)
    if not isinstance(added, ast.stmt):
        same.names.insert(added[0] + 1, added[1])
        return
    for _field, value in ast.iter_fields(parent):
        if isinstance(value, list) and any(item is same for item in value):
            value.insert(value.index(same) + 1, added)
