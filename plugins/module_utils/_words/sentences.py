# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a text ends that stands by itself. Private to the collection."""

from __future__ import annotations


def sentence(words: str) -> str:
    """Return a text with a full stop, if it has no end yet; what has several lines ends as it ends."""
    return words if not words or "\n" in words or words.endswith((".", "!", "?")) else f"{words}."
