# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with eight SM120 cards, made by hand: nvidia-smi's answers, /proc, /sys and the kernel's log. Change it."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import View, look
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome

NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
BUSES = ("01", "21", "41", "61", "81", "a1", "c1", "e1")
VALUES = {
    "name": NAME,
    "compute_cap": "12.0",
    "driver_version": "580.159.04",
    "memory.total": "97887",
    "memory.used": "2",
    "power.limit": "600.00",
    "power.default_limit": "600.00",
    "power.draw": "31.20",
    "utilization.gpu": "0",
    "persistence_mode": "Enabled",
    "mig.mode.current": "Disabled",
    "ecc.mode.current": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "0",
    "pcie.link.gen.current": "1",
    "pcie.link.gen.max": "5",
    "pcie.link.gen.gpumax": "5",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
    "clocks_event_reasons.active": "0x0000000000000001",
}
LEGEND = "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect\n"


def acs(control: int) -> bytes:
    """The configuration space of a bridge with the ACS capability behind another one."""
    config = bytearray(4096)
    struct.pack_into("<I", config, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)  # advanced error reporting, next at 0x148
    struct.pack_into("<IHH", config, 0x148, 0x000D | 1 << 16, 0x1F, control)
    return bytes(config)


class Eight:
    """Cards two by two on a host bridge, four on a socket, unless `link` says one word for all pairs."""

    def __init__(self, root: Path, cards: int = 8) -> None:
        self.root = root
        self.cards: dict[int, dict[str, str]] = {number: dict(VALUES) for number in range(cards)}
        self.link = ""
        self.p2p = "OK"
        self.processes: list[tuple[int, int, str, str]] = []
        self.problems: dict[str, Outcome] = {}
        self.calls: list[tuple[str, ...]] = []
        self._lock = threading.Lock()
        self.write(
            "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04\n"
        )
        self.write("proc/driver/nvidia/params", 'NvLinkDisable: 0\nRegistryDwords: ""\nRmMsg: ""\n')
        self.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt amd_iommu=on quiet\n")
        self.write("kmsg", "6,1,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module\n")
        for number in range(cards):
            self.add_slot(number)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    # sysfs -----------------------------------------------------------------------------------------------------

    def add_slot(self, number: int) -> None:
        bus = BUSES[number]
        bridge = f"sys/devices/pci0000:{bus[0]}0/0000:{bus[0]}0:01.1"
        card = f"{bridge}/0000:{bus}:00.0"
        self.write(f"{bridge}/config", acs(0))
        for name, value in {
            "numa_node": str(number // 4),
            "current_link_width": "16",
            "max_link_width": "16",
            "current_link_speed": "2.5 GT/s PCIe",
            "max_link_speed": "32.0 GT/s PCIe",
        }.items():
            self.write(f"{card}/{name}", value + "\n")
        self.iommu(number, "identity")
        devices = self.root / "sys/bus/pci/devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / f"0000:{bus[0]}0:01.1").symlink_to(self.root / bridge)
        (devices / f"0000:{bus}:00.0").symlink_to(self.root / card)

    def iommu(self, number: int, kind: str) -> None:
        bus = BUSES[number]
        card = f"sys/devices/pci0000:{bus[0]}0/0000:{bus[0]}0:01.1/0000:{bus}:00.0"
        self.write(f"{card}/iommu_group/type", kind + "\n")

    def bridge(self, number: int, control: int) -> None:
        """The ACS control of the bridge above a card."""
        bus = BUSES[number]
        self.write(f"sys/devices/pci0000:{bus[0]}0/0000:{bus[0]}0:01.1/config", acs(control))

    # nvidia-smi ------------------------------------------------------------------------------------------------

    @staticmethod
    def uuid(number: int) -> str:
        return f"GPU-{number}"

    def run(self, argv: Sequence[str], timeout: float) -> Outcome:
        key = tuple(argv)
        with self._lock:
            self.calls.append(key)
        words = " ".join(key)
        for part, outcome in self.problems.items():
            if part in words:
                return outcome
        if "--query-gpu" in words:
            return Outcome(key, 0, self._query(key[1].partition("=")[2].split(",")))
        if "--query-compute-apps" in words:
            return Outcome(
                key,
                0,
                "".join(f"{pid}, {self.uuid(card)}, {size}, {name}\n" for pid, card, size, name in self.processes),
            )
        if words == "nvidia-smi topo -m":
            return Outcome(key, 0, self._topology())
        if words == "nvidia-smi topo -p2p r":
            return Outcome(key, 0, self._p2p())
        if words == "nvidia-smi --version":
            return Outcome(key, 0, "DRIVER version      : 580.159.04\nCUDA Version        : 13.0\n")
        return Outcome(key, 0, "| NVIDIA-SMI 580.159.04   Driver Version: 580.159.04     CUDA Version: 13.0     |\n")

    def hang(self, part: str = "nvidia-smi") -> None:
        self.problems[part] = Outcome(("nvidia-smi", part), None, problem="hung")

    def _query(self, fields: list[str]) -> str:
        rows = []
        for number, card in self.cards.items():
            row = {
                "index": str(number),
                "uuid": self.uuid(number),
                "pci.bus_id": f"00000000:{BUSES[number].upper()}:00.0",
            }
            rows.append(", ".join((row | card).get(name, "[N/A]") for name in fields))
        return "\n".join(rows) + "\n"

    def _link(self, one: int, other: int) -> str:
        if one == other:
            return " X "
        return self.link or ("SYS" if one // 4 != other // 4 else "PHB" if one // 2 == other // 2 else "NODE")

    def _topology(self) -> str:
        head = (
            "\t\x1b[4m"
            + "\t".join([f"GPU{number}" for number in self.cards])
            + "\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
        )
        rows = [
            "\t".join(
                [
                    f"GPU{one}",
                    *(self._link(one, other) for other in self.cards),
                    "SYS",
                    "0-63",
                    str(one // 4),
                    "",
                    "N/A",
                ]
            )
            for one in self.cards
        ]
        nic = "\t".join(["NIC0", *("SYS" for _card in self.cards), " X "])
        return head + "\n".join([*rows, nic]) + "\n" + LEGEND

    def _p2p(self) -> str:
        head = " \t\x1b[4m" + "\t".join([f"GPU{number}" for number in self.cards]) + "\t\x1b[0m\n"
        rows = [
            "\t".join([f" GPU{one}", *("X" if one == other else self.p2p for other in self.cards)]) + "\t\n"
            for one in self.cards
        ]
        return head + "".join(rows) + LEGEND

    def look(self) -> View:
        return look(self.run, 5, str(self.root / "proc"), str(self.root / "sys"), str(self.root / "kmsg"))
