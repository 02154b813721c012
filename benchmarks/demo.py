# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure `make demo` from a clean clone: cold (an empty cache), then warm (a new fleet, the cache as it is then).

python3 benchmarks/demo.py                 as root; it ends a fleet that is up and EMPTIES ITS CACHE first
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def demo(checkout: Path) -> tuple[float, str]:
    """Run `make demo` in a checkout; return wall seconds and what it printed."""
    began = time.monotonic()
    done = subprocess.run(
        ["make", "demo"], cwd=checkout, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SystemExit(f"make demo failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return time.monotonic() - began, done.stdout


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="llmfleet-bench-") as folder:
        checkout = Path(folder, "checkout")
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(checkout)], check=True)
        for name, before in (("cold", "clean-cache"), ("warm", "demo-down")):
            subprocess.run(["make", before], cwd=checkout, check=True, capture_output=True)
            seconds, said = demo(checkout)
            print(f"make demo, {name}: {seconds:.0f} s, of which")
            print("\n".join(f"    {line}" for line in said.splitlines() if re.search(r"\d s\b", line)))
        subprocess.run(["make", "demo-down"], cwd=checkout, check=True, capture_output=True)


if __name__ == "__main__":
    main()
