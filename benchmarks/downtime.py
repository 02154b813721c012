# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long a node of the demo fleet gives no answer while it is cut over, beside the engine's own cold start.

    python3 benchmarks/downtime.py [NODE]      as root, on a fleet that is up (make fleet)

The node is put back first, so that the old service serves. Downtime is from the last good answer of the old service to
the first right answer of the new one, seen by a client that asks all the time; the cold start is from `systemctl start`
of the new service to its first right answer, on the same node in the same run.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fleet.ask import QUESTION, ask, inventory

RIGHT = "Paris"


@dataclass
class Client:
    """Asks one node all the time and remembers when which model answered rightly, in seconds of the monotonic clock."""

    variables: dict[str, Any]
    answers: list[tuple[float, str]] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until told to end."""
        while not self.done.wait(0.05):
            try:
                model, answer = ask(self.variables, QUESTION)
            except (OSError, ValueError, KeyError, IndexError):
                continue
            if RIGHT in (answer or ""):
                self.answers.append((time.monotonic(), model))

    def first(self, since: float, timeout: float = 300) -> float:
        """Wait for the first right answer after `since`, in seconds of the monotonic clock."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for moment, _model in self.answers:
                if moment > since:
                    return moment
            time.sleep(0.05)
        raise SystemExit("no right answer came")


def on_node(node: str, *words: str) -> None:
    """Run a command on a node."""
    subprocess.run([sys.executable, "-m", "fleet", "ssh", node, *words], check=True, capture_output=True)


def main() -> None:
    """Measure and print."""
    node = sys.argv[1] if len(sys.argv) > 1 else "node1"
    subprocess.run([sys.executable, "-m", "fleet", "reset", node], check=True)
    client = Client(inventory()[node])
    thread = threading.Thread(target=client.run, daemon=True)
    thread.start()
    client.first(since=0.0)
    began = time.monotonic()
    deploy = ["ansible-playbook", "playbooks/deploy_qwen.yml", "-i", "inventories/demo", "--limit", node]
    subprocess.run(deploy, check=True, stdout=subprocess.DEVNULL)
    deployment = time.monotonic() - began
    new = client.answers[-1][1]
    up = next(moment for moment, model in client.answers if model == new)
    down = max(moment for moment, model in client.answers if model != new)

    on_node(node, "sudo", "systemctl", "stop", "sglang-qwen")
    started = time.monotonic()
    on_node(node, "sudo", "systemctl", "start", "sglang-qwen")
    cold = client.first(since=started) - started
    client.done.set()

    downtime = up - down
    print(f"deployment            {deployment:7.1f} s, all of it but the downtime while the old service answers")
    print(f"downtime              {downtime:7.1f} s from the old service's last good answer to the new one's first")
    print(f"engine's cold start   {cold:7.1f} s on the same node, same release")
    print(f"downtime / cold start {downtime / cold:7.2f}")


if __name__ == "__main__":
    main()
