# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix covers what is promised, and finds, copies and picks what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.matrix import __main__ as matrix
from tests.matrix import get_pip, pythons, target_side, tree

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_every_promised_version_has_its_cell() -> None:
    pairs = {(cell.kind, cell.python, cell.core) for cell in matrix.CELLS if cell.core}
    for kind in ("sanity", "units"):
        assert (kind, "3.11", matrix.OLDEST_CORE) in pairs
        assert {(kind, "3.12", matrix.NEWEST_CORE), (kind, "3.13", matrix.NEWEST_CORE)} <= pairs
    # A target's logic: with Ansible from 3.11 on, without it below.
    assert {cell.python for cell in matrix.CELLS if cell.kind in ("units", "target")} == set(matrix.TARGETS)
    assert matrix.TARGETS == ("3.9", "3.10", "3.11", "3.12", "3.13")


def test_the_oldest_ansible_is_the_one_that_the_collection_asks_for() -> None:
    asked = (pythons.ROOT / "meta" / "runtime.yml").read_text("utf-8")
    assert f'requires_ansible: ">={matrix.OLDEST_CORE.partition("==")[2].rpartition(".")[0]}.0"' in asked


def test_an_interpreter_is_one_that_runs_as_that_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / f"python{HERE}"
    stub.write_text("#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pythons.find(HERE) is None
    real = tmp_path / "uv" / f"cpython-{HERE}.1-linux" / "bin"
    real.mkdir(parents=True)
    (real / f"python{HERE}").symlink_to(Path(sys.executable).resolve())
    assert pythons.find(HERE) == Path(sys.executable).resolve()
    assert pythons.find("3.1") is None


def test_a_missing_interpreter_is_said_and_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "find", lambda _version: None)
    monkeypatch.setattr(sys, "argv", ["matrix", "target-py3.9"])
    assert matrix.main() == 1
    assert "not run: Python 3.9 is not here" in capsys.readouterr().out


def test_a_pin_stands_in_one_place() -> None:
    (core, pytest_pin) = pythons.pins("ansible-core", "pytest")
    assert core.startswith("ansible-core==2.19.")
    assert pytest_pin.startswith("pytest==")
    assert "#" not in core


def test_the_copy_has_what_git_has_and_is_a_repository(tmp_path: Path) -> None:
    collection = tree.copy(tmp_path / "copy")
    assert collection.parts[-3:] == ("ansible_collections", "llmfleet", "sglang")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=collection, check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()
    assert {"galaxy.yml", "tests/unit/matrix/test_matrix.py"} <= set(listed)
    assert not [name for name in listed if name.startswith((".venv/", ".collections/", ".cache/", "build/"))]
    assert (collection / ".collections/ansible_collections/llmfleet/sglang").resolve() == collection.resolve()


def test_pip_is_installed_from_the_wheel_beside_the_script(tmp_path: Path) -> None:
    """The stand-in for get-pip.py: with a pip that says how it was called."""
    script = tmp_path / "get_pip_24_2.py"
    script.write_text(Path(get_pip.__file__).read_text("utf-8"))
    with zipfile.ZipFile(tmp_path / "pip-24.2-py3-none-any.whl", "w") as wheel:
        for package in ("pip", "pip/_internal", "pip/_internal/cli"):
            wheel.writestr(f"{package}/__init__.py", "")
        wheel.writestr("pip/_internal/cli/main.py", "def main(words):\n    print(*words)\n    return 3\n")
    words = ["--disable-pip-version-check", "pip==24.2", "--no-setuptools", "--no-wheel"]
    done = subprocess.run(
        [sys.executable, "-S", str(script), *words], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, "install --disable-pip-version-check pip==24.2\n"), done.stderr


def test_a_path_has_the_asked_interpreters_and_no_other_environment(tmp_path: Path) -> None:
    path = tree.path_of(tmp_path / "bin", tmp_path / "venv" / "bin", [Path(sys.executable).resolve()] * 2)
    assert path.split(os.pathsep)[:2] == [str(tmp_path / "venv" / "bin"), str(tmp_path / "bin")]
    assert [link.resolve() for link in (tmp_path / "bin").iterdir()] == [Path(sys.executable).resolve()]


def test_the_targets_side_is_tested_without_ansible() -> None:
    tests = sorted((pythons.ROOT / "tests" / "unit").rglob("test_*.py"))
    kept = [path for path in tests if not target_side.needs_ansible(path)]
    assert len(kept) > 60
    names = {str(path.relative_to(pythons.ROOT / "tests" / "unit")) for path in kept}
    assert {"source/test_gate.py", "systemd/test_quote.py"} & names == {"source/test_gate.py"}
    # A helper's import counts: stage.py starts ansible-playbook.
    assert not [path for path in kept if "tests.unit.rollout.stage" in set(target_side.imports(path))]
