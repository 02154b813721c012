# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the cards of a host are connected. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .cards import Gpu
from .text import plain

# From near to far, in nvidia-smi's words (its legend): V(NV18) and the like are NVLinks.
DISTANCES = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
CARD = re.compile(r"GPU\d+")
NVLINK = re.compile(r"NV\d+")
YES, NO, UNKNOWN = "yes", "no", "unknown"
# Multicast came with this capability (Hopper and its NVSwitch).
LEAST_MULTICAST = 9


@dataclass(frozen=True)
class Matrix:
    """A table of nvidia-smi, by names such as V(GPU0) and V(NIC0). C(topo -m) alone has processors and NUMA nodes."""

    links: dict[str, dict[str, str]] = field(default_factory=dict)
    cpus: dict[str, str] = field(default_factory=dict)
    numa: dict[str, str] = field(default_factory=dict)

    def pairs(self) -> dict[tuple[str, str], str]:
        """The links between cards, each pair once; other devices are left out."""
        names = [name for name in self.links if CARD.fullmatch(name)]
        return {
            (one, other): self.links[one].get(other, "")
            for number, one in enumerate(names)
            for other in names[number + 1 :]
        }

    def farthest(self) -> str:
        """The longest way between two cards (one of DISTANCES); empty for one card, or where nothing is known."""
        found = {"NV" if NVLINK.fullmatch(link) else link for link in self.pairs().values()}
        return max((one for one in found if one in DISTANCES), key=DISTANCES.index, default="")

    @property
    def nvlink(self) -> str:
        """Whether NVLinks join the cards: V(all), V(some), V(none); empty for one card, or where nothing is known."""
        links = list(self.pairs().values())
        joined = [link for link in links if NVLINK.fullmatch(link)]
        return "" if not links else "all" if len(joined) == len(links) else "some" if joined else "none"


def parse_matrix(text: str) -> Matrix:
    """The table of C(nvidia-smi topo -m) or C(topo -p2p r). An answer without a table is an empty one."""
    names: list[str] = []
    columns: list[str] = []
    matrix = Matrix()
    for line in plain(text).splitlines():
        cells = [cell.strip() for cell in line.split("\t")]
        if not names:
            if len(cells) > 1 and not cells[0] and CARD.fullmatch(cells[1]):
                columns = [cell for cell in cells[1:] if cell]
                names = [cell for cell in columns if " " not in cell]
            continue
        if cells[0] not in names:
            if cells[0]:
                break  # the legend
            continue
        matrix.links[cells[0]] = dict(zip(names, cells[1:]))
        rest = cells[1 + len(names) :]
        if "CPU Affinity" in columns and len(rest) >= 2:
            matrix.cpus[cells[0]], matrix.numa[cells[0]] = rest[0], rest[1]
    return matrix


def refused(p2p: Matrix) -> dict[tuple[str, str], str]:
    """Pairs of cards that cannot read each other's memory, with nvidia-smi's word for why (V(CNS), V(TNS), ...)."""
    return {pair: word for pair, word in p2p.pairs().items() if word not in ("OK", "X", "")}


def multicast(topology: Matrix, gpus: Iterable[Gpu]) -> tuple[str, str]:
    """Whether the cards have NVLink multicast (V(yes), V(no), V(unknown)), and what that was concluded from.

    nvidia-smi does not tell it. It takes NVLinks between all cards, a capability from 9.0 on, and a fabric (NVSwitch)
    that all of them have joined.
    """
    cards = list(gpus)
    if len(cards) < 2:
        return NO, "there are no two cards"
    if not topology.nvlink:
        return UNKNOWN, "nvidia-smi topo -m told nothing"
    if topology.nvlink != "all":
        return NO, "not all cards are joined by NVLinks"
    if any(_major(card) < LEAST_MULTICAST for card in cards):
        return NO, f"multicast needs compute capability {LEAST_MULTICAST}.0"
    if any(not card.fabric_state for card in cards):
        return UNKNOWN, "the driver does not tell whether the cards joined a fabric"
    if all((card.fabric_state, card.fabric_status) == ("Completed", "Success") for card in cards):
        return YES, "all cards are joined by NVLinks and have joined the fabric"
    return NO, "not all cards have joined the fabric"


def _major(card: Gpu) -> int:
    major = card.compute_capability.partition(".")[0]
    return int(major) if major.isdigit() else 0
