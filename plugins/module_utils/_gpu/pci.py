# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a card is plugged in, from sysfs: its link, its NUMA node, IOMMU and the bridges above it. PRIVATE.

Access control services (ACS) that redirect requests send traffic between two cards up to the root complex, and an
IOMMU that translates sends it through its tables; both together were seen to hang NCCL (NVIDIA/nccl issue 1999).
The layout of PCI configuration space is that of the PCI Express base specification.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass

SYS = "/sys"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
EXTENDED = 0x100
ACS = 0x000D
REQUEST_REDIRECT, COMPLETION_REDIRECT = 0x04, 0x08
OFF, PASSTHROUGH, TRANSLATED, UNKNOWN = "off", "passthrough", "translated", "unknown"
# What the kernel calls the kinds of a group (Documentation/ABI/testing/sysfs-kernel-iommu_groups).
KINDS = {"identity": PASSTHROUGH, "DMA": TRANSLATED, "DMA-FQ": TRANSLATED}


@dataclass(frozen=True)
class Bridge:
    """A PCI bridge above a card. `redirects` is None where its configuration could not be read (root alone may)."""

    address: str
    redirects: bool | None


@dataclass(frozen=True)
class Slot:
    """Where one card is plugged in. Widths in lanes, speeds in GT/s; None or empty where sysfs has no answer.

    `iommu` is V(off), V(passthrough), V(translated) or V(unknown); `seen` says whether sysfs shows the card at all,
    which it does not in a container.
    """

    address: str
    numa_node: int | None = None
    iommu: str = UNKNOWN
    width: int | None = None
    width_max: int | None = None
    speed: float | None = None
    speed_max: float | None = None
    bridges: tuple[Bridge, ...] = ()
    seen: bool = False


def address(bus_id: str) -> str:
    """An address of nvidia-smi (V(00000000:C1:00.0)) or of the kernel's log (V(0000:c1:00)) as sysfs writes it."""
    domain, _colon, rest = bus_id.strip().lower().partition(":")
    return f"{domain[-4:]}:{rest if '.' in rest else rest + '.0'}" if rest else ""


def read_slot(bus_id: str, sys: str = SYS) -> Slot:
    """Look at one card's slot."""
    name = address(bus_id)
    folder = os.path.join(sys, "bus", "pci", "devices", name)
    if not name or not os.path.isdir(folder):
        return Slot(name)
    return Slot(
        address=name,
        numa_node=_node(_text(folder, "numa_node")),
        iommu=_iommu(folder, sys),
        width=_number(_text(folder, "current_link_width")),
        width_max=_number(_text(folder, "max_link_width")),
        speed=_speed(_text(folder, "current_link_speed")),
        speed_max=_speed(_text(folder, "max_link_speed")),
        bridges=tuple(_bridge(above, sys) for above in bridges_above(folder)),
        seen=True,
    )


def bridges_above(folder: str) -> list[str]:
    """Addresses of the bridges between a device and its root complex, the root port first."""
    parts = os.path.realpath(folder).split("/")[:-1]
    return [part for part in parts if ADDRESS.fullmatch(part)]


def _bridge(name: str, sys: str) -> Bridge:
    try:
        with open(os.path.join(sys, "bus", "pci", "devices", name, "config"), "rb") as handle:
            return Bridge(name, redirects(handle.read(4096)))
    except OSError:
        return Bridge(name, None)


def redirects(config: bytes) -> bool | None:
    """Whether a bridge's ACS control redirects requests or completions; None if its extended space is not shown."""
    if len(config) < EXTENDED + 4:
        return None
    offset, seen = EXTENDED, set()
    while EXTENDED <= offset <= len(config) - 8 and offset not in seen:
        seen.add(offset)
        (head,) = struct.unpack_from("<I", config, offset)
        if head & 0xFFFF == ACS:
            (control,) = struct.unpack_from("<H", config, offset + 6)
            return bool(control & (REQUEST_REDIRECT | COMPLETION_REDIRECT))
        offset = head >> 20
    return False  # without the capability nothing is redirected


def _iommu(folder: str, sys: str) -> str:
    group = os.path.join(folder, "iommu_group")
    if os.path.isdir(group):
        return KINDS.get(_text(group, "type"), UNKNOWN)
    return UNKNOWN if _names(os.path.join(sys, "class", "iommu")) else OFF


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    # 255 lanes, or none: what the kernel says of a link that is down.
    return int(text) if text.isdigit() and 0 < int(text) < 255 else None


def _node(text: str) -> int | None:
    return int(text) if text.isdigit() else None  # -1: the firmware does not say


def _speed(text: str) -> float | None:
    match = re.match(r"([0-9.]+) GT/s", text)
    return float(match[1]) if match else None
