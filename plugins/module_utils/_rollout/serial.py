# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of a rollout's batches, carried from a variable into a play's serial. Private to the collection.

A play's serial is templated before there is a host, and sees no variable of the inventory (ansible-core 2.19), only
extra variables and the names of groups. So the sizes travel in the name of a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

DEFAULT = [1, "10%", "100%"]
PREFIX = "sglang_serial_"
_SIZE = re.compile(r"[1-9][0-9]*%?")


def sizes(serial: Any) -> list[int | str]:
    """Return batch sizes as a play takes them. Raises ValueError for what is none."""
    given = serial if isinstance(serial, (list, tuple)) else [serial]
    read: list[int | str] = []
    for one in given:
        text = str(one).strip()
        if isinstance(one, bool) or not _SIZE.fullmatch(text):
            raise ValueError(
                f"sglang_serial has to be batch sizes, each a number of hosts or a percentage, such as {DEFAULT}, "
                f"not {serial!r}"
            )
        read.append(text if text.endswith("%") else int(text))
    if not read:
        raise ValueError(f"sglang_serial is empty: name at least one batch size, such as {DEFAULT}")
    return read


def group(serial: Any) -> str:
    """Return the name of the group that carries these sizes. Raises ValueError."""
    return PREFIX + "_".join(str(one).replace("%", "p") for one in sizes(serial))


def from_groups(groups: Iterable[str]) -> list[int | str]:
    """Return the sizes that a group's name carries; the default where there is none."""
    for name in groups:
        if name.startswith(PREFIX):
            return sizes([one.replace("p", "%") for one in name[len(PREFIX) :].split("_")])
    return sizes(DEFAULT)
