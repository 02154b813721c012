# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long a node of the demo fleet gives no answer while it is cut over, beside the engine's own cold start.

    python3 benchmarks/downtime.py [NODE]      as root, on a fleet that is up (make fleet)

The node is put back first, so that the old service serves. Downtime is from the last good answer of the old service to
the first right answer of the new one, seen by a client that asks all the time; the cold start is from `systemctl start`
of the new service to its first right answer, on the same node in the same run. Where the rest goes is told by the
node's own clock: until the old unit was down, from there to the new process, from there to the answer.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.watching import Client, cpu_seconds, deploy_words, machine, moment, start

OLD, NEW = "sglang-kimi", "sglang-qwen"


def main() -> None:
    """Measure and print."""
    node = sys.argv[1] if len(sys.argv) > 1 else "node1"
    subprocess.run([sys.executable, "-m", "fleet", "reset", node], check=True)
    client = Client.of(node)
    client.first(since=0.0)
    before = machine()
    began = time.monotonic()
    subprocess.run(deploy_words(node), check=True, stdout=subprocess.DEVNULL)
    deployment = time.monotonic() - began
    new = client.answers[-1][1]
    up = next(moment for moment, model in client.answers if model == new)
    down = max(moment for moment, model in client.answers if model != new)
    gone, begun = moment(node, OLD, "InactiveEnter"), moment(node, NEW, "ExecMainStart")
    cpu = cpu_seconds(node, NEW)

    cold = start(node, NEW, client)
    client.done.set()
    after = machine()

    downtime = up - down
    print(f"deployment            {deployment:7.1f} s, all of it but the downtime while the old service answers")
    print(f"downtime              {downtime:7.1f} s from the old service's last good answer to the new one's first")
    print(f"  until it was down   {gone - down:7.1f} s")
    print(f"  proofs and start    {begun - gone:7.1f} s from there to the new main process")
    print(f"  first start         {up - begun:7.1f} s, {cpu:.1f} s of CPU by the end of the deployment")
    print(f"engine's cold start   {cold.seconds:7.1f} s on the same node, same release, {cold.cpu:.1f} s of CPU")
    print(f"downtime / cold start {downtime / cold.seconds:7.2f}")
    print(f"this machine          {before} before; {after} after")


if __name__ == "__main__":
    main()
