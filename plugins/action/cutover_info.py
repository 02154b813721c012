# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: tell the module `cutover_info` which run asks, and when."""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _owner


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the module's result."""
        super().run(tmp, task_vars)
        # Tasks run in children of the one process that is the run, by whose name the host's lock was taken.
        run = str(_owner.this_run(os.getppid())["run"])
        arguments = {**self._task.args, "run": run, "asked_at": time.time()}
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        return result
