# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How systemd reads a unit, written from systemd.syntax(7), systemd.unit(5) and systemd.service(5) for the tests.

It shares no code with what writes units; test_quote.py compares it with examples from the manual pages.
"""

from __future__ import annotations

import re

# systemd.service(5), "COMMAND LINES", and systemd.syntax(7), "QUOTING"
_C_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "s": " ",
}
_SPACE = " \t\n\r"


class NotReadable(ValueError):
    """systemd would refuse the line."""


def entries(unit: str) -> list[tuple[str, str, str]]:
    """Return (section, key, value) of each assignment, with continued lines joined and comments left out."""
    found: list[tuple[str, str, str]] = []
    section, pending = "", ""
    for line in unit.split("\n"):
        if line.lstrip().startswith(("#", ";")):
            continue  # also in the middle of a continued line
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        whole, pending = (pending + line).strip(), ""
        if not whole:
            continue
        if whole.startswith("["):
            section = whole.strip("[]")
            continue
        key, equals, value = whole.partition("=")
        if not equals:
            raise NotReadable(f"no assignment: {whole}")
        found.append((section, key.strip(), value.strip()))
    return found


def words(text: str) -> list[str]:
    """Split a value into words: quotes are taken away, and C escapes count inside and outside of them."""
    found: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position == len(text):
            return found
        word, position = _word(text, position)
        found.append(word)


def _word(text: str, position: int) -> tuple[str, int]:
    word, quote = "", ""
    while position < len(text):
        character = text[position]
        if character == "\\":
            piece, position = _escape(text, position + 1)
            word += piece
            continue
        position += 1
        if quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        elif not quote and character in _SPACE:
            return word, position
        else:
            word += character
    if quote:
        raise NotReadable(f"a quote is not closed: {text}")
    return word, position


def _escape(text: str, position: int) -> tuple[str, int]:
    if position == len(text):
        raise NotReadable("a backslash at the end")
    character = text[position]
    if character in _C_ESCAPES:
        return _C_ESCAPES[character], position + 1
    for lead, digits, base in (("x", 2, 16), ("u", 4, 16), ("U", 8, 16), ("", 3, 8)):
        match = re.compile(lead + f"([0-9a-fA-F]{{{digits}}})").match(text, position)
        if match:
            return chr(int(match[1], base)), match.end()
    raise NotReadable(f"an unknown escape \\{character}")


def specifiers(text: str) -> str:
    """Resolve `%%`; any other specifier would put something into the value that the writer did not mean."""
    for match in re.finditer(r"%(.?)", text, re.DOTALL):
        if match[1] != "%":
            raise NotReadable(f"a specifier {match[0]}")
    return text.replace("%%", "%")


def variables(word: str) -> str:
    """Resolve `$$` of an Exec line; any other `$` would be a variable of the service's environment."""
    if "$" in word.replace("$$", ""):
        raise NotReadable(f"a variable in {word}")
    return word.replace("$$", "$")


def argv(value: str) -> list[str]:
    """Return the argv of an Exec line without variables."""
    found = [variables(specifiers(word)) for word in words(value)]
    if found and found[0][:1] in "@-:+!|":
        raise NotReadable(f"a prefix of the program: {found[0]}")
    if ";" in re.split(r"\s+", value):
        raise NotReadable("a separator of commands")
    return found


def environment(values: list[str]) -> dict[str, str]:
    """Return the environment that Environment= lines make."""
    found: dict[str, str] = {}
    for value in values:
        for word in words(value):
            name, equals, content = specifiers(word).partition("=")
            if not equals:
                raise NotReadable(f"no assignment: {word}")
            found[name] = content
    return found
