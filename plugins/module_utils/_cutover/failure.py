# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed task said. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTHING_SAID = "a task failed"


def message(result: Mapping[str, Any]) -> str:
    """Return the message of a failed task's result; of a loop, those of the items that failed, each once.

    Ansible itself says of a loop only that one or more items failed.
    """
    failed = [one for one in result.get("results") or [] if isinstance(one, Mapping) and one.get("failed")]
    said = [str(one["msg"]) for one in failed if one.get("msg")]
    return " ".join(dict.fromkeys(said)) or str(result.get("msg") or NOTHING_SAID)
