# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmarks of cut-over and rollback share: a client that asks a node all the time, and the node's own clock.

A node's monotonic clock is this machine's, so moments of both can be compared. The inventory is inventories/demo, or
what LLMFLEET_BENCHMARK_INVENTORY names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fleet import ask

RIGHT = "Paris"
ask.INVENTORY = os.environ.get("LLMFLEET_BENCHMARK_INVENTORY", ask.INVENTORY)
# CPU seconds of everything in a unit's control group, and of what ended in it.
CPU = """
import os, re, sys
ticks = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if sys.argv[1] + ".service" in open(f"/proc/{pid}/cgroup").read():
            ticks += sum(int(word) for word in open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:15])
    except OSError:
        pass
print(ticks / os.sysconf("SC_CLK_TCK"))
"""


@dataclass
class Client:
    """Asks one node all the time and remembers when which model answered rightly, in seconds of the monotonic clock."""

    variables: dict[str, Any]
    answers: list[tuple[float, str]] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, node: str) -> Client:
        """A client of a node, at work."""
        client = cls(ask.inventory()[node])
        threading.Thread(target=client.run, daemon=True).start()
        return client

    def run(self) -> None:
        """Ask until told to end."""
        while not self.done.wait(0.05):
            try:
                model, answer = ask.ask(self.variables, ask.QUESTION)
            except (OSError, ValueError, KeyError, IndexError):
                continue
            if RIGHT in (answer or ""):
                self.answers.append((time.monotonic(), model))

    def first(self, since: float, timeout: float = 600) -> float:
        """Wait for the first right answer after `since`, in seconds of the monotonic clock."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for moment, _model in self.answers:
                if moment > since:
                    return moment
            time.sleep(0.05)
        raise SystemExit("no right answer came")


def on_node(node: str, *words: str, stdin: str | None = None) -> str:
    """Run a command on a node; what it printed."""
    argv = [sys.executable, "-m", "fleet", "ssh", node, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, input=stdin).stdout


def moment(node: str, service: str, name: str) -> float:
    """A moment of a unit (…TimestampMonotonic), in seconds of the monotonic clock."""
    shown = on_node(node, "systemctl", "show", "--value", f"--property={name}TimestampMonotonic", service)
    return int(shown.strip() or 0) / 1e6


def cpu_seconds(node: str, service: str) -> float:
    """CPU seconds that the processes of a unit have taken so far."""
    return float(on_node(node, "sudo", "python3", "-", service, stdin=CPU))


@dataclass(frozen=True)
class Start:
    """One start of the engine: wall seconds to its first right answer, CPU seconds of its processes by then."""

    seconds: float
    cpu: float


def start(node: str, service: str, client: Client) -> Start:
    """Stop the service, then start it and wait for its first right answer."""
    on_node(node, "sudo", "systemctl", "stop", service)
    since = time.monotonic()
    on_node(node, "sudo", "systemctl", "start", "--no-block", service)
    return Start(client.first(since) - since, cpu_seconds(node, service))


def deploy_words(node: str) -> list[str]:
    """The command that deploys to one node."""
    return ["ansible-playbook", "playbooks/deploy_qwen.yml", "-i", ask.INVENTORY, "--limit", node]


def machine() -> str:
    """What else this machine does: its cores, and how many processes wanted one over the last one and five minutes."""
    one, five, _fifteen = os.getloadavg()
    return f"{os.cpu_count()} cores, load average {one:.1f} (1 min), {five:.1f} (5 min)"
