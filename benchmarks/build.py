# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what building takes: a first release with nothing cached, a second with another patch set only, a rerun.

    python3 benchmarks/build.py [NODE]      on a demo fleet that is up (make fleet)

The builds go to folders of their own on the node and are removed in the end; what serves there is not touched. Bytes
are what the disk lost, uv's cache included, for each link mode; the wall time holds Ansible's own on the controller.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ROOT, CACHE = "/srv/llmfleet-benchmark", "/srv/llmfleet-benchmark-cache"
MODES = ("symlink", "hardlink")


@dataclass(frozen=True)
class Figure:
    """What one build took: seconds, bytes that the disk lost, tasks that changed something."""

    seconds: float
    size: int
    changed: int


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
        self.sh(f"rm -rf {ROOT} {CACHE}")

    def taken(self) -> int:
        """Bytes that the builds and the cache take together; what is linked twice counts once."""
        listed = self.sh(f"du --summarize --total --block-size=1 {ROOT} {CACHE} 2>/dev/null || true")
        return int((re.findall(r"^(\d+)\ttotal$", listed, re.MULTILINE) or ["0"])[0])

    def build(self, link_mode: str, patch_sets: list[str]) -> Figure:
        """Build once."""
        variables = {
            "sglang_profile": "qwen3_5_397b_nvfp4",
            "sglang_root": ROOT,
            "sglang_cache": CACHE,
            "sglang_link_mode": link_mode,
            "sglang_patch_sets": patch_sets,
        }
        play = [str(PROJECT / "tests" / "faults" / "build.yml"), "-i", str(PROJECT / "inventories" / "demo")]
        before, began = self.taken(), time.monotonic()
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
        return Figure(seconds, self.taken() - before, int(changed))

    def phases(self) -> dict[str, float]:
        """The seconds of each phase of the last build, as the node keeps them."""
        kept: dict[str, float] = json.loads(self.sh(f"cat {ROOT}/releases/durations.json"))["seconds"]
        return kept


def main() -> None:
    """Measure and print."""
    node = Node(sys.argv[1] if len(sys.argv) > 1 else "node2")
    print(f"{'':<26}{'seconds':>9}{'GB':>9}{'changed':>9}")
    for mode in MODES:
        node.wipe()
        try:
            for name, patch_sets in (("first release", []), ("another patch set", ["sm120"]), ("rerun", ["sm120"])):
                figure = node.build(mode, patch_sets)
                label = f"{mode}: {name}"
                print(f"{label:<26}{figure.seconds:>9.1f}{figure.size / 1e9:>9.2f}{figure.changed:>9}", flush=True)
                if name != "rerun":
                    print("  " + ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in node.phases().items()))
        finally:
            node.wipe()


if __name__ == "__main__":
    main()
