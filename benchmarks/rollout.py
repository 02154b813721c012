# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the requests that a fleet behind a real HAProxy loses under steady load, while it is rolled out and drained.

    python3 benchmarks/rollout.py [REQUESTS PER SECOND]      as root, on a demo fleet that is deployed (make demo)

First a full rollout: every host gets a new engine (another variable in its environment), the canary, then the rest.
Then one whose canary cannot start and goes back. Lost is a request without a right answer. Needs HAProxy
(`apt-get install haproxy`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.traffic import HAProxy, clients, haproxy
from benchmarks.watching import machine
from fleet import ask

MODEL = "qwen3.5-397b-a17b"
# The engine's parser takes it; the engine refuses it when it has read the model's 2,048 positions.
TOO_LONG = 1_000_000


def choices() -> dict[str, Any]:
    """What the inventory says of a machine without a GPU."""
    text = Path(ask.INVENTORY, "group_vars/sglang/cpu.yml").read_text()
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def rollout(balancer: HAProxy, name: str, rate: float, variables: dict[str, Any], *, fails: bool) -> None:
    """Roll out under load and print what the clients saw."""
    words = ["ansible-playbook", "playbooks/deploy_qwen.yml", "-i", ask.INVENTORY]
    asking = clients(balancer, MODEL, rate)
    began = time.monotonic()
    with asking.at_work():
        time.sleep(10)  # load before, and after
        done = subprocess.run(
            [*words, "-e", json.dumps({**balancer.hooks, **variables})], capture_output=True, text=True, check=False
        )
        time.sleep(10)
    if bool(done.returncode) is not fails:
        raise SystemExit(f"the rollout ended with exit status {done.returncode}:\n{done.stdout[-4000:]}")
    states = re.findall(r"(?m)^\s+(\w+)  ([a-z ]+?)  +\S", done.stdout.rpartition("TASK [Say what serves]")[2])
    print(f"{name}")
    print(f"  seconds             {time.monotonic() - began:7.0f}")
    found = ", ".join(f"{host} {state}" for host, state in states if host in balancer.hosts)
    print(f"  hosts               {found}")
    print(f"  requests            {len(asking.answers):7d}")
    print(f"  lost                {len(asking.lost):7d}")
    print(f"  longest gap         {asking.longest_gap:7.1f} s between two right answers, of any client")
    print(f"  slowest answer      {asking.slowest:7.1f} s")
    print(f"  left out            {', '.join(balancer.out()) or 'none':>7}", flush=True)
    for one in asking.lost[:10]:
        print(f"  lost at {one.sent - began:.0f} s after {one.ended - one.sent:.1f} s: {one.wrong}")


def main() -> None:
    """Measure and print."""
    rate = float(sys.argv[1]) if len(sys.argv) > 1 else 1.5
    before, own = machine(), choices()
    environment = {**own["sglang_environment"], "LLMFLEET_BENCHMARK": uuid.uuid4().hex}
    arguments = {**own["sglang_arguments"], "context-length": TOO_LONG}
    with haproxy() as balancer:
        rollout(balancer, "full rollout", rate, {"sglang_environment": environment}, fails=False)
        failing = {"sglang_environment": environment, "sglang_arguments": arguments}
        rollout(balancer, "failing canary", rate, failing, fails=True)
    print(f"load                  {rate:g} requests a second")
    print(f"this machine          {before} before; {machine()} after")


if __name__ == "__main__":
    main()
