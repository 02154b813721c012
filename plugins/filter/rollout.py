# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that judge a batch of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def not_serving(batch: list[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each host of the batch whose verdict is not that it serves.

    A host that became unreachable has the verdict that it was given before its cut-over began.
    """
    verdicts = {host: hostvars[host].get("sglang_verdict") or {} for host in batch}
    return [
        f"{host}: {verdict.get('message', 'the cut-over did not begin')}"
        for host, verdict in verdicts.items()
        if not verdict.get("serves")
    ]


class FilterModule:
    """Filters of llmfleet.sglang about rollouts."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {"not_serving": not_serving}
