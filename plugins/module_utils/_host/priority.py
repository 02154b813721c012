# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work beside a service that serves: the work gives way. Private to the collection."""

from __future__ import annotations

import contextlib
import os

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner, run

_LOWEST = 19
# ionice's numbers; best-effort at its lowest level.
_CLASSES = {"idle": ["--class", "3"], "best-effort": ["--class", "2", "--classdata", "7"]}


def build_gives_way(start: Runner = run) -> None:
    """Give this process, and all that it starts from now on, the lowest CPU priority and the idle I/O class.

    A host that does not let it, or has no `ionice`, builds all the same.
    """
    with contextlib.suppress(OSError):
        os.nice(_LOWEST - os.nice(0))
    reading_gives_way("idle", start)


def reading_gives_way(io_class: str, start: Runner = run) -> None:
    """Give this process, and all that it starts from now on, an I/O class: idle, best-effort, or none for no change.

    A host without `ionice`, or that does not let it, works all the same. The kernel heeds the class only where the
    disk's scheduler knows of it (bfq, mq-deadline).
    """
    if io_class in _CLASSES:
        start(["ionice", *_CLASSES[io_class], "--pid", str(os.getpid())], 30)
