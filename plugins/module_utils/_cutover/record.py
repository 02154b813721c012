# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host record: what an instance last answered as, readable for everybody. Private to the collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import answered
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitFiles

NAME = "record.json"


def text(content: dict[str, Any]) -> str:
    """Return the file's text."""
    return json.dumps(content, indent=4, sort_keys=True) + "\n"


def read(path: Path) -> str:
    """Return the text that is there, "" when there is none."""
    found = File.read(path)
    return found.content.decode(errors="replace") if found else ""


def write(path: Path, wanted: str) -> bool:
    """Write the file, if it is not so already; tell whether it was written."""
    return File(wanted.encode(), 0o644).write(path)


def renew(state: Path, files: UnitFiles) -> bool:
    """Let the record of the instance that comes back say again what it said when this very unit answered.

    state: folder of the host records. A foreign unit has no record.
    """
    entry = answered.of_unit(state, files)
    return entry is not None and write(state / str(entry.record["instance"]) / NAME, text(entry.record))
