# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How systemd reads the values in a unit, which is not how a shell does. Private to the collection.

Source: systemd.service(5) "COMMAND LINES", systemd.syntax(7) "QUOTING", systemd.unit(5) "SPECIFIERS".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(text: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in text).replace("%", "%%")
    return f'"{escaped}"'


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError("a value for systemd must not hold a NUL byte")


def exec_word(word: str) -> str:
    """Return one word of an Exec line that reaches argv byte for byte: quoted, `%` and `$` doubled."""
    _refuse_nul(word)
    return word if _PLAIN.fullmatch(word) else _quoted(word).replace("$", "$$")


def exec_line(words: Iterable[str], separator: str = " ") -> str:
    """Join the words of a command for ExecStart=; `separator` may hold a line continuation."""
    return separator.join(exec_word(word) for word in words)


def environment_line(name: str, value: str) -> str:
    """Return `NAME=value` for Environment=; there `%` is a specifier and `$` is itself."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"'{name}' is no name for an environment variable")
    _refuse_nul(value)
    return f"{name}={value}" if _PLAIN.fullmatch(value) else _quoted(f"{name}={value}")


def launch_words(arguments: Mapping[str, object]) -> list[list[str]]:
    """Turn a map of launch arguments into words, a list for each flag: True is a flag alone, False and None none."""
    return [
        [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
        for flag, value in arguments.items()
        if value is not None and value is not False
    ]


def launch_line(program: list[str], arguments: Mapping[str, object]) -> str:
    """Return an Exec line of a program and its launch arguments, one flag on each continued line."""
    groups = [program, *launch_words(arguments)]
    return " \\\n    ".join(exec_line(group) for group in groups)
