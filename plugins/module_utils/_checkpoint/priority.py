# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading beside a service that serves: the disk is shared. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import contextlib
import os
import subprocess

# ionice's numbers; best-effort at its lowest level.
_CLASSES = {"idle": ["--class", "3"], "best-effort": ["--class", "2", "--classdata", "7"]}


def give_way(io_class: str) -> None:
    """Gives this process, and all that it starts from now on, an I/O class: idle, best-effort, or none for no change.

    A host without `ionice`, or that does not let it, works all the same. The kernel heeds the class only where the
    disk's scheduler knows of it (bfq, mq-deadline).
    """
    if io_class not in _CLASSES:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["ionice", *_CLASSES[io_class], "--pid", str(os.getpid())]
        subprocess.run(command, check=False, capture_output=True, timeout=30)
