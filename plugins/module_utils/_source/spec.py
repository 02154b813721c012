# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an edit may say, checked: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Union

from .errors import SpecError

STATES = ("absent", "present", "upstream", "conflict", "not_found", "ambiguous")
EDIT_OPTIONS = {"id", "reason", "state", "on_conflict", "optional", "since", "dict_entry", "gate"}
DICT_OPTIONS = {"name", "within", "key", "value", "like"}
GATE_OPTIONS = {"all_of", "within", "function", "add", "like"}


@dataclass(frozen=True)
class DictEntry:
    """Give the dict literal assigned to one of `name` an entry `key: value`, or a copy of entry `like`."""

    name: tuple[str, ...]
    within: tuple[str, ...]
    key: str
    value: str | None
    like: str | None

    def wanted(self) -> tuple[Any, ...]:
        """Return what makes two forms of this edit the same one."""
        return (self.key, self.value, self.like)

    def to_data(self) -> dict[str, Any]:
        """Return the options as `parse_what` takes them."""
        return {"dict_entry": {option: value for option, value in asdict(self).items() if value is not None}}


@dataclass(frozen=True)
class Gate:
    """Give the `or` of the terms `all_of` one more term, `add`, made as `like` is made."""

    all_of: tuple[str, ...]
    within: tuple[str, ...]
    function: tuple[str, ...]
    add: str
    like: str

    def wanted(self) -> tuple[Any, ...]:
        """Return what makes two forms of this edit the same one."""
        return (self.all_of, self.add, self.like)

    def to_data(self) -> dict[str, Any]:
        """Return the options as `parse_what` takes them."""
        return {"gate": asdict(self)}


What = Union[DictEntry, Gate]


@dataclass(frozen=True)
class Edit:
    """One edit, as asked for."""

    id: str
    what: What
    state: str = "present"
    reason: str = ""
    on_conflict: str = "fail"
    optional: bool = False
    since: str = ""


@functools.lru_cache(maxsize=256)
def expression(text: str, option: str) -> ast.expr:
    """Return the tree of an expression, the same one every time.

    :raises SpecError: `text` is none.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as exc:
        raise SpecError(f"{option}: {text!r} is no Python expression") from exc


@functools.lru_cache(maxsize=256)
def entry_parts(key: str, value: str) -> tuple[ast.expr, ast.expr]:
    """Return the trees of a dict entry.

    :raises SpecError: key or value is not one expression that can stand in a dict literal.
    """
    for option, text in (("key", key), ("value", value)):
        expression(text, option)
        try:
            # a second entry on the same line: a comment in the text would swallow it
            entry = f"{text}: 0" if option == "key" else f"0: {text}"
            tree = ast.parse(f"{{{entry}, 1: 2}}", mode="eval").body
        except (SyntaxError, ValueError):
            tree = None
        if not isinstance(tree, ast.Dict) or len(tree.keys) != 2 or tree.keys[0] is None:
            raise SpecError(f"{option}: {text!r} is not one expression that can stand in a dict literal")
    return expression(key, "key"), expression(value, "value")


def parse_edits(edits: Sequence[Mapping[str, Any]], on_conflict: str = "fail") -> list[Edit]:
    """Check the edits of a patch set.

    :param edits: each `{id, dict_entry | gate, reason, state, on_conflict, optional, since}`.
    :param on_conflict: what an edit that does not say wants: `fail` or `keep`.
    :raises SpecError: an option is missing, unknown or of the wrong kind.
    """
    parsed = [_edit(edit, number, on_conflict) for number, edit in enumerate(edits, 1)]
    seen: dict[str, int] = {}
    for number, edit in enumerate(parsed, 1):
        if edit.id in seen:
            raise SpecError(f"edit {number} has the id {edit.id!r} of edit {seen[edit.id]}")
        seen[edit.id] = number
    return parsed


def _edit(raw: Mapping[str, Any], number: int, on_conflict: str) -> Edit:
    if not isinstance(raw, Mapping):
        raise SpecError(f"edit {number} is no mapping")
    ident = str(raw.get("id") or "")
    where = f"edit {ident or number}"
    if not ident:
        raise SpecError(f"{where}: id is missing")
    _no_others(raw, EDIT_OPTIONS, where)
    return Edit(
        id=ident,
        what=parse_what(raw, where),
        state=_choice(raw, "state", ("present", "absent"), "present", where),
        reason=str(raw.get("reason") or ""),
        on_conflict=_choice(raw, "on_conflict", ("fail", "keep"), on_conflict, where),
        optional=_flag(raw, "optional", where),
        since=str(raw.get("since") or ""),
    )


def parse_what(raw: Mapping[str, Any], where: str) -> What:
    """Check what is to be edited, `dict_entry` or `gate`.

    :raises SpecError: an option is missing, unknown or of the wrong kind.
    """
    kinds = [kind for kind in ("dict_entry", "gate") if raw.get(kind)]
    if len(kinds) != 1:
        raise SpecError(f"{where}: exactly one of dict_entry and gate is needed")
    return _dict_entry(raw["dict_entry"], where) if kinds == ["dict_entry"] else _gate(raw["gate"], where)


def _dict_entry(raw: Any, where: str) -> DictEntry:
    where = f"{where}: dict_entry"
    _no_others(raw, DICT_OPTIONS, where)
    key, value, like = (_text(raw, option) for option in ("key", "value", "like"))
    names = _list(raw, "name", where)
    if not names or key is None or (value is None) == (like is None):
        raise SpecError(f"{where}: name, key and one of value and like are needed")
    entry_parts(key, value if value is not None else "0")
    if like is not None:
        entry_parts(like, "0")
    return DictEntry(names, _list(raw, "within", where), key, value, like)


def _gate(raw: Any, where: str) -> Gate:
    where = f"{where}: gate"
    _no_others(raw, GATE_OPTIONS, where)
    terms, add = _list(raw, "all_of", where), _text(raw, "add")
    if not terms or add is None:
        raise SpecError(f"{where}: all_of and add are needed")
    like = _text(raw, "like") or terms[-1]
    for term in (*terms, add, like):
        if not isinstance(expression(term, "term"), (ast.Name, ast.Attribute, ast.Call)):
            raise SpecError(f"{where}: {term!r} is no name, attribute or call")
    if add in terms or like not in terms:
        raise SpecError(f"{where}: like has to be one of all_of, and add none of them")
    return Gate(terms, _list(raw, "within", where), _list(raw, "function", where), add, like)


def _no_others(raw: Any, known: set[str], where: str) -> None:
    if not isinstance(raw, Mapping):
        raise SpecError(f"{where} is no mapping")
    unknown = sorted(str(option) for option in raw if option not in known)
    if unknown:
        raise SpecError(f"{where}: unknown option {', '.join(unknown)}; known are {', '.join(sorted(known))}")


def _choice(raw: Mapping[str, Any], option: str, choices: Sequence[str], default: str, where: str) -> str:
    value = raw.get(option) or default
    if value not in choices:
        raise SpecError(f"{where}: {option} is {value!r}, has to be one of {', '.join(choices)}")
    return str(value)


def _flag(raw: Mapping[str, Any], option: str, where: str) -> bool:
    value = raw.get(option)
    if value is not None and not isinstance(value, bool):
        raise SpecError(f"{where}: {option} is {value!r}, has to be true or false")
    return bool(value)


def _text(raw: Mapping[str, Any], option: str) -> str | None:
    value = raw.get(option)
    return None if value is None else str(value).strip()


def _list(raw: Mapping[str, Any], option: str, where: str) -> tuple[str, ...]:
    value = raw.get(option)
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item for item in items):
        raise SpecError(f"{where}: {option} has to be a list of strings")
    return tuple(items)
