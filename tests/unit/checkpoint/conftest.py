# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated Hub, the real `hf`, and a place on disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from tests.unit.checkpoint.case import Case
from tests.unit.checkpoint.hub_server import HubServer, small_model

PINS = Path(__file__).with_name("hf-requirements.txt")


@pytest.fixture(scope="session")
def hf() -> Path:
    """The real `hf` at the pinned versions, installed once into the user's cache.

    LLMFLEET_TEST_HF_PYTHON: an interpreter for it, where the tests run on one that is too old for `hf`.
    """
    python = os.environ.get("LLMFLEET_TEST_HF_PYTHON", sys.executable)
    version = sys.version if python == sys.executable else python
    name = hashlib.sha256(PINS.read_bytes() + version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("LLMFLEET_CACHE") or Path.home() / ".cache" / "llmfleet")
    folder = cache / "test-hf" / name
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([python, "-m", "venv", "--clear", str(folder / "venv")], check=True)
            pip = [str(folder / "venv/bin/pip"), "install", "--quiet", "--no-deps", "--requirement", str(PINS)]
            subprocess.run(pip, check=True)
            done.touch()
    return folder / "venv/bin/hf"


@pytest.fixture
def hub() -> t.Iterator[HubServer]:
    """A Hub with a small model."""
    server = HubServer(small_model())
    yield server
    server.close()


@pytest.fixture
def case(tmp_path: Path, hub: HubServer, hf: Path) -> Case:
    """A host's folders, the simulated Hub and the real `hf`."""
    return Case(tmp_path, hub, hf)
