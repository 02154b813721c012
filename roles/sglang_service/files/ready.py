# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the engine says that it is ready, or until its main process ends: ready.py URL PID.

SGLang tells systemd nothing (no sd_notify up to 0.5.23), so the unit runs this after the start and systemd bounds it.
"""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request


def ready(url: str) -> bool:
    """Ask once: 200 is ready; 503, or no listener yet, is not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def main() -> int:
    """Wait; the exit status is what systemd takes for the start's result."""
    url, pid = sys.argv[1], int(sys.argv[2])
    while os.path.exists(f"/proc/{pid}"):
        if ready(url):
            return 0
        time.sleep(0.25)
    print(f"the engine (process {pid}) ended before it was ready", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
