# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interpreter that a release will run on. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import subprocess

_QUESTION = "import platform, sys; print(sys.implementation.name, platform.python_version(), platform.machine())"


class InterpreterError(RuntimeError):
    """The interpreter is not there or does not run."""


def describe(python: str) -> str:
    """Return such as "cpython 3.11.2 x86_64"; it goes into a release's identity. Raises InterpreterError."""
    try:
        done = subprocess.run([python, "-c", _QUESTION], check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise InterpreterError(f"the interpreter {python} does not run on this host: {error}") from error
    return done.stdout.strip()
