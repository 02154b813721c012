# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Human words for sizes and times. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import datetime

from .._words import amounts


def size(count: int) -> str:
    """Bytes with two digits, for a checkpoint's are compared with what the Hub's pages say: 223.00 GB."""
    return amounts.size(count, 2)


def number(count: int, noun: str) -> str:
    """A count with its noun: 1 file, 2 files."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def now() -> str:
    """The present time in UTC, to the second, ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
