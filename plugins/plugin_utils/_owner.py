# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run this is, and whether another run of this controller has died. Private to the collection."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def controller_id(etc: Path = Path("/etc"), proc: Path = Path("/proc")) -> str:
    """Return what names this controller: a machine, and on it the container, for processes have numbers in each."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append((etc / "machine-id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink(proc / "self" / "ns" / "pid"))
    # machine-id(5): it is not to be told to others as it is.
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def process_start(pid: int, proc: Path = Path("/proc")) -> str:
    """Return when a process was started, in ticks since boot and the boot's identifier; "" when there is none such."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{fields[19]}@{boot}"


def this_run(pid: int) -> dict[str, Any]:
    """Return the owner of a lock: the run whose main process is `pid`."""
    controller, start = controller_id(), process_start(pid)
    name = hashlib.sha256(f"{controller} {pid} {start}".encode()).hexdigest()[:12]
    try:
        user = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container's user that has no name
        user = f"user {os.getuid()}"
    owner = f"{user}@{socket.gethostname()}"
    return {"run": name, "owner": owner, "controller": controller, "pid": pid, "process_start": start}


def has_died(lock: Mapping[str, Any], proc: Path = Path("/proc")) -> bool:
    """Tell whether the run that holds a lock was one of this controller's, and is no more."""
    if lock.get("controller") != controller_id() or not lock.get("process_start") or not (proc / "self").exists():
        return False
    return process_start(int(lock["pid"]), proc) != str(lock["process_start"])
