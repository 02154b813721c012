# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How systemd reads the values in a unit, which is not how a shell does. Private to the collection.

Source: systemd.service(5) "COMMAND LINES", systemd.syntax(7) "QUOTING", systemd.unit(5) "SPECIFIERS".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(text: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in text).replace("%", "%%")
    return f'"{escaped}"'


def _fit(character: str) -> bool:
    """Tell whether systemd passes a character on: no other control character, and nothing it takes for broken UTF-8."""
    point = ord(character)
    control = (point < 0x20 and character not in "\t\n\r") or point == 0x7F
    broken = 0xD800 <= point <= 0xDFFF or 0xFDD0 <= point <= 0xFDEF or point & 0xFFFE == 0xFFFE
    return not control and not broken


def unfit(text: str) -> str:
    """Return the first character that no unit can hold, by its code point; "" when there is none."""
    return next((f"U+{ord(character):04X}" for character in text if not _fit(character)), "")


def _refuse_unfit(text: str) -> None:
    if found := unfit(text):
        raise ValueError(f"a value for systemd must not hold the character {found}")


def exec_word(word: str) -> str:
    """Return one word of an Exec line that reaches argv byte for byte: quoted, `%` and `$` doubled.

    Raises ValueError for a character that systemd does not pass on.
    """
    _refuse_unfit(word)
    return word if _PLAIN.fullmatch(word) else _quoted(word).replace("$", "$$")


def exec_line(words: Iterable[str], separator: str = " ") -> str:
    """Join the words of a command for ExecStart=; `separator` may hold a line continuation."""
    return separator.join(exec_word(word) for word in words)


def environment_line(name: str, value: str) -> str:
    """Return `NAME=value` for Environment=; there `%` is a specifier and `$` is itself.

    Raises ValueError for a name that is none, and for a character that systemd does not pass on.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"'{name}' is no name for an environment variable")
    _refuse_unfit(value)
    return f"{name}={value}" if _PLAIN.fullmatch(value) else _quoted(f"{name}={value}")


def launch_words(arguments: Mapping[str, object]) -> list[list[str]]:
    """Turn a map of launch arguments into words, a list for each flag.

    True is a flag alone, False and None are none; a list is one flag with many values, a map is JSON.
    """
    return [
        _flag_words(f"--{flag}", value)
        for flag, value in arguments.items()
        if value is not None and value is not False  # a zero is a value
    ]


def _flag_words(flag: str, value: object) -> list[str]:
    if value is True:
        return [flag]
    if isinstance(value, (list, tuple)):
        return [flag, *(str(one) for one in value)]
    text = json.dumps(value) if isinstance(value, Mapping) else str(value)
    # argparse takes a word that begins with a dash for the next flag, unless it is a number.
    return [f"{flag}={text}"] if re.match(r"-(?![0-9])", text) else [flag, text]


def launch_line(program: list[str], arguments: Mapping[str, object]) -> str:
    """Return an Exec line of a program and its launch arguments, one flag on each continued line.

    Raises ValueError when the program is no absolute path: systemd gives other first characters a meaning.
    """
    if not re.fullmatch(r"/[^$]*", program[0]):
        raise ValueError(f"'{program[0]}' cannot be the program of a unit: it has to be an absolute path without $")
    groups = [program, *launch_words(arguments)]
    return " \\\n    ".join(exec_line(group) for group in groups)
