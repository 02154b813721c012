# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that ends with the run that it belongs to. Private to the collection.

Ansible runs each task in a forked worker with a session of its own. Where the main process is killed, or hung up on,
nobody tells the worker: it goes on reading what the module answers, and the module sees somebody who waits for it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

EVERY = 1.0


def end_with_the_run(every: float = EVERY) -> None:
    """Have this worker killed within `every` seconds of its main process's end, also of one that was before.

    A process that is no worker is left alone.
    """
    main = multiprocessing.parent_process()
    if main is None or main.pid is None:
        return
    threading.Thread(target=_watch, args=(main.pid, every), daemon=True, name="llmfleet-run").start()


def _watch(main: int, every: float) -> None:
    """Wait until this process was given to another parent. Without the worker, its ssh client hangs up on the host."""
    while os.getppid() == main:
        time.sleep(every)
    os.kill(os.getpid(), signal.SIGKILL)
