# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: tell the module `host_lock` who asks, and take over what a dead run of this controller left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.machines import machine
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _owner

display = Display()


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the module of the same name, a second time if the first found the lock of a run that has died."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the module's result."""
        super().run(tmp, task_vars)
        # Tasks run in children of the one process that is the run.
        owner = {**_owner.this_run(os.getppid()), "address": self._address(task_vars or {})}
        arguments = {**self._task.args, "owner": owner}
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        held = result.get("lock") or {}
        if result.get("failed") and held.get("run") and _owner.has_died(held):
            arguments["broken"] = held["run"]
            result = self._execute_module(module_args=arguments, task_vars=task_vars)
        taken = result.get("took_over")
        if taken:
            host = (task_vars or {}).get("inventory_hostname", "this host")
            did = "would take over" if self._task.check_mode else "took over"
            display.warning(f"{host}: {did} the lock of {taken['owner']} ({taken['reason']}): {result['why']}.")
        return result

    def _address(self, task_vars: Mapping[str, Any]) -> str:
        """How the inventory reaches the host: the same for all its hosts that are one machine."""
        names = ("ansible_host", "ansible_port")
        known = {name: self._templar.template(task_vars[name]) for name in names if name in task_vars}
        return machine(str(task_vars.get("inventory_hostname", "")), known)
