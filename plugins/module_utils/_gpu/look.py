# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One look at the cards of a host and at how they are connected. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from .._host.command import Runner
from .._host.proc import PROC
from .cards import ALL_FIELDS, Gpu, Reading, ask_gpus, ask_processes, reading_of
from .kernel import LOG, Kernel, Xid, read_kernel
from .pci import SYS, TRANSLATED, UNKNOWN, Slot, read_slot
from .text import plain
from .topology import Matrix, multicast, parse_matrix

# `nvidia-smi --version` and the table that it prints without arguments spell it differently.
CUDA = re.compile(r"CUDA(?: UMD)? Version\s*:\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
TOPOLOGY = ("nvidia-smi", "topo", "-m")
P2P = ("nvidia-smi", "topo", "-p2p", "r")
VERSION = ("nvidia-smi", "--version")
BANNER = ("nvidia-smi",)


@dataclass(frozen=True)
class View:
    """Everything that was seen. `cuda` is the newest CUDA that the driver runs; `problems` what could not be asked."""

    reading: Reading
    cuda: str = ""
    topology: Matrix = field(default_factory=Matrix)
    p2p: Matrix = field(default_factory=Matrix)
    kernel: Kernel = field(default_factory=lambda: Kernel("", {}, (), None, None))
    slots: dict[str, Slot] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def multicast(self) -> tuple[str, str]:
        return multicast(self.topology, self.reading.gpus)

    @property
    def iommu(self) -> str:
        """The IOMMU's way with the cards: V(translated) if it is so for one of them."""
        kinds = {self.slot(gpu).iommu for gpu in self.reading.gpus}
        if TRANSLATED in kinds:
            return TRANSLATED
        return kinds.pop() if len(kinds) == 1 else UNKNOWN

    @property
    def redirecting(self) -> list[str]:
        """Bridges above the cards whose ACS redirects."""
        above = {bridge.address for gpu in self.reading.gpus for bridge in self.slot(gpu).bridges if bridge.redirects}
        return sorted(above)

    def slot(self, gpu: Gpu) -> Slot:
        return self.slots.get(gpu.uuid, Slot(""))

    def xids(self, gpu: Gpu) -> list[Xid]:
        """The card's Xid errors; empty too where the log cannot be read (then C(kernel.xids) is None)."""
        where = self.slot(gpu).address
        return [xid for xid in self.kernel.xids or () if where and xid.address == where]

    def link_width_best(self, gpu: Gpu) -> int | None:
        """Lanes that the card has. nvidia-smi's maximum is that of card and slot together, so sysfs is asked too."""
        widths = [width for width in (gpu.link_width_max, self.slot(gpu).width_max) if width]
        return max(widths, default=None)

    def as_dict(self) -> dict[str, Any]:
        """The view as a module returns it."""
        seen, reason = self.multicast
        drivers = sorted({gpu.driver for gpu in self.reading.gpus})
        return {
            "status": self.reading.status,
            "message": self.reading.message,
            "problems": list(self.problems),
            "gpus": [self._card(gpu) for gpu in self.reading.gpus],
            "driver": {
                "version": ", ".join(drivers),
                "cuda": self.cuda,
                "module": self.kernel.module,
                "parameters": self.kernel.parameters,
                "uvm_hmm": self.kernel.uvm_hmm,
            },
            "topology": asdict(self.topology),
            "p2p": self.p2p.links,
            "farthest": self.topology.farthest(),
            "nvlink": self.topology.nvlink,
            "multicast": {"supported": seen, "reason": reason},
            "iommu": {"state": self.iommu, "command_line": list(self.kernel.command_line)},
            "acs": {"redirecting": self.redirecting, "known": self._acs_known()},
            "xids": None if self.kernel.xids is None else [asdict(xid) for xid in self.kernel.xids],
        }

    def _acs_known(self) -> bool:
        slots = [self.slot(gpu) for gpu in self.reading.gpus]
        read = all(bridge.redirects is not None for slot in slots for bridge in slot.bridges)
        return bool(slots) and read and all(slot.seen for slot in slots)

    def _card(self, gpu: Gpu) -> dict[str, Any]:
        processes = [
            {"pid": one.pid, "name": one.name, "memory": one.memory}
            for one in self.reading.processes
            if one.uuid == gpu.uuid
        ]
        xids = None if self.kernel.xids is None else sum(xid.count for xid in self.xids(gpu))
        own = {"slot": asdict(self.slot(gpu)), "link_width_best": self.link_width_best(gpu)}
        return {**asdict(gpu), **own, "xid_count": xids, "processes": processes}


def look(
    run: Runner, timeout: float, proc: str = PROC, sys: str = SYS, log: str = LOG, fields: Sequence[str] = ALL_FIELDS
) -> View:
    """Ask nvidia-smi, each question once and all at the same time, and read /proc, /sys and the kernel's log.

    timeout: seconds that one call may take; one that hangs is given up, and the others' answers stand.
    """
    with ThreadPoolExecutor(max_workers=5) as pool:
        cards = pool.submit(ask_gpus, run, timeout, fields)
        processes = pool.submit(ask_processes, run, timeout)
        asked = {argv: pool.submit(run, argv, timeout) for argv in (TOPOLOGY, P2P, VERSION)}
        kernel = read_kernel(proc, sys, log)
        outcome, told = cards.result()
        reading = reading_of(outcome, told, processes.result())
        answers = {argv: future.result() for argv, future in asked.items()}
    version = CUDA.search(plain(answers[VERSION].stdout))
    if reading.status == "ok" and not version:
        version = CUDA.search(plain(run(BANNER, timeout).stdout))  # a driver without --version
    wrong = [answer for answer in answers.values() if not answer.ok and answer is not answers[VERSION]]
    return View(
        reading=reading,
        cuda=version[1] if version else "",
        topology=parse_matrix(answers[TOPOLOGY].stdout),
        p2p=parse_matrix(answers[P2P].stdout),
        kernel=kernel,
        slots={gpu.uuid: read_slot(gpu.bus_id, sys) for gpu in reading.gpus},
        problems=tuple(answer.describe() for answer in wrong) if reading.status == "ok" else (),
    )
