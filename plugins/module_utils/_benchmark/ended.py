# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the service ended while it was measured, and what of: by the same causes as a failed start. Private.

bench_serving says only that requests failed, or that a server was not ready.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis import excerpt
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import UNKNOWN, Cause, diagnose
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner

LINES_TO_DIAGNOSE = 5000
# An engine of which a part has died takes a while to end as a whole: requests fail before systemd sees anything.
PATIENCE = 15.0
EVERY = 1.0


@dataclass(frozen=True)
class Clock:
    """Time, in seconds, as the logic reaches it; tests put their own in place."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def why(
    run: Runner, before: systemd.Unit, causes: Sequence[Cause], patience: float = PATIENCE, clock: Clock = Clock()
) -> str:
    """Say that the service died or was started anew since `before`, and what of; "" if the same process still serves.

    patience: seconds in which it may end still. Raises SystemdError.
    """
    after, until = systemd.show(run, before.name), clock.now() + patience
    while same(before, after) and clock.now() < until:
        clock.sleep(EVERY)
        after = systemd.show(run, before.name)
    if same(before, after):
        return ""
    log = systemd.journal(run, before, LINES_TO_DIAGNOSE, before.started)
    found = diagnose(causes, log)
    last = excerpt.last_exception(log)[: excerpt.LONGEST_LINE]
    cause = found.describe() if found else f"{UNKNOWN} Its last exception: {last}" if last else UNKNOWN
    shown = ["From its journal:", *(f"  {line}" for line in excerpt.excerpt(log))] if log else []
    return "\n".join([f"{_told(before, after)} {cause}", *shown, f"All of it: {excerpt.show_all(before.name)}"])


def same(before: systemd.Unit, after: systemd.Unit) -> bool:
    """Tell whether it is the same process still."""
    return after.active == "active" and after.main_pid == before.main_pid


def _told(before: systemd.Unit, after: systemd.Unit) -> str:
    if after.active == "active":
        return f"{before.name} was restarted while it was measured (process {before.main_pid}, now {after.main_pid})."
    # Of what is about to be started again, this is of the process that ended.
    of = f" (result {after.result}, status {after.exit_status})" if after.result not in ("", "success") else ""
    now = "systemd starts it again" if after.active == "activating" else f"it is {after.active} now"
    return f"{before.name} died while it was measured{of}, and {now}."
