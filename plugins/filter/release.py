# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that finds the lock of packages that the hosts of a fleet have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable

# The results that carry a host's lock; the second is looked for once the source was fetched.
_RESULTS = ("sglang_build_release", "sglang_build_lock_here")


def release_lock_of(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the first lock that one of the hosts has; empty where none has one."""
    names = list(hosts)
    for result in _RESULTS:
        for host in names:  # to its end only where no host has one: a look at each host by each would be quadratic
            lock = (hostvars[host].get(result) or {}).get("lock")
            if lock:
                return str(lock)
    return ""


class FilterModule:
    """Filter of llmfleet.sglang about releases."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Map filter names to functions."""
        return {"release_lock_of": release_lock_of}
