# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Python interpreters of this machine, wherever they were put."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find(version: str) -> Path | None:
    """Return the interpreter of a version such as 3.12, or None.

    Looked for on the PATH, among those of pyenv and those of uv. A name alone proves nothing (pyenv's python3.12 on the
    PATH may only say that there is none), so each is run, and says where it really is.
    """
    return next((found for path in _places(version) if (found := _really(path, version))), None)


def _places(version: str) -> Iterator[Path]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        # A virtual environment's is no base for others.
        if folder and not Path(folder, "../pyvenv.cfg").exists():
            yield Path(folder, f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    for installed in (*pyenv.glob(f"versions/{version}.*"), *uv.glob(f"cpython-{version}.*")):
        yield installed / f"bin/python{version}"


def _really(path: Path, version: str) -> Path | None:
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])), sys.executable)"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, check=False, text=True, timeout=30)
    except OSError:
        return None
    said, _space, place = done.stdout.strip().partition(" ")
    return Path(place).resolve() if said == version and place else None


def environment(cache: Path, name: str, python: Path, requirements: list[str]) -> Path:
    """Return the bin folder of a virtual environment with these requirements, made anew when they have changed."""
    folder = cache / name
    wanted = "\n".join([str(python), *requirements])
    stamp = folder / "requirements"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True, timeout=900)
        pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True, timeout=900)
        stamp.write_text(wanted)
    return folder / "bin"


def pins(*names: str) -> list[str]:
    """Return what requirements-dev.txt says of these packages, so that a version stands in one place."""
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    found = {re.split(r"[=<>;]", line)[0].strip(): line.partition("#")[0].strip() for line in lines if line.strip()}
    return [found[name] for name in names]
