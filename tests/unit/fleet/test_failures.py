# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said last of a run that failed names the tests, with pytest's own report as the material."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fleet.failures import failures

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no such node")

def test_right(): pass
def test_wrong(): assert 1 == 2, "one is\\nnot two"
def test_unable(broken): pass
"""


def test_each_failure_and_error_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "test_it.py"]
    # Not the plugins of the pytest that runs this: ansible-test's know no test outside a collection.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    assert subprocess.run(words, cwd=tmp_path, env=env, check=False, capture_output=True, timeout=60).returncode == 1
    wrong, unable = failures((tmp_path / "report.xml").read_text())
    assert wrong.startswith("FAILURE test_it::test_wrong: AssertionError: one is not two")
    assert unable.startswith("ERROR test_it::test_unable:") and "no such node" in unable
