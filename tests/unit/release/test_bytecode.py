# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode is taken over exactly where Python itself would take it."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import bytecode, modes, venv
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageSource

MODE = py_compile.PycInvalidationMode


def write(path: Path, text: str, seconds: int = 1_700_000_000) -> Path:
    """Write a source file with this time of change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


def cached(path: Path) -> Path:
    """Where Python looks for a file's bytecode."""
    return Path(importlib.util.cache_from_source(str(path)))


@pytest.fixture
def releases(tmp_path: Path) -> tuple[Path, Path]:
    """An earlier release with all of its bytecode, and a later one that differs in a patched file of the same size."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, key, seconds in ((old, 11, 1_700_000_000), (new, 12, 1_700_000_500)):
        write(folder / "src/python/sglang/plain.py", "X = 1\n", seconds)
        write(folder / "src/python/sglang/tables.py", f"TABLE = {{{key}: 1}}\n", seconds)
        write(folder / "venv/lib/python3/site-packages/torch.py", "Y = 1\n")
    assert bytecode.fill(str(old), None) == {"taken": 0, "compiled": 2, "problems": []}
    py_compile.compile(str(old / "venv/lib/python3/site-packages/torch.py"), invalidation_mode=MODE.TIMESTAMP)
    return old, new


def test_what_is_the_same_is_taken_over_and_what_was_patched_is_compiled(releases: tuple[Path, Path]) -> None:
    old, new = releases
    assert bytecode.fill(str(new), str(old)) == {"taken": 2, "compiled": 1, "problems": []}
    for name in ("src/python/sglang/plain.py", "venv/lib/python3/site-packages/torch.py"):
        assert cached(new / name).samefile(cached(old / name))
    tables = "src/python/sglang/tables.py"
    assert cached(new / tables).read_bytes() != cached(old / tables).read_bytes()


@pytest.mark.parametrize("mode", [MODE.CHECKED_HASH, MODE.TIMESTAMP])
def test_python_runs_the_source_that_is_there(tmp_path: Path, mode: MODE) -> None:
    """The judge is Python: whatever bytecode is taken over, an import gives what the source says."""
    for number, (text, seconds) in enumerate([("X = 1\n", 0), ("X = 2\n", 0), ("X = 1\n", 9), ("X = 11\n", 0)]):
        old = write(tmp_path / f"old{number}" / "m.py", "X = 1\n")
        new = write(tmp_path / f"new{number}" / "m.py", text, 1_700_000_000 + seconds)
        py_compile.compile(str(old), invalidation_mode=mode)
        same_stamp = mode is MODE.TIMESTAMP and seconds == 0 and len(text) == 6
        same_text = mode is MODE.CHECKED_HASH and text == "X = 1\n"
        if mode is MODE.TIMESTAMP:
            assert not bytecode.take_over(str(new), str(old), hashed=True)
        assert bytecode.take_over(str(new), str(old), hashed=mode is MODE.CHECKED_HASH) == (same_stamp or same_text)
        if mode is MODE.CHECKED_HASH:
            command = [sys.executable, "-c", "import m; print(m.X, m.__file__)"]
            done = subprocess.run(command, cwd=new.parent, capture_output=True, text=True, check=True, timeout=60)
            assert done.stdout.split() == [text.split()[-1], str(new)]


def test_bytecode_that_python_never_checks_or_of_another_python_is_left(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old.py", "X = 1\n"), write(tmp_path / "new.py", "X = 1\n")
    py_compile.compile(str(old), invalidation_mode=MODE.UNCHECKED_HASH)
    assert not bytecode.take_over(str(new), str(old), hashed=False)
    py_compile.compile(str(old), invalidation_mode=MODE.CHECKED_HASH)
    cached(old).write_bytes(b"\0\0\r\n" + cached(old).read_bytes()[4:])
    assert not bytecode.take_over(str(new), str(old), hashed=False)
    cached(old).write_bytes(b"")
    assert not bytecode.take_over(str(new), str(old), hashed=False)


def test_it_runs_on_its_own_and_says_what_does_not_compile(releases: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = releases
    write(new / "src/python/sglang/broken.py", "X = (\n")
    script = write(tmp_path / "script.py", inspect.getsource(bytecode))
    command = [sys.executable, "-I", str(script), str(new), str(old)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    said = json.loads(done.stdout)
    assert (done.returncode, said["taken"], said["compiled"]) == (1, 2, 1)
    [problem] = said["problems"]
    assert "broken.py" in problem


def test_what_compiles_is_told_no_passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, str] = {}
    monkeypatch.setattr(venv, "run", lambda words, source: told.update({" ".join(words): str(source.variables())}))
    environment = venv.Venv(tmp_path / "release", sys.executable, "/uv")
    source = PackageSource("http://u:hidden@index", environment={"http_proxy": "http://u:hidden@proxy"})
    environment.make("", source, Progress(None))
    [compiling] = [command for command in told if "llmfleet-bytecode-" in command]
    assert "hidden" not in told[compiling]
    assert sum("hidden" in one for one in told.values()) == len(told) - 1


def test_bytecode_comes_from_the_newest_release_with_the_same_packages(tmp_path: Path) -> None:
    for name, built, packages in (("a", "2026-01-01", ["x"]), ("b", "2026-01-02", ["x"]), ("c", "2026-01-03", ["y"])):
        record = {"id": name, "built_at": built, "inputs": {"lock": packages}}
        write(tmp_path / name / "release.json", json.dumps(record))
    (tmp_path / "debris").mkdir()
    assert venv.related(tmp_path, ["x"]) == tmp_path / "b"
    assert venv.related(tmp_path, ["z"]) == tmp_path / "c"
    assert venv.related(tmp_path / "none", ["x"]) is None


# --- who may read and write what is made ---


def test_uvs_locks_are_closed_and_nothing_else_is_touched(tmp_path: Path) -> None:
    lock = write(tmp_path / "wheels-v8" / "torch.lock", "")
    other = write(tmp_path / "wheels-v8" / "torch.msgpack", "")
    unpacked = write(tmp_path / "archive-v0" / "x" / "poetry.lock", "")
    for path in (lock, other, unpacked):
        path.chmod(0o666)
    (tmp_path / "link.lock").symlink_to(other)
    modes.close_locks(tmp_path, tmp_path / "none")
    assert [oct(path.stat().st_mode & 0o777) for path in (lock, other, unpacked)] == ["0o644", "0o666", "0o666"]


def test_a_hardened_hosts_mask_does_not_hide_a_release(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        modes.let_all_read()
        (tmp_path / "made").mkdir()
        assert oct((tmp_path / "made").stat().st_mode & 0o777) == "0o755"
    finally:
        os.umask(before)
