# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Source text, kept to the byte: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .errors import SourceError, SplicesLost

BOM = b"\xef\xbb\xbf"
NEWLINE = re.compile(r"\r\n|\r|\n")
BLANK = " \t\f"


class Splice(NamedTuple):
    """Replace text[start:start+len(removed)] (characters of the text before this edit) by `inserted`."""

    start: int
    removed: str
    inserted: str


def insertion(at: int, text: str) -> Splice:
    """Return the splice that only inserts."""
    return Splice(at, "", text)


def apply_splices(text: str, splices: Sequence[Splice]) -> str:
    """Return `text` with the splices (offsets into `text`, in ascending order) done."""
    out, last = [], 0
    for splice in splices:
        end = splice.start + len(splice.removed)
        if splice.start < last or text[splice.start : end] != splice.removed:
            raise SplicesLost(f"offset {splice.start} does not hold {splice.removed!r}")
        out += [text[last : splice.start], splice.inserted]
        last = end
    return "".join([*out, text[last:]])


def undo_splices(text: str, splices: Sequence[Splice]) -> str:
    """Return what `text` was before `apply_splices`."""
    shift, inverse = 0, []
    for splice in splices:
        inverse.append(Splice(splice.start + shift, splice.inserted, splice.removed))
        shift += len(splice.inserted) - len(splice.removed)
    return apply_splices(text, inverse)


def map_range(start: int, end: int, splices: Iterable[Splice]) -> tuple[int, int]:
    """Return where the range went: what was inserted at either of its ends belongs to it."""
    new_start, new_end = start, end
    for splice in splices:
        growth = len(splice.inserted) - len(splice.removed)
        if splice.start < start:
            new_start += growth
        if splice.start <= end:
            new_end += growth
    return new_start, new_end


class SourceText:
    """One file: bytes, text, encoding, line table, tree. Immutable.

    :param name: path relative to the root, for messages.
    :param raw: the file's bytes.
    :raises SourceError: bytes that are no text in the file's own encoding.
    """

    def __init__(self, name: str, raw: bytes) -> None:
        self.name = name
        self.raw = raw
        self.bom = raw.startswith(BOM)
        body = raw[len(BOM) :] if self.bom else raw
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
            self.encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            self.text = body.decode(self.encoding)
        except (SyntaxError, UnicodeError, LookupError) as exc:
            raise SourceError(f"cannot be read as Python text: {exc}", name, 1) from exc
        if self.text.encode(self.encoding) != body:
            raise SourceError(f"its encoding {self.encoding} does not give the same bytes back", name, 1)
        self._starts = [0] + [match.end() for match in NEWLINE.finditer(self.text)]
        self._tree: ast.Module | None = None

    def with_text(self, text: str) -> SourceText:
        """Return the same file with other text, in the same encoding and with the same BOM.

        :raises SourceError: a character that the file's encoding lacks.
        """
        try:
            body = text.encode(self.encoding)
        except UnicodeEncodeError as exc:
            raise SourceError(f"its encoding {self.encoding} has no way to write {exc}", self.name) from exc
        return SourceText(self.name, (BOM if self.bom else b"") + body)

    @property
    def tree(self) -> ast.Module:
        """The parsed module. Treat it as read-only; `fresh_tree` gives one to change."""
        if self._tree is None:
            self._tree = self.fresh_tree()
        return self._tree

    def fresh_tree(self) -> ast.Module:
        """Parse again.

        :raises SourceError: a syntax error, or text too deeply nested for this Python.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(self.text, self.name)
            except SyntaxError as exc:
                raise SourceError(f"does not parse: {exc.msg}", self.name, exc.lineno or 1) from exc
            except (ValueError, RecursionError, MemoryError) as exc:
                raise SourceError(f"does not parse: {exc or type(exc).__name__}", self.name, 1) from exc

    def offset(self, line: int, column: int) -> int:
        """Return the character offset of an ast position (1-based line, column in UTF-8 bytes)."""
        start = self._starts[line - 1]
        if column == 0:
            return start
        piece = self.text[start : start + column]
        if piece.isascii():
            return start + column
        return start + len(piece.encode("utf-8")[:column].decode("utf-8"))

    def lines_with(self, word: str) -> list[int]:
        """Return the lines that a name stands on, in order."""
        found = re.finditer(rf"\b{re.escape(word)}\b", self.text)
        return sorted({self.line_of(match.start()) for match in found})

    def start(self, node: ast.AST) -> int:
        """Return where the node's text begins."""
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Return where the node's text ends."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        """Return the node's text."""
        return self.text[self.start(node) : self.end(node)]

    def line_of(self, offset: int) -> int:
        """Return the 1-based line of an offset."""
        return bisect.bisect_right(self._starts, offset)

    def line_start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        return self._starts[self.line_of(offset) - 1]

    def line_end(self, offset: int) -> int:
        """Return where the line of an offset ends, before its newline."""
        match = NEWLINE.search(self.text, offset)
        return match.start() if match else len(self.text)

    def indent(self, offset: int) -> str | None:
        """Return the blanks before `offset` on its line, or None where something else stands there."""
        before = self.text[self.line_start(offset) : offset]
        return before if not before.strip(BLANK) else None

    def newline(self, start: int, end: int) -> str:
        """Return the newline to use between two offsets: what the lines there use, else what the file uses.

        :raises SourceError: the lines there end in more than one way.
        """
        nearby = set()
        for found in NEWLINE.finditer(self.text, self.line_start(start)):
            nearby.add(found.group())
            if found.start() >= end:
                break
        if len(nearby) > 1:
            raise SourceError(
                "mixed line endings right where the edit goes; make them one kind first",
                self.name,
                self.line_of(start),
            )
        if nearby:
            return nearby.pop()
        match = NEWLINE.search(self.text)
        return match.group() if match else "\n"


def skip_blank(text: str, at: int, lines: bool = True) -> int:
    """Return the offset of the next thing that is no blank, comment, continuation or (with lines) newline."""
    while at < len(text):
        char = text[at]
        if char in BLANK:
            at += 1
        elif char == "#" and lines:
            match = NEWLINE.search(text, at)
            at = match.start() if match else len(text)
        elif char in "\r\n" and lines:
            at += 1
        elif char == "\\" and NEWLINE.match(text, at + 1):
            match = NEWLINE.match(text, at + 1)
            at = match.end() if match else at
        else:
            return at
    return at


def only_comment_follows(source: SourceText, at: int) -> bool:
    """Say whether the rest of the line after `at` is blank or a comment."""
    rest = source.text[at : source.line_end(at)].strip(BLANK)
    return not rest or rest.startswith("#")


def close_parens(text: str, at: int, count: int) -> int:
    """Return the offset after `count` closing parentheses that follow `at`."""
    for _count in range(count):
        at = skip_blank(text, at)
        if text[at : at + 1] != ")":
            raise SplicesLost("a closing parenthesis is missing")
        at += 1
    return at


def element_end(text: str, at: int, closing: str) -> tuple[int, int | None]:
    """Return (end of the element whose node ends at `at`, offset of the comma after it or None).

    Parentheses around the element's last part belong to it, unless they are the sequence's own.
    """
    end = at
    while True:
        at = skip_blank(text, at)
        char = text[at : at + 1]
        if char == ",":
            return end, at
        if char == ")" and closing != ")":
            at += 1
            end = at
        else:
            return end, None


def insert_element(source: SourceText, start: int, end: int, comma: int | None, new: str, newline: str) -> list[Splice]:
    """Return the splices that put `new` after the element [start, end) of a comma-separated sequence.

    Own line where the element has one, with a comma where the sequence has a trailing one; else inline.
    """
    text = source.text
    indent = source.indent(start)
    after = end if comma is None else comma + 1
    same_line = comma is None or source.line_of(comma) == source.line_of(end)
    line_end = source.line_end(after)
    if indent is None or not same_line or not only_comment_follows(source, after) or line_end >= len(text):
        return [insertion(end, ", " + new)]
    if comma is not None:
        return [insertion(line_end, f"{newline}{indent}{new},")]
    if line_end == end:
        return [insertion(end, f",{newline}{indent}{new}")]
    return [insertion(end, ","), insertion(line_end, f"{newline}{indent}{new}")]
