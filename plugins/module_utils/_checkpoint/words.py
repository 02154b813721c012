# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Human words for sizes and times. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import datetime


def size(count: int) -> str:
    """Bytes as a decimal size, the unit of disks and of the Hub's pages: 223000000000 -> "223.00 GB"."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1000
    return f"{value:.2f} TB"


def number(count: int, noun: str) -> str:
    """A count with its noun: 1 file, 2 files."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def now() -> str:
    """The present time in UTC, to the second, ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
