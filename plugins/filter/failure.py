# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that says why a task failed; the logic is in module_utils/_cutover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import failure


def failure_message(result: Mapping[str, Any]) -> str:
    """Return what a failed task said, or the items of its loop that failed."""
    return failure.message(result)


class FilterModule:
    """Filter of llmfleet.sglang about failed tasks."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {"failure_message": failure_message}
