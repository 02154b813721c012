# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine must have before a fleet is made on it: programs, memory, disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from .config import RUNTIME
from .shell import FleetError, say

PROGRAMS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "rsync": "rsync",
    "ip": "iproute2",
    "git": "git",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
GIB = 1 << 30
NODE_MEMORY = int(2.5 * GIB)
BUILD_MEMORY = 3 * GIB
CACHE_DISK = 16 * GIB
NODE_DISK = 2 * GIB


def check(cache: Path, count: int) -> None:
    """Say what is missing (programs, memory, disk) before anything is done."""
    check_programs()
    check_room(cache, count)


def check_programs() -> None:
    """Say which packages are missing."""
    lacking = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    if lacking:
        raise FleetError(f"please install first: apt-get install {' '.join(lacking)}")


def check_room(cache: Path, count: int) -> None:
    """Say what memory and disk the fleet needs, if they are not there."""
    wanted = BUILD_MEMORY + count * NODE_MEMORY
    free = available_memory()
    if free < wanted:
        raise FleetError(
            f"{count} nodes need {wanted / GIB:.1f} GiB of memory ({NODE_MEMORY / GIB:.1f} GiB each and "
            f"{BUILD_MEMORY / GIB:.1f} GiB to build); {free / GIB:.1f} GiB are available"
        )
    cached = any(cache.glob("engine-*"))
    needs = {cache: 1 * GIB if cached else CACHE_DISK}
    place = existing(RUNTIME)
    needs[place] = needs.get(place, 0) + count * NODE_DISK
    by_device: dict[int, int] = {}
    for folder, size in needs.items():
        by_device[existing(folder).stat().st_dev] = by_device.get(existing(folder).stat().st_dev, 0) + size
    for folder in needs:
        wanted = by_device[existing(folder).stat().st_dev]
        free = shutil.disk_usage(existing(folder)).free
        if free < wanted:
            raise FleetError(
                f"the fleet needs {wanted / GIB:.1f} GiB of disk at {folder}; {free / GIB:.1f} GiB are free"
            )
    disk = shutil.disk_usage(place).free
    say(f"memory: {available_memory() / GIB:.1f} GiB available; disk: {disk / GIB:.0f} GiB free")


def available_memory() -> int:
    """Bytes of memory that can be had without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise FleetError("/proc/meminfo does not tell the available memory")


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    while not path.exists():
        path = path.parent
    return path
