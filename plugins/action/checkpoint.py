# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: print how far the module `checkpoint` is while it runs, on each host and on all together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants
from ansible_collections.llmfleet.sglang.plugins.plugin_utils._progress import (
    ProgressAction,
    Watcher,
    display,
    parse,
)
from ansible_collections.llmfleet.sglang.plugins.plugin_utils._together import Board


class ActionModule(ProgressAction):
    """Runs the module of the same name; see the base class."""

    _board: Board | None = None

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module as the base class does, and note for the others that this host has come to its end."""
        result = super().run(tmp, task_vars)
        if self._board:
            self._board.ended()
        if result.get("changed") and result.get("message") and not self._task.no_log:
            host = (task_vars or {}).get("inventory_hostname", "host")
            display.display(f"  [{host}] {result['message']}")
        return result

    def _watcher(self, arguments: dict[str, Any], task_vars: Mapping[str, Any]) -> Watcher | None:
        watcher = super()._watcher(arguments, task_vars)
        if watcher is None:
            return None
        # the playbook's own folder, which Ansible makes and removes
        folder = Path(constants.DEFAULT_LOCAL_TMP) / f"progress-{self._task._uuid}"
        board = self._board = Board(folder, str(task_vars.get("inventory_hostname", "host")))
        read, say = watcher._read, watcher._say

        def read_and_put() -> str:
            answer = read()
            content, _now = parse(answer)
            board.put(content)
            return answer

        def say_and_sum(line: str) -> None:
            say(line)
            fleet = board.line()
            if fleet:
                say(f"  {fleet}")

        watcher._read, watcher._say = read_and_put, say_and_sum
        return watcher
