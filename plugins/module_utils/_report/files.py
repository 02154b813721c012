# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a report goes on the controller, and under which names. Private to the collection."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import page

DEFAULT = "reports"
LATEST = "latest"
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


def fleet_name(sources: Sequence[str]) -> str:
    """Return what an inventory is called: its folder's name, or its file's without the ending, or that of its folder.

    sources: the inventories of a run, as Ansible names them; text instead of a path is a list of hosts.
    """
    for source in sources:
        path = Path(source)
        if "," in source or not path.name:
            continue
        named_for_all = path.stem in ("hosts", "inventory") and path.suffix
        return plain(path.parent.name if named_for_all and path.parent.name else path.stem)
    return "fleet"


def plain(text: str) -> str:
    """Return a text as a part of a file's name."""
    return _STRANGE.sub("-", text).strip("-.") or "fleet"


def folder(wanted: str, start: Path) -> Path:
    """Return the folder that sglang_report_to means. start: where the playbook was started."""
    path = Path(os.path.expanduser(wanted))
    return path if path.is_absolute() else start / path


def hindrance(place: Path, sources: Iterable[str]) -> str:
    """Say why nothing can be written there, before anything is; "" when nothing is known to be in the way.

    sources: the inventories of a run. Ansible would read a report that lies in one of these folders as an inventory.
    """
    for source in sources:
        root = Path(source)
        if root.is_dir() and (place == root or root in place.parents):
            return f"{place} lies in the inventory {root}, where Ansible would read the reports as inventories"
    there = next(one for one in (place, *place.parents) if one.exists())
    if not there.is_dir():
        return f"{there} is no folder"
    try:  # not by its mode: root is told yes by that everywhere, also in /proc and on a read-only disk
        os.rmdir(tempfile.mkdtemp(dir=there, prefix=".report-"))
    except OSError as error:
        return f"{there} cannot be written to ({error.strerror or error})"
    return ""


def names(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the page and of the JSON: fleet, instance, kind and time, so that they sort."""
    instances = report["instances"]
    instance = instances[0] if len(instances) == 1 else f"{len(instances)}-instances"
    at = datetime.fromisoformat(report["made_at"]).strftime("%Y%m%dT%H%M%SZ")
    name = "-".join(plain(one) for one in (report["fleet"], instance, report["kind"], at))
    return f"{name}.html", f"{name}.json"


def write(place: Path, report: Mapping[str, Any]) -> list[Path]:
    """Write page and JSON, and both again as the latest; return the paths, the page's first. Raises OSError."""
    place.mkdir(parents=True, exist_ok=True)
    texts = {".html": page.page(report), ".json": json.dumps(report, indent=2, ensure_ascii=False) + "\n"}
    written = []
    for name in names(report):
        text = texts[Path(name).suffix]
        for each in (name, f"{LATEST}{Path(name).suffix}"):
            put(place / each, text.encode(), durable=False)  # a browser that shows the latest never sees half of it
        written.append(place / name)
    return written
