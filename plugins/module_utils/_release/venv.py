# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual environment of a release, made at its final path. Private to the collection."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress, counting
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import bytecode
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import lock_entries, read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import close_locks
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageSource, run


@dataclass(frozen=True)
class Venv:
    """A release's folder, the interpreter under it and the uv that fills it."""

    folder: Path
    python: str
    uv: str

    @property
    def interpreter(self) -> str:
        """The environment's own interpreter."""
        return str(self.folder / "venv" / "bin" / "python")

    def make(self, lock: str, source: PackageSource, progress: Progress) -> None:
        """Make the environment, install what the lock pins, SGLang editable, and compile. Raises PackageError."""
        progress.phase("making the environment")
        run([self.uv, "venv", "--quiet", "--clear", "--python", self.python, str(self.folder / "venv")], source)
        with tempfile.NamedTemporaryFile("w", prefix="llmfleet-lock-", suffix=".txt", encoding="utf-8") as file:
            file.write(lock)
            file.flush()
            install = ["pip", "sync", "--quiet", "--require-hashes", "--python", self.interpreter, file.name]
            with self._counted(len(lock_entries(lock)), source.cache, progress):
                run([self.uv, *install], source)
        progress.phase("installing SGLang")
        editable = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--python", self.interpreter]
        run([self.uv, *editable, "--editable", str(self.folder / "src" / "python")], source)
        progress.phase("compiling SGLang")
        self._compile(lock)
        close_locks(self.folder / "venv", *([Path(source.cache)] if source.cache else []))

    def _compile(self, lock: str) -> None:
        base = related(self.folder.parent, lock_entries(lock))
        with tempfile.NamedTemporaryFile("w", prefix="llmfleet-bytecode-", suffix=".py", encoding="utf-8") as file:
            file.write(inspect.getsource(bytecode))
            file.flush()
            command = [self.interpreter, "-I", file.name, str(self.folder), *([str(base)] if base else [])]
            run(command, PackageSource())  # it fetches nothing, so it is told no passwords

    @contextmanager
    def _counted(self, total: int, cache: str, progress: Progress) -> Iterator[None]:
        """Tell how many packages are there while uv installs: it unpacks all into its cache, then links all."""
        unpacked = Path(cache, "archive-v0")
        before = _entries(unpacked, "*")
        installing = False

        def count() -> int:
            nonlocal installing
            installed = _entries(self.folder / "venv" / "lib", "python*/site-packages/*.dist-info")
            if installed and not installing:
                installing = True
                progress.phase("installing packages", total=total, unit="packages")
            return installed if installing else _entries(unpacked, "*") - before

        progress.phase("fetching packages", unit="packages")
        with counting(progress, count):
            yield


def related(releases: Path, entries: list[str]) -> Path | None:
    """Return the newest finished release to take bytecode from, one with the same packages if there is one."""
    found = []
    for path in releases.iterdir() if releases.is_dir() else []:
        record = read_record(path) if path.is_dir() and not path.is_symlink() else None
        if record:
            same = record.get("inputs", {}).get("lock") == entries
            found.append((same, str(record.get("built_at", "")), path))
    return max(found)[2] if found else None


def _entries(folder: Path, pattern: str) -> int:
    return sum(1 for _path in folder.glob(pattern))
