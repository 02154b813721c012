# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files from which units of ours read their API keys, when one goes back to such a unit. Private to the collection.

A key that was taken out of the inventory goes from the host with the cut-over that needs it no more. The snapshot of
that cut-over holds it for the way back, until the next one takes its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Service, Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

_LOADED = re.compile(rb"^LoadCredential=[^:\n]+:(/.+)$", re.MULTILINE)


def of(files: UnitFiles) -> list[Path]:
    """Return the files without which a unit of ours does not start."""
    content = files.unit.content if files.ours and files.unit else b""
    return [Path(os.fsdecode(one)) for one in _LOADED.findall(content)]


def gone(services: Iterable[Service], kept: Iterable[Snapshot]) -> tuple[tuple[Path, File], ...]:
    """Return the files that are not there any more and that services which shall serve need, from these snapshots.

    Raises UnitError if none of them holds such a file.
    """
    held = {path: file for one in kept for path, file in one.others if file is not None}
    found = []
    for service in services:
        for path in of(service.files) if service.active else []:
            if path.exists():
                continue
            if path not in held:
                raise UnitError(
                    f"{service.name} would need its API key {path}, which is not there any more: set sglang_api_key "
                    "and deploy it"
                )
            found.append((path, held[path]))
    return tuple(found)
