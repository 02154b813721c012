# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Since when a service was ready that nobody asked. PRIVATE to the collection.

A run that dies after it has stopped what served leaves a service that comes up by itself, and serves, until the next
run asks it: hours later, maybe. The unit's own probe (ExecStartPost, which waits for the engine) says since when.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from pathlib import Path

from .._cutover import times
from .command import Runner
from .systemd import unit_name

# What systemd logs when a start has ended well: SD_MESSAGE_UNIT_STARTED of systemd/sd-messages.h.
STARTED = "39f53479d3a045ac8e11786248231fbf"
LIMIT = 20.0


def ready_since(run: Runner, path: Path | None, service: str, now: float) -> float | None:
    """Return since when a service is ready that came up after an earlier run had stopped what served.

    path: where the times of the cut-over are kept; now and what is returned: seconds since 1970. None where the
    cut-over was begun by the run that asks, where nothing was stopped or something has answered since, and where
    nobody knows.
    """
    try:
        stopped = times.unanswered_since(path) if path and service else None
    except (KeyError, TypeError, ValueError):  # written by hand; the times serve the report alone
        return None
    found = first_ready(run, service, stopped) if stopped is not None else None
    return found if found is not None and found < now else None


def first_ready(run: Runner, name: str, after: float) -> float | None:
    """Return when a unit's own probe first found it ready since `after`; None where that is not known.

    systemd may have started it again since, and the host may have been switched off in between: the journal has the
    first time, and systemd the last one. The start of a unit without a probe proves nothing.
    """
    full = unit_name(name)
    asked = "--property=ExecStartPost,ActiveState,ActiveEnterTimestampMonotonic"
    outcome = run(["systemctl", "show", "--no-pager", asked, "--", full], LIMIT)
    values = {key: value for key, _equals, value in (line.partition("=") for line in outcome.stdout.splitlines())}
    if not outcome.ok or not values.get("ExecStartPost"):
        return None
    found = _logged(run, full, after)
    entered = values.get("ActiveEnterTimestampMonotonic", "")
    if values.get("ActiveState") == "active" and entered.isdigit() and int(entered):
        found.append(time.time() - time.monotonic() + int(entered) / 1e6)
    return min((one for one in found if one >= after), default=None)


def _logged(run: Runner, full: str, after: float) -> list[float]:
    """Return when systemd says to have started a unit; empty where the journal cannot be read."""
    words = ["journalctl", "--no-pager", "--quiet", "--output=json", f"--since=@{math.floor(after)}"]
    outcome = run([*words, "_PID=1", f"UNIT={full}", f"MESSAGE_ID={STARTED}"], LIMIT)
    found = []
    for line in outcome.stdout.splitlines() if outcome.ok else []:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a line that a power cut tore
            row = json.loads(line)
            if row.get("JOB_RESULT", "done") == "done":
                found.append(int(row["__REALTIME_TIMESTAMP"]) / 1e6)
    return found
