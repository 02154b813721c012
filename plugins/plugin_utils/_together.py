# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say how far all hosts of a task are together. Private to the collection.

Ansible runs a task for each host in a process of its own. What each reads of its host's progress it leaves in a folder
that is the playbook's alone, and whoever prints a line adds one for the fleet, not more often than every few seconds:

      [5 hosts together] 1.0 TB of 1.1 TB, 2.5 GB/s, 40 s left
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._words.amounts import duration, size
from ansible_collections.llmfleet.sglang.plugins.plugin_utils._progress import SHORTEST_PAUSE


def together(contents: Iterable[Mapping[str, Any]]) -> str:
    """Return the sum of what hosts say of their bytes; an empty text for less than two hosts.

    The time left is that of the slowest host, for the task ends with it.
    """
    rows = [one for one in contents if int(one.get("bytes_total") or 0) > 0]
    if len(rows) < 2:
        return ""
    done, total, rate = (
        sum(int(one.get(name) or 0) for one in rows) for name in ("bytes_done", "bytes_total", "bytes_per_second")
    )
    parts = [f"{size(done)} of {size(total)}"]
    parts += [f"{size(rate)}/s"] if rate else []
    left = [float(one["seconds_left"]) for one in rows if one.get("seconds_left") is not None]
    parts += [f"{duration(max(left))} left"] if left and done < total else []
    return f"[{len(rows)} hosts together] {', '.join(parts)}"


class Board:
    """Where the processes of one task leave what their hosts say. Whatever fails there is silent."""

    def __init__(self, folder: Path, host: str, clock: Any = time.time) -> None:
        self._folder, self._host, self._clock = folder, host, clock

    def put(self, content: Mapping[str, Any]) -> None:
        """Leave what the host says."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._folder / f".{self._host}"
            fresh.write_text(json.dumps(content), encoding="utf-8")
            os.replace(fresh, self._folder / f"{self._host}.json")
        except OSError:
            return

    def ended(self) -> None:
        """The host has all that it was to get."""
        for content in self._contents(f"{self._host}.json"):
            total = content.get("bytes_total")
            self.put({**content, "bytes_done": total, "bytes_per_second": 0, "seconds_left": None})

    def line(self) -> str:
        """Return a line for the fleet; an empty text where one was printed just now, or there is one host alone."""
        text = together(self._contents("*.json"))
        said = self._folder / "said"
        try:
            if text and said.exists() and self._clock() - said.stat().st_mtime < SHORTEST_PAUSE:
                return ""
            if text:
                said.touch()
        except OSError:
            return ""
        return text

    def _contents(self, pattern: str) -> list[dict[str, Any]]:
        found = []
        for path in sorted(self._folder.glob(pattern)):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(content, dict):
                found.append(content)
        return found
