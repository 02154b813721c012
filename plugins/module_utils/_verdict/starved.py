# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cards that look busy and do not compute. PRIVATE to the collection.

Utilisation says that a kernel ran, not that it worked: one that waits for another card's data counts in full. Power
tells the difference. The first user's cards drew 125 of 600 W at full utilisation while throughput fell from 3,740 to
236 tokens a second.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .._gpu.cards import Load
from .._host.fabric_checks import FUSED
from .._host.findings import INFORMS, WARNS, Finding
from .._host.wanted import Launch

FULL_UTILISATION = 95.0
# 250 of 600 W is starved. Measured on two H200s: an all-reduce that waits takes 122 of 700 W, a matrix product 691.
LOW_SHARE = 0.45
LEAST_SAMPLES = 3
UNKNOWN = Launch()


@dataclass(frozen=True)
class Starved:
    """One card's medians over the measurement, in percent and W."""

    uuid: str
    utilisation: float
    draw: float
    limit: float


def starved_cards(looks: Iterable[Iterable[Load]]) -> list[Starved]:
    """The cards that were fully used at low power.

    looks: samples of all cards, taken while the load ran. A card with fewer than three whole samples is not judged.
    """
    samples: dict[str, list[tuple[float, float, float]]] = {}
    for look in looks:
        for load in look:
            if load.utilisation is not None and load.draw is not None and load.limit:
                samples.setdefault(load.uuid, []).append((load.utilisation, load.draw, load.limit))
    medians = [
        Starved(uuid, *(statistics.median(column) for column in zip(*rows)))
        for uuid, rows in samples.items()
        if len(rows) >= LEAST_SAMPLES
    ]
    return [one for one in medians if one.utilisation >= FULL_UTILISATION and one.draw < one.limit * LOW_SHARE]


def check_starved(
    looks: Iterable[Iterable[Load]], launch: Launch = UNKNOWN, findings: Collection[str] = (), concurrency: int = 0
) -> list[Finding]:
    """The finding on starved cards, with its likely causes: those that something speaks for first, then by likelihood.

    findings: identifiers that preflight gave for this host; concurrency: requests at a time, 0 if not known.
    """
    cards = starved_cards(looks)
    if not cards:
        return []
    draw, limit = max(one.draw for one in cards), max(one.limit for one in cards)
    causes = likely_causes(launch, set(findings), concurrency)
    who = "One card was" if len(cards) == 1 else f"{len(cards)} cards were"
    message = (
        f"{who} fully used at no more than {draw:.0f} of {limit:.0f} W ({draw / limit:.0%}): kernels run and wait. "
        f"Most likely: {causes[0]}."
    )
    lines = [f"{one.uuid}: {one.utilisation:.0f} %, {one.draw:.0f} of {one.limit:.0f} W" for one in cards]
    lines += [f"{number}. {cause}" for number, cause in enumerate(causes, 1)]
    return [Finding("gpu_starved", WARNS, message, "\n".join(lines), "Try the causes in this order, one at a time.")]


def check_seen(looks: int) -> list[Finding]:
    """Say that nobody knows whether the cards starve. looks: how many samples were taken while the load ran."""
    if looks >= LEAST_SAMPLES:
        return []
    told = {0: "No reading of the cards", 1: "One reading of the cards"}.get(looks, f"{looks} readings of the cards")
    message = f"{told} fell within the warm runs: too few to tell whether they starve."
    return [Finding("gpu_hardly_seen", INFORMS, message, "", "Ask for more requests, so that the runs take longer.")]


def likely_causes(launch: Launch, findings: set[str], concurrency: int = 0) -> list[str]:
    """Causes in order. What is switched on, or was found on this host, comes before what is merely common."""
    kernels = [name for name in FUSED if launch.has(name)]
    kernels += [name for name in ("SGLANG_ENABLE_PCIE_IPC_ALLREDUCE",) if launch.switched_on(name)]
    few = 0 < concurrency < 8
    rows = [
        (bool(kernels), "all-reduce by kernels that load from other cards over PCIe", kernels or ["fused or custom"]),
        (bool(findings & {"gpu_p2p", "iommu_acs"}), "exchange through main memory", ["gpu_p2p", "iommu_acs"]),
        ("gpu_link" in findings, "a slow PCIe link", ["gpu_link"]),
        (few, "too few requests at a time to fill the cards", [f"{concurrency or 'low'} at a time"]),
        ("gpu_numa" in findings, "all-reduce across the sockets", ["gpu_numa"]),
        ("gpu_power_limit" in findings, "clocks that are held down", ["gpu_power_limit, temperature"]),
        (False, "a scheduler that the processor cannot feed fast enough", ["cores, their clock"]),
    ]
    first = [f"{words} ({', '.join(why)})" for spoken_for, words, why in rows if spoken_for]
    return first + [f"{words} ({', '.join(why)})" for spoken_for, words, why in rows if not spoken_for]
