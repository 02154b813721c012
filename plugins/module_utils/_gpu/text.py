# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How nvidia-smi writes values. PRIVATE to the collection."""

from __future__ import annotations

import re

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> str:
    """The text without the terminal's colour codes, which nvidia-smi prints even into a file."""
    return COLOUR.sub("", text)


def lines(text: str) -> list[str]:
    """Lines without colour codes and outer blanks, empty ones left out."""
    return [line for line in (raw.strip() for raw in plain(text).splitlines()) if line]


def known(text: str) -> str:
    """The value, or an empty text for one of the ways to say that there is none."""
    return "" if text in ("N/A", "Unknown Error") or text.startswith("[") else text


def real(text: str) -> float | None:
    """A number with or without its unit (V(600.00), V(600.00 W)); None where there is none."""
    words = known(text).split()
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def whole(text: str) -> int | None:
    """The same as a whole number."""
    number = real(text)
    return None if number is None else int(number)


def mask(text: str) -> int | None:
    """A bit mask such as V(0x0000000000000004)."""
    try:
        return int(known(text), 16) if known(text) else None
    except ValueError:
        return None
