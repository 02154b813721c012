# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building beside a service that serves: the build gives way. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import contextlib
import os
import subprocess

_LOWEST = 19


def give_way() -> None:
    """Give this process, and all that it starts from now on, the lowest CPU priority and the idle I/O class.

    A host that does not let it, or has no `ionice`, builds all the same.
    """
    with contextlib.suppress(OSError):
        os.nice(_LOWEST - os.nice(0))
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["ionice", "--class", "idle", "--pid", str(os.getpid())]
        subprocess.run(command, check=False, capture_output=True, timeout=30)
