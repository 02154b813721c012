# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes and durations as people read them. Private to the collection."""

from __future__ import annotations


def size(count: float, digits: int = 1) -> str:
    """Return bytes in powers of ten, the units of disks and of the Hub's pages: 999 B, 1.5 kB, 223.0 GB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.{digits}f} {unit}"
        value /= 1000
    return f"{value:.{digits}f} TB"


def duration(seconds: float) -> str:
    """Return seconds roughly: 65 s, 12 min, 3 h 5 min; what is below zero is 0 s."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
