# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who works on a host, and whether it is out of the load balancer by our doing. Private to the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._words import amounts


def under_way(state: Path, now: float) -> dict[str, Any]:
    """Return the lock, None when there is none, and which instances are marked as drained. now: by the host's clock.

    Of the lock: owner, reason, run, for how many seconds it has been held and still holds (negative: expired), and a
    sentence; of one that cannot be read the sentence alone.
    """
    names = sorted(path.parent.name for path in state.glob("*/drained.json"))
    drained = {"drained": bool(names), "drained_instances": names}
    try:
        found = lock.read(state / "lock.json")
    except (OSError, lock.LockError) as error:
        return {"lock": {"text": f"{error}."}, **drained}
    return {"lock": _told(found, now) if found else None, **drained}


def _told(found: lock.Lock, now: float) -> dict[str, Any]:
    left = found.expires_at - now
    end = f"expires in {amounts.duration(left)}" if left > 0 else "has expired"
    since = amounts.duration(now - found.taken_at)
    return {
        "owner": found.owner,
        "reason": found.reason,
        "run": found.run,
        "held_seconds": int(now - found.taken_at),
        "left_seconds": int(left),
        "text": f"{found.owner} works on it since {since} ({found.reason}); the lock {end}.",
    }
