# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what building takes: a first release with nothing cached, a second with another patch set only, a rerun.

    python3 benchmarks/build.py [NODE [INVENTORY]]      on a demo fleet that is up (make fleet)

The builds go to folders of their own on the node and are removed in the end; what serves there is not touched. Bytes
are what the disk lost, uv's cache included, for each link mode. "seconds" is the wall time with Ansible's own on the
controller; "remote" is the time that the modules ran on the node, from the start of each one's Python to its end, as a
wrapper around that Python keeps it, and "CPU" what they used of the processors. The load average says what else the
machine was doing: builds give way to it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ROOT, CACHE, CLOCK = (f"/srv/llmfleet-benchmark-build{end}" for end in ("", "-cache", "-clock"))
MODES = ("symlink", "hardlink")
# A Python that keeps how long it ran; the log is open to each user that modules run as.
WRAPPER = f"""#!/bin/bash
began=$EPOCHREALTIME
/usr/bin/python3 "$@"
status=$?
{{ echo "$began $EPOCHREALTIME"; times; }} >> {CLOCK}/log
exit $status
"""


@dataclass(frozen=True)
class Figure:
    """What one build took: seconds, those of its modules on the node, bytes that the disk lost, changed tasks."""

    seconds: float
    remote: list[tuple[float, float]]
    size: int
    changed: int
    load: float


class Node:
    """One node of the demo fleet."""

    def __init__(self, name: str) -> None:
        self.name = name

    def sh(self, script: str) -> str:
        """Run a script as root on the node and return what it printed."""
        words = [sys.executable, "-m", "fleet", "ssh", self.name, "sudo", "bash", "-s"]
        return subprocess.run(
            words, cwd=PROJECT, input=script, check=True, capture_output=True, text=True, timeout=600
        ).stdout

    def wipe(self) -> None:
        """Remove what this script made."""
        self.sh(f"rm -rf {ROOT} {CACHE} {CLOCK}")

    def taken(self) -> int:
        """Bytes that the builds and the cache take together; what is linked twice counts once."""
        listed = self.sh(f"du --summarize --total --block-size=1 {ROOT} {CACHE} 2>/dev/null || true")
        return int((re.findall(r"^(\d+)\ttotal$", listed, re.MULTILINE) or ["0"])[0])

    def clock(self) -> list[tuple[float, float]]:
        """The seconds that each module has run since the last time, in order: by the clock, and of the processors."""
        lines = iter(self.sh(f"cat {CLOCK}/log; : > {CLOCK}/log").splitlines())
        found = []
        for times in lines:
            began, end = (float(word) for word in times.split())
            next(lines)  # the wrapper's own
            used = [60 * int(minutes) + float(rest) for minutes, rest in re.findall(r"(\d+)m([\d.]+)s", next(lines))]
            found.append((end - began, sum(used)))
        return found

    def build(self, link_mode: str, patch_sets: list[str], inventory: str) -> Figure:
        """Build once."""
        variables = {
            "sglang_profile": "qwen3_5_397b_nvfp4",
            "sglang_root": ROOT,
            "sglang_cache": CACHE,
            "sglang_link_mode": link_mode,
            "sglang_patch_sets": patch_sets,
            "ansible_python_interpreter": f"{CLOCK}/python3",
        }
        play = [str(PROJECT / "tests" / "faults" / "build.yml"), "-i", inventory]
        before = self.taken()
        self.sh(f"mkdir -p {CLOCK}; cat > {CLOCK}/python3 <<'END'\n{WRAPPER}END\nchmod 755 {CLOCK}/python3\n")
        self.sh(f": > {CLOCK}/log; chmod 666 {CLOCK}/log")
        began = time.monotonic()
        done = subprocess.run(
            ["ansible-playbook", *play, f"--limit={self.name}", "-e", json.dumps(variables)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        if done.returncode:
            raise SystemExit(done.stdout[-3000:])
        changed = re.findall(r"changed=(\d+)", done.stdout)[-1]
        return Figure(seconds, self.clock(), self.taken() - before, int(changed), os.getloadavg()[0])

    def phases(self) -> dict[str, float]:
        """The seconds of each phase of the last build, as the node keeps them."""
        kept: dict[str, float] = json.loads(self.sh(f"cat {ROOT}/releases/durations.json"))["seconds"]
        return kept


def main() -> None:
    """Measure and print."""
    node = Node(sys.argv[1] if len(sys.argv) > 1 else "node2")
    inventory = sys.argv[2] if len(sys.argv) > 2 else str(PROJECT / "inventories" / "demo")
    print(f"{'':<28}{'seconds':>9}{'remote':>9}{'CPU':>9}{'GB':>8}{'changed':>9}{'load':>7}")
    for mode in MODES:
        node.wipe()
        try:
            for name, patch_sets in (("first release", []), ("another patch set", ["sm120"]), ("rerun", ["sm120"])):
                one = node.build(mode, patch_sets, inventory)
                remote, used = (sum(times) for times in zip(*one.remote))
                print(
                    f"{f'{mode}: {name}':<28}{one.seconds:>9.1f}{remote:>9.2f}{used:>9.2f}{one.size / 1e9:>8.2f}"
                    f"{one.changed:>9}{one.load:>7.1f}",
                    flush=True,
                )
                if name == "rerun":
                    print("  modules: " + ", ".join(f"{seconds:.2f} s" for seconds, _used in one.remote))
                else:
                    print("  " + ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in node.phases().items()))
        finally:
            node.wipe()


if __name__ == "__main__":
    main()
