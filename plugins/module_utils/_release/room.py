# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a release has room on the disk, before anything of it is made. Private to the collection."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import read_record

# Over what a release of the same packages took: its tree may be larger, and a file system fills up badly.
_MARGIN = 1.2
_LEAST = 500_000_000


@dataclass(frozen=True)
class Need:
    """Bytes that a release takes, and how that is known."""

    size: int
    why: str


def own_bytes(folder: Path) -> int:
    """Return the bytes on the disk that would be free without the folder: not what has a hard link elsewhere."""
    total = 0
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(parent, name))
            if name in folders or status.st_nlink == 1:
                total += status.st_blocks * 512
    return total


def needed(releases: Path, inputs: Mapping[str, Any], first_bytes: int, link_mode: str) -> Need:
    """Say what a release takes: as one with the same packages did, or `first_bytes` where there is none.

    link_mode: uv's; what a release of links to the cache took says nothing of one of copies.
    """
    same = []
    for path in sorted(releases.iterdir()) if releases.is_dir() else []:
        record = read_record(path) if path.is_dir() else None
        if not record or not record.get("bytes") or record.get("link_mode") != link_mode:
            continue
        if record.get("inputs", {}).get("lock") == inputs.get("lock"):
            same.append((int(record["bytes"]), path.name))
    if same:
        size, name = max(same)
        return Need(max(_LEAST, int(size * _MARGIN)), f"{name}, with the same packages, took {gigabytes(size)}")
    return Need(first_bytes, "the first release with these packages and this link mode takes that, with uv's cache")


def problem(folder: Path, need: Need, free: int | None = None) -> str:
    """Say, with figures, that a disk cannot take a release; "" when it can. Raises OSError."""
    place = folder
    while not place.exists():
        place = place.parent
    has = shutil.disk_usage(place).free if free is None else free
    if has >= need.size:
        return ""
    return (
        f"{place} has {gigabytes(has)} free, and the release needs {gigabytes(need.size)} ({need.why}): "
        f"{gigabytes(need.size - has)} are missing"
    )


def full(said: str, *places: Path) -> str:
    """Say which of the places' file systems is full, and what to do, where an error is about that; else ""."""
    if os.strerror(errno.ENOSPC) not in said and os.strerror(errno.EDQUOT) not in said:
        return ""
    free: dict[str, int] = {}
    for place in places:
        while not os.path.ismount(place) and place != place.parent:
            place = place.parent
        free[str(place)] = shutil.disk_usage(place).free
    listed = " and ".join(f"{place} with {gigabytes(size)} free" for place, size in free.items())
    return (
        f". It is about the file system {listed}: make room there, or keep fewer releases "
        "(sglang_keep_releases), and run again; what is half made goes then"
    )


def gigabytes(size: float) -> str:
    """Return bytes in gigabytes, as disks are sold."""
    return f"{size / 1e9:.1f} GB"
