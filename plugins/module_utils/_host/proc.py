# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes as /proc shows them. PRIVATE to the collection."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

PROC = "/proc"


@dataclass(frozen=True)
class Process:
    """One process. `start`, in clock ticks since boot, and the pid together name it for good."""

    pid: int
    ppid: int
    start: int
    state: str
    command: str
    unit: str

    @property
    def key(self) -> tuple[int, int]:
        return (self.pid, self.start)

    @property
    def gone(self) -> bool:
        """A zombie holds nothing any more: neither memory, nor ports, nor a GPU."""
        return self.state in ("Z", "X")

    def describe(self) -> str:
        return f"pid {self.pid} ({self.command}){', unit ' + self.unit if self.unit else ''}"


def read_process(pid: int, proc: str = PROC) -> Process | None:
    """The process with this pid, or None when there is none (or it went away while being read)."""
    stat = read(f"{proc}/{pid}/stat")
    if ")" not in stat:
        return None
    # The name stands in parentheses and may itself hold blanks and parentheses: the last one ends it.
    head, _paren, tail = stat.rpartition(")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    words = read(f"{proc}/{pid}/cmdline").split("\0")
    command = " ".join(word for word in words if word).strip() or head.partition("(")[2]
    return Process(
        pid=pid,
        ppid=int(fields[1]),
        start=int(fields[19]),
        state=fields[0],
        command=command[:200],
        unit=unit_of_cgroup(read(f"{proc}/{pid}/cgroup")),
    )


def read_processes(proc: str = PROC) -> dict[int, Process]:
    """All processes by pid."""
    found = (read_process(int(name), proc) for name in os.listdir(proc) if name.isdigit())
    return {process.pid: process for process in found if process}


def descendants(roots: Iterable[int], processes: dict[int, Process]) -> set[int]:
    """The pids of `roots` and of everything below them."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.ppid, []).append(process.pid)
    seen: set[int] = set()
    queue = [pid for pid in roots if pid in processes]
    while queue:
        pid = queue.pop()
        if pid not in seen:
            seen.add(pid)
            queue.extend(children.get(pid, ()))
    return seen


def unit_of_cgroup(text: str) -> str:
    """The system unit of a /proc/PID/cgroup text, such as V(sglang-kimi.service), or an empty string.

    The outermost unit counts: what runs inside a container or below a user manager belongs to the host's unit
    that carries it, whatever name it has in there.
    """
    for line in sorted(text.splitlines(), key=_hierarchy):
        path = line.split(":", 2)[-1]
        for part in path.split("/"):
            if part.endswith((".service", ".scope")):
                return _unescape(part)
    return ""


def _hierarchy(line: str) -> int:
    number, _colon, rest = line.partition(":")
    if number == "0":
        return 0
    return 1 if rest.startswith("name=systemd:") else 2


def _unescape(part: str) -> str:
    # systemd puts an underscore before names that the cgroup file system would take for its own files.
    return part[1:] if part.startswith("_") else part


def environment(pid: int, proc: str = PROC) -> dict[str, str]:
    """The environment the process was started with; empty when it cannot be read."""
    pairs = (entry.partition("=") for entry in read(f"{proc}/{pid}/environ").split("\0") if "=" in entry)
    return {name: value for name, _equals, value in pairs}


def read(path: str) -> str:
    """The text of a small file, /proc's above all; empty when it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""
