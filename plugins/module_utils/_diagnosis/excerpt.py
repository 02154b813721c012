# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a log a message shows: the last exception, a few lines around it, and how to see all. PRIVATE.

An engine prints its traceback once for each process, and a playbook prints a message more than once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CONTEXT = 10
LONGEST_LINE = 400
# The line that ends a traceback, behind the time that the engine may put before it.
_EXCEPTION = re.compile(
    r"^(?:\[[^\]]*\] ?)?(?:[A-Za-z_]\w*\.)*"
    r"(?:Exception|[A-Z]\w*(?:Error|Exception|Expired|Exit|Interrupt|Warning|Failure))(?:: |$)"
)


def last_exception(lines: Sequence[str]) -> str:
    """The last line of a log that ends a traceback; "" when there is none."""
    return next((line.strip() for line in reversed(lines) if _EXCEPTION.match(line.strip())), "")


def excerpt(lines: Sequence[str]) -> list[str]:
    """At most ten lines: those that lead to the last exception, else the last ones; each cut to what can be read."""
    found = last_exception(lines)
    ends = [number for number, line in enumerate(lines) if found and line.strip() == found]
    end = ends[-1] + 1 if ends else len(lines)
    return [line[:LONGEST_LINE] for line in lines[max(0, end - CONTEXT) : end]]


def show_all(service: str) -> str:
    """The command that shows the whole log."""
    return f"journalctl --unit={service} --lines=500 --no-pager"
