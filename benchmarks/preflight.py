# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure preflight: seconds and remote calls a host, beside `ansible -m ping` on the same hosts in the same run.

    python3 benchmarks/preflight.py [HOSTS [INVENTORY]]      on a demo fleet that is up (make fleet)

Wall times, Ansible's own start included: of the playbook, of its module by `ansible -m`, of ping by the same. Medians
of five runs. Nothing is changed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time

PROFILE = "qwen3_5_397b_nvfp4"
REPEATS = 5
PLAY = "playbooks/preflight.yml"
LOOK = {
    "service": "sglang-qwen",
    "listen": {"host": "127.0.0.1", "port": 30000},
    "paths": {"root": "/opt/sglang", "models": "/models", "state": "/var/lib/llmfleet", "cache": "/var/cache/llmfleet"},
    "gpus": {"count": 8, "compute_capability": "12.0", "memory_mib": 97887},
    "launch": {"arguments": {"tp-size": 8, "mem-fraction-static": 0.85}},
    "version": "0.5.23",
}


def timed(*command: str) -> tuple[float, str]:
    """Run a command, which may fail (a finding blocks); return its wall time in seconds and what it printed."""
    began = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    return time.monotonic() - began, done.stdout


def median(*command: str) -> float:
    """The median wall time over the repeats."""
    return statistics.median(timed(*command)[0] for _repeat in range(REPEATS))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="?", default="sglang")
    parser.add_argument("inventory", nargs="?", default="inventories/demo")
    options = parser.parse_args()
    ping = ("ansible", options.hosts, "-i", options.inventory, "-m", "ansible.builtin.ping")
    given = ("-e", f"sglang_profile={PROFILE}", "-e", f"sglang_hosts={options.hosts}")
    play = ("ansible-playbook", PLAY, "-i", options.inventory, *given)
    as_arguments = ("-a", json.dumps(LOOK))
    look = ("ansible", options.hosts, "-i", options.inventory, "-b", "-m", "llmfleet.sglang.preflight", *as_arguments)
    timed(*ping)  # opens the connections
    _seconds, said = timed(*play)
    recap = re.findall(r"(?m)^(\S+) +: ok=\d+ .*unreachable=0", said)
    if not recap or "Print the table" not in said:
        sys.exit(f"preflight did not run:\n{said[-2000:]}")
    _seconds, loud = timed(*play, "-vvv")
    calls = len(re.findall(r"(?m)^<[\d.]+> SSH: EXEC", loud))
    whole, looked, pinged = median(*play), median(*look), median(*ping)
    hosts = len(recap)
    print(f"hosts                    {hosts:6d}")
    print(f"remote calls a host      {calls / hosts:6.1f} (SSH commands)")
    print(f"playbook, all hosts      {whole:6.1f} s")
    print(f"its module alone         {looked:6.1f} s")
    print(f"ping                     {pinged:6.1f} s")


if __name__ == "__main__":
    main()
