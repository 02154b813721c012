# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: print how far the module `benchmark` is while it runs."""

from __future__ import annotations

from ansible_collections.llmfleet.sglang.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """Runs the module of the same name; see the base class."""
