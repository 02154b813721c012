# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a deployment that changes nothing, beside `ansible -m ping` on the same hosts in the same run.

python3 benchmarks/warm_run.py             on a demo fleet that is deployed (make demo)
"""

from __future__ import annotations

import re
import subprocess
import time

INVENTORY = "inventories/demo"


def timed(*command: str) -> tuple[float, str]:
    """Run a command; return its wall time in seconds and what it printed."""
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - began, done.stdout


def main() -> None:
    """Measure and print."""
    timed("ansible", "sglang", "-i", INVENTORY, "-m", "ansible.builtin.ping")  # opens the connections
    ping, _said = timed("ansible", "sglang", "-i", INVENTORY, "-m", "ansible.builtin.ping")
    run, said = timed("ansible-playbook", "playbooks/deploy_qwen.yml", "-i", INVENTORY)
    recap = {host: dict(re.findall(r"(\w+)=(\d+)", line)) for host, line in re.findall(r"(?m)^(\w+) +: (ok=.*)$", said)}
    if any(counts["changed"] != "0" for counts in recap.values()):
        raise SystemExit(f"this run changed something, so it measures nothing:\n{said[-2000:]}")
    _seconds, loud = timed("ansible-playbook", "playbooks/deploy_qwen.yml", "-i", INVENTORY, "-vvv")
    calls = len(re.findall(r"(?m)^<[\d.]+> SSH: EXEC", loud))
    hosts = len(recap)
    steps = sum(int(counts["ok"]) for counts in recap.values())
    print(f"hosts                      {hosts:6d}")
    print(f"steps a host               {steps / hosts:6.1f} (tasks, includes, argument checks)")
    print(f"remote calls a host        {calls / hosts:6.1f} (SSH commands)")
    print(f"a run that changes nothing {run:6.1f} s, {run / hosts:.1f} s a host")
    print(f"ping                       {ping:6.1f} s")
    print(f"run / ping                 {run / ping:6.1f}")


if __name__ == "__main__":
    main()
