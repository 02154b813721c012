# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML in which every text is escaped unless this module made it. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, Union

# Elements that have no end.
_VOID = frozenset(("meta", "br"))


class Html(str):
    """Text that is HTML already. Only `tag` and `style` make it; any other text is escaped."""

    __slots__ = ()


Child = Union[str, None, Iterable["Child"]]


def text(*children: Child) -> Html:
    """Return the children one after the other, escaped where they are not HTML; None is nothing."""
    return Html("".join(_one(child) for child in children))


def _one(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return str(child)
    if isinstance(child, str):
        return escape(child)
    return "".join(_one(one) for one in child)


def tag(element: str, /, *children: Child, **attributes: Any) -> Html:
    """Return an element. Attributes: None and False are left out, True stands alone; class_ and stroke_width lose or
    change their underscore."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if element in _VOID:
        return Html(f"<{element}{given}>")
    return Html(f"<{element}{given}>{text(*children)}</{element}>")


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_").replace("_", "-")
    name = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}.get(name, name)
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def style(rules: str) -> Html:
    """Return a style sheet of our own, in which nothing is escaped. Never hand it anything that came from a host."""
    return Html(f"<style>{rules}</style>")
