# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an imported name comes from, read from the source under the root: PRIVATE, may change at any time."""

from __future__ import annotations

import ast
import os
from typing import Callable, Optional

from .names import bindings
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

    def provides(self, dotted: str, name: str, seen: set[str] | None = None) -> bool:
        """Say whether `from dotted import name` works, as far as the source tells."""
        seen = set() if seen is None else seen
        if (dotted in seen) or len(seen) > 200:
            return False
        seen.add(dotted)
        source = self.source(dotted)
        if source is None:
            return False
        if name in bindings(source.tree) or self._read(f"{dotted.replace('.', '/')}/{name}.py") is not None:
            return True
        if any(star for star in self.stars(source) if self.provides(star, name, seen)) and name[:1] != "_":
            return True
        return "__getattr__" in bindings(source.tree) and self.mentions(dotted, name)

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
