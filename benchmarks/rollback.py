# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long a way back takes after a cut-over that failed, beside one start of the engine on that node.

    python3 benchmarks/rollback.py [NODE]      as root, on a fleet that is up (make fleet)

The node is brought to what the inventory wants; then an engine is deployed that cannot start. The verdict falls when
the playbook begins to go back; the way back ends with the first right answer of what served before, seen by a client
that asks all the time. The engine's start is from `systemctl start` to its first right answer, in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.watching import Client, deploy_words, machine, start
from fleet import ask

SERVICE = "sglang-qwen"
# The engine's parser takes it; the engine refuses it when it has read the model's 2,048 positions.
TOO_LONG = 1_000_000
VERDICT = "TASK [Keep the cause, which a later failure would hide]"


def fail(node: str) -> float:
    """Deploy what cannot start; the moment of the verdict, by the monotonic clock."""
    choices = Path(ask.INVENTORY, "group_vars/sglang/cpu.yml").read_text()
    arguments = {**yaml.safe_load(choices)["sglang_arguments"], "context-length": TOO_LONG}
    words = [*deploy_words(node), "-e", json.dumps({"sglang_arguments": arguments})]
    verdict = 0.0
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as playbook:
        assert playbook.stdout is not None
        for line in playbook.stdout:
            if line.startswith(VERDICT):
                verdict = time.monotonic()
    if not playbook.returncode or not verdict:
        raise SystemExit(f"the deployment did not go back (exit status {playbook.returncode}), so nothing is measured")
    return verdict


def main() -> None:
    """Measure and print."""
    node = sys.argv[1] if len(sys.argv) > 1 else "node1"
    subprocess.run(deploy_words(node), check=True, stdout=subprocess.DEVNULL)
    client = Client.of(node)
    before = machine()
    verdict = fail(node)
    back = client.first(verdict) - verdict
    last = max(moment for moment, _model in client.answers if moment < verdict)
    one = start(node, SERVICE, client)
    client.done.set()

    print(f"verdict to answers    {back:7.1f} s from the verdict to the first right answer of what served before")
    print(f"engine's start        {one.seconds:7.1f} s on the same node, {one.cpu:.1f} s of CPU")
    print(f"back / start          {back / one.seconds:7.2f}")
    print(f"without an answer     {verdict - last + back:7.1f} s in all, the start that failed included")
    print(f"this machine          {before} before; {machine()} after")


if __name__ == "__main__":
    main()
