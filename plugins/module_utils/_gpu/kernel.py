# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kernel and driver say of the cards: parameters and Xid errors. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import stat
import time
from dataclasses import dataclass

from .._host.proc import PROC, read
from .pci import address

LOG = "/dev/kmsg"
LONGEST_READ = 5.0
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+),?\s*(.*)")
RECORD = re.compile(r"\d+,\d+,\d+,[^;]*;")
ABOUT_PCI = re.compile(r"(?:(?:intel_|amd_)?iommu(?:\.\w+)?|pci|pcie_acs_override|pcie_aspm)=")
# Parameters of the driver that bear on how cards reach each other, and on how they are run.
PARAMETERS = (
    "RegistryDwords",
    "RegistryDwordsPerDevice",
    "DmaRemapPeerMmio",
    "EnablePCIERelaxedOrderingMode",
    "EnableResizableBar",
    "EnableStreamMemOPs",
    "EnableUserNUMAManagement",
    "EnableGpuFirmware",
    "GrdmaPciTopoCheckOverride",
    "NvLinkDisable",
    "DynamicPowerManagement",
    "ExcludedGpus",
)
# Xids that are the program's own fault, as NVIDIA's Xid documentation lists them; others point at card or driver.
PROGRAMS_OWN = {13, 31, 43, 45}


@dataclass(frozen=True)
class Xid:
    """Errors of one kind on one card, since the kernel's log begins. `last` is what the newest one says."""

    address: str
    number: int
    count: int
    last: str

    @property
    def programs_own(self) -> bool:
        return self.number in PROGRAMS_OWN


@dataclass(frozen=True)
class Kernel:
    """What bears on the cards. `module` is V(open) or V(proprietary); `xids` is None where the log cannot be read."""

    module: str
    parameters: dict[str, str]
    command_line: tuple[str, ...]
    xids: tuple[Xid, ...] | None
    uvm_hmm: bool | None


def read_kernel(proc: str = PROC, sys: str = "/sys", log: str = LOG) -> Kernel:
    """Look at kernel and driver; nothing of it waits for a card."""
    text = read_log(log)
    disabled = read(f"{sys}/module/nvidia_uvm/parameters/uvm_disable_hmm").strip()
    return Kernel(
        module=driver_kind(read(f"{proc}/driver/nvidia/version")),
        parameters=parse_parameters(read(f"{proc}/driver/nvidia/params")),
        command_line=tuple(word for word in read(f"{proc}/cmdline").split() if ABOUT_PCI.match(word)),
        xids=None if text is None else tuple(parse_xids(text)),
        uvm_hmm=disabled == "N" if disabled in ("Y", "N") else None,
    )


def driver_kind(text: str) -> str:
    """Which of NVIDIA's kernel modules is loaded, by /proc/driver/nvidia/version; empty if none is."""
    if "NVRM version" not in text:
        return ""
    return "open" if "Open Kernel Module" in text else "proprietary"


def parse_parameters(text: str) -> dict[str, str]:
    """Those of PARAMETERS that /proc/driver/nvidia/params has, quotes taken off."""
    rows = (line.partition(":") for line in text.splitlines())
    return {name: value.strip().strip('"') for name, colon, value in rows if colon and name in PARAMETERS}


def read_log(path: str = LOG, longest: float = LONGEST_READ) -> str | None:
    """The kernel's log as far as it is kept; None where it may not be read, or is none (in a container)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    parts = []
    end = time.monotonic() + longest
    try:
        if not stat.S_ISCHR(os.fstat(handle).st_mode) and not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        while time.monotonic() < end:
            try:
                part = os.read(handle, 65536)
            except BrokenPipeError:
                continue  # records were overwritten meanwhile: go on with the oldest that is left
            except BlockingIOError:
                break  # that was the newest
            if not part:
                break
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", "replace")


def parse_xids(text: str) -> list[Xid]:
    """The Xid errors in a kernel log, of /dev/kmsg or dmesg, those of one card and number counted together."""
    found: dict[tuple[str, int], Xid] = {}
    for line in text.splitlines():
        match = XID.search(RECORD.sub("", line, count=1))
        if match:
            key = (address(match[1]), int(match[2]))
            count = found[key].count if key in found else 0
            found[key] = Xid(*key, count + 1, match[3].strip()[:200])
    return [found[key] for key in sorted(found)]
