# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an imported name comes from, read from the source under the root: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import os
from typing import Callable, Optional

from .names import bindings
from .scopes import MAYBE, NO, bound_at_end
from .text import SourceText

Read = Callable[[str], Optional[SourceText]]


class Modules:
    """The modules of a source tree.

    :param read: gives a file by its path from where imports start, or None.
    """

    def __init__(self, read: Read) -> None:
        self._read = read

    def path(self, node: ast.ImportFrom, importer: str) -> str:
        """Return the dotted name of the module that `from … import` in file `importer` means."""
        if not node.level:
            return node.module or ""
        package = importer.split("/")[:-1]
        package = package[: len(package) - (node.level - 1)]
        return ".".join([*package, *((node.module or "").split(".") if node.module else [])])

    def source(self, dotted: str) -> SourceText | None:
        """Return the source of a module, or None where the tree has none."""
        base = dotted.replace(".", "/")
        for candidate in (f"{base}.py", f"{base}/__init__.py"):
            found = self._read(candidate)
            if found is not None:
                return found
        return None

    def provides(self, dotted: str, name: str, like: str = "", seen: set[str] | None = None) -> bool:
        """Say whether `from dotted import name` works, as far as the source tells.

        :param like: a name that is imported from there already: where the module has that only under a condition,
            the same will do for this one.
        """
        seen = set() if seen is None else seen
        if (dotted in seen) or len(seen) > 200:
            return False
        seen.add(dotted)
        source = self.source(dotted)
        if source is None:
            return False
        if name in bindings(source.tree):
            state = bound_at_end(source.tree, name)
            if state not in (NO, MAYBE) or (state == MAYBE and bound_at_end(source.tree, like) == MAYBE):
                return True
        elif self._read(f"{dotted.replace('.', '/')}/{name}.py") is not None:
            return True
        for star in self.stars(source):
            if self._exports(star, name) and self.provides(star, name, like, seen):
                return True
        return "__getattr__" in bindings(source.tree) and self.mentions(dotted, name)

    def _exports(self, dotted: str, name: str) -> bool:
        """Say whether `from dotted import *` brings a name: what `__all__` lists or, without one, all but _names."""
        source = self.source(dotted)
        lists = bindings(source.tree).get("__all__", []) if source else []
        if source is None or not lists:
            return name[:1] != "_"
        # all that is ever put into the list, `__all__ += […]` and `__all__.extend([…])` included
        parts = [node for node in source.tree.body if "__all__" in ast.unparse(node)]
        return any(isinstance(node, ast.Constant) and node.value == name for part in parts for node in ast.walk(part))

    def stars(self, source: SourceText) -> list[str]:
        """Return the modules that a file imports everything from."""
        return [
            self.path(node, source.name)
            for node in source.tree.body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]

    def mentions(self, dotted: str, name: str) -> bool:
        """Say whether a module knows `name`: as a definition, an attribute or a string."""
        source = self.source(dotted)
        if source is None or name not in source.text:
            return False
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and node.value == name:
                return True
            if name in (getattr(node, "name", None), getattr(node, "id", None), getattr(node, "attr", None)):
                return True
        return False

    def describe(self, dotted: str) -> str:
        """Return the file of a module, for messages."""
        source = self.source(dotted)
        return source.name if source else dotted.replace(".", os.sep)
