# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: print how far the module `benchmark` is while it runs, and end with the run that asked for it."""

from __future__ import annotations

from typing import Any

from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _parent
from ansible_collections.llmfleet.sglang.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """Runs the module of the same name; see the base class."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result."""
        # Else a benchmark would go on beside that of the run which takes over the host from a dead one.
        _parent.end_with_the_run()
        return super().run(tmp, task_vars)
