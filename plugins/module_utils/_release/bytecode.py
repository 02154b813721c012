# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode for a release: taken over from an earlier one where Python itself would take it, else compiled. Private.

It runs in the release's own interpreter, so nothing of the collection is imported. The service cannot write into a
release, and what has no bytecode is compiled again by each of its processes at each start.

SGLang's own tree gets bytecode that is bound to its source's hash (PEP 552), which Python checks at every import: two
worktrees of one commit share it, and a patched file never does. The packages come from one cache and keep their times,
so theirs is bound to time and size, as usual; what is missing there the import test writes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import multiprocessing
import os
import py_compile
import shutil
import sys
from collections.abc import Iterator

SOURCE, PACKAGES = os.path.join("src", "python"), os.path.join("venv", "lib")
_HEADER = 16
_HASHED = 0b11  # by hash, and checked at each import


def fits(bytecode: str, source: str, *, hashed: bool) -> bool:
    """Tell whether Python would take a file of bytecode for this source. Raises OSError.

    hashed: time and size are not enough, since a file may have been patched.
    """
    with open(bytecode, "rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER or header[:4] != importlib.util.MAGIC_NUMBER:
        return False
    flags = int.from_bytes(header[4:8], "little")
    if flags == 0 and not hashed:
        status = os.stat(source)
        stamp = (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
        return stamp == (int.from_bytes(header[8:12], "little"), int.from_bytes(header[12:16], "little"))
    if flags != _HASHED:
        return False
    with open(source, "rb") as file:
        return importlib.util.source_hash(file.read()) == header[8:]


def take_over(source: str, other: str, *, hashed: bool) -> bool:
    """Link, or copy, the bytecode of another release's file if it fits this source; False when it does not."""
    target, have = importlib.util.cache_from_source(source), importlib.util.cache_from_source(other)
    try:
        if not fits(have, source, hashed=hashed):
            return False
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        try:
            os.link(have, target)
        except OSError:  # another file system, or one without links
            shutil.copyfile(have, target)
    except OSError:
        return False
    return True


def compiled(source: str) -> str:
    """Compile a file; return what is wrong with it, "" when nothing is."""
    try:
        py_compile.compile(source, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    except (OSError, py_compile.PyCompileError) as error:
        return f"{source}: {error}"
    return ""


def sources(folder: str) -> Iterator[str]:
    """Return every Python file below a folder, as paths relative to it; a linked folder is not entered."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (os.path.relpath(os.path.join(parent, name), folder) for name in names if name.endswith(".py"))


def fill(release: str, base: str | None, workers: int | None = None) -> dict[str, object]:
    """Give a release its bytecode, from the release `base` where it can be; all of SGLang's own is compiled.

    Returns how many files were taken over and compiled, and what could not be compiled. workers: processes, by default
    one for each core.
    """
    taken, left = 0, []
    for tree in (SOURCE, PACKAGES):
        for name in sources(os.path.join(release, tree)) if base or tree == SOURCE else ():
            source = os.path.join(release, tree, name)
            if base and take_over(source, os.path.join(base, tree, name), hashed=tree == SOURCE):
                taken += 1
            elif tree == SOURCE:
                left.append(source)
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        problems = [problem for problem in pool.imap(compiled, left, chunksize=16) if problem]
    return {"taken": taken, "compiled": len(left) - len(problems), "problems": problems}


if __name__ == "__main__":
    found = fill(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    sys.stdout.write(json.dumps(found) + "\n")
    raise SystemExit(1 if found["problems"] else 0)
