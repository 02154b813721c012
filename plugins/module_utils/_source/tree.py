# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a source tree: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence

from .errors import SourceError, SpecError
from .text import SourceText

MAX_FILE_BYTES = 8 * 1024 * 1024
REQUIRES = re.compile(r"^\s*[Rr]equires-[Pp]ython\s*[:=]\s*[\"']?([^\"'\n]+)", re.MULTILINE)
VERSION = re.compile(
    r"^\s*(?:__version__|version)(?:\s*:\s*str)?\s*=\s*(?:version\s*=\s*)?[\"']([^\"']+)[\"']", re.MULTILINE
)


class Tree:
    """A folder of Python source, or one file.

    :param root: the path given; links in it are followed once, here.
    :raises SourceError: there is nothing.
    """

    def __init__(self, root: str) -> None:
        path = os.path.realpath(root)
        if not os.path.exists(path):
            raise SourceError(f"root {root} does not exist")
        self.single = None if os.path.isdir(path) else os.path.basename(path)
        self.folder = path if self.single is None else os.path.dirname(path)
        self._cache: dict[str, SourceText] = {}
        self._overlay: dict[str, bytes] = {}
        self._raw: dict[str, bytes] = {}
        self._folders: dict[str, str] = {}
        self.links: dict[str, str] = {}

    def path(self, name: str) -> str:
        """Return the real path of a file of the tree.

        :raises SourceError: it is a link to somewhere outside the root.
        """
        real = self._real(name)
        if os.path.commonpath([real, self.folder]) != self.folder:
            raise SourceError(
                f"is a link to {real}, outside the root, where other installations may share it; "
                "give a root that holds the file itself",
                name,
            )
        return real

    def _real(self, name: str) -> str:
        """Return the real path of a file, looking at each folder once."""
        path = f"{self.folder}/{name}"
        if os.path.islink(path):
            return os.path.realpath(path)
        folder, base = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], base)

    def files(self, within: Sequence[str]) -> list[str]:
        """Return the files that match one of the patterns, as `/`-separated paths relative to the root.

        :raises SpecError: a pattern leaves the root.
        """
        if self.single is not None:
            return [self.single]
        found: dict[str, str] = {}
        for pattern in within or ("**/*.py",):
            parts = [part for part in pattern.split("/") if part != "."]
            if pattern.startswith("/") or ".." in parts or not parts or not all(parts):
                raise SpecError(f"within: {pattern!r} leaves the root or is no pattern; it is relative to the root")
            for name in self._match(self.folder, parts, ""):
                real = self._real(name)
                inside = os.path.relpath(real, self.folder).replace(os.sep, "/")
                if real != os.path.join(self.folder, name) and not inside.startswith("../"):
                    self.links[inside] = name
                    found.setdefault(real, inside)
                else:
                    found.setdefault(real, name)
        return sorted(found.values())

    def _match(self, folder: str, parts: Sequence[str], prefix: str) -> Iterator[str]:
        head, rest = parts[0], parts[1:]
        if head == "**":
            yield from self._match(folder, rest or ["*"], prefix)
            for entry in _scan(folder):
                if entry.is_dir(follow_symlinks=False):
                    yield from self._match(entry.path, parts, f"{prefix}{entry.name}/")
            return
        if not glob.has_magic(head):
            path = os.path.join(folder, head)
            if not rest and os.path.isfile(path):
                yield prefix + head
            elif rest and os.path.isdir(path):
                yield from self._match(path, rest, f"{prefix}{head}/")
            return
        for entry in _scan(folder):
            if fnmatch.fnmatchcase(entry.name, head):
                if not rest and entry.is_file():
                    yield prefix + entry.name
                elif rest and entry.is_dir():
                    yield from self._match(entry.path, rest, f"{prefix}{entry.name}/")

    def raw(self, name: str) -> bytes:
        """Return the bytes of a file.

        :raises SourceError: it is missing, no plain file, unreadable or too large.
        """
        if name not in self._raw:
            self._raw[name] = self._overlay[name] if name in self._overlay else self._from_disk(name)
        return self._raw[name]

    def _from_disk(self, name: str) -> bytes:
        path = self.path(name)
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                raise SourceError("is no plain file", name)
            if status.st_size > MAX_FILE_BYTES:
                raise SourceError(f"is {status.st_size} bytes long, more than the limit of {MAX_FILE_BYTES}", name)
            with open(path, "rb") as stream:
                return stream.read(MAX_FILE_BYTES + 1)
        except OSError as exc:
            raise SourceError(f"cannot be read: {exc.strerror}", name) from exc

    def overlay(self, name: str, raw: bytes) -> None:
        """Let a file appear with other bytes (what a repair would write, in check mode)."""
        self._overlay[name] = raw
        self._cache.pop(name, None)
        self._raw.pop(name, None)

    def read(self, name: str) -> SourceText:
        """Return a file as text."""
        if name not in self._cache:
            self._cache[name] = SourceText(name, self.raw(name))
        return self._cache[name]

    def package(self) -> tuple[str, str]:
        """Return (folder that imports start from, path of the root from there with a slash, or nothing)."""
        top, prefix = self.folder, ""
        while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
            prefix = f"{os.path.basename(top)}/{prefix}"
            top = os.path.dirname(top)
        return top, prefix

    def module(self, path: str) -> SourceText | None:
        """Return a file by its path from where imports start, or None."""
        top, prefix = self.package()
        if path.startswith(prefix):
            try:
                return self.read(path[len(prefix) :])
            except SourceError as exc:
                if exc.line:
                    raise
                return None
        outside = f"../{path}"
        if outside not in self._cache:
            try:
                with open(os.path.join(top, path), "rb") as stream:
                    self._cache[outside] = SourceText(path, stream.read(MAX_FILE_BYTES))
            except OSError:
                return None
        return self._cache[outside]

    def requires_python(self) -> str:
        """Return what the tree's own metadata say of the Python that it needs, or nothing."""
        return self._metadata(("pyproject.toml", "*.dist-info/METADATA", "../pyproject.toml"), REQUIRES)

    def version(self) -> str:
        """Return the version that the tree says it is, or nothing."""
        return self._metadata(("*/_version.py", "*/version.py", "_version.py", "version.py"), VERSION)

    def _metadata(self, patterns: Sequence[str], expression: re.Pattern[str]) -> str:
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(glob.escape(self.folder), pattern))):
                try:
                    with open(path, encoding="utf-8", errors="replace") as stream:
                        match = expression.search(stream.read(65536))
                except OSError:
                    continue
                if match:
                    return match.group(1).strip()
        return ""


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as exc:
        raise SourceError(f"cannot list {folder}: {exc.strerror}") from exc
