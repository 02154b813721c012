# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What preflight makes of the cards. PRIVATE to the collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .facts import Facts
from .findings import BLOCKS, INFORMS, WARNS, Finding
from .gpu import Gpu, unexplained
from .wanted import Wanted

# The driver rounds, and tells a few MiB less than the data sheet from version to version.
MEMORY_TOLERANCE = 0.98
# Below these, in MiB, a card is as good as free: display servers and monitoring hold that much.
PROCESS_TOLERANCE = 1024
UNEXPLAINED_TOLERANCE = 2048


def check_gpus(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Findings on count, kind, state and use of the cards."""
    reading = facts.gpus
    if wanted.gpu_count == 0:
        return []
    if reading.status != "ok":
        return [
            Finding(
                "nvidia_smi",
                BLOCKS,
                f"The cards cannot be asked: {reading.message}.",
                reading.status,
                "Install or mend the NVIDIA driver and run nvidia-smi by hand.",
            )
        ]
    found = _count(reading.gpus, wanted)
    if reading.gpus:
        found += _kind(reading.gpus, wanted) + _state(reading.gpus) + _use(facts, wanted)
    return found


def _count(gpus: tuple[Gpu, ...], wanted: Wanted) -> list[Finding]:
    names = Counter(gpu.name for gpu in gpus)
    evidence = ", ".join(f"{number} x {name}" for name, number in names.items()) or "no cards"
    found = []
    if len(gpus) < wanted.gpu_count:
        found.append(
            Finding(
                "gpu_count",
                BLOCKS,
                f"{wanted.gpu_count} cards are needed and nvidia-smi shows {len(gpus)} ({evidence}).",
                evidence,
                "Look into the kernel log for a card that fell off the bus (NVRM: Xid).",
            )
        )
    elif len(gpus) > wanted.gpu_count:
        found.append(
            Finding(
                "gpu_count",
                INFORMS,
                f"{wanted.gpu_count} cards are used of the {len(gpus)} that are there.",
                evidence,
            )
        )
    if len({(gpu.name, gpu.memory_total) for gpu in gpus}) > 1:
        memory = ", ".join(f"GPU {gpu.index}: {gpu.name}, {gpu.memory_total} MiB" for gpu in gpus)
        found.append(Finding("gpu_mixed", WARNS, "The cards are not alike; the smallest sets the pace.", memory))
    return found


def _kind(gpus: tuple[Gpu, ...], wanted: Wanted) -> list[Finding]:
    found = []
    other = [gpu for gpu in gpus if wanted.compute_capability not in ("", gpu.compute_capability)]
    if other:
        seen = ", ".join(f"GPU {gpu.index}: {gpu.compute_capability or 'unknown'}" for gpu in other)
        found.append(
            Finding(
                "gpu_capability",
                BLOCKS,
                f"The profile is made for compute capability {wanted.compute_capability}, but {seen}.",
                ", ".join(sorted({gpu.name for gpu in other})),
                "Choose a profile for these cards, or set sglang_gpus.",
            )
        )
    least = int(wanted.gpu_memory_mib * MEMORY_TOLERANCE)
    small = [gpu for gpu in gpus if gpu.memory_total is not None and gpu.memory_total < least]
    if small:
        seen = ", ".join(f"GPU {gpu.index} has {gpu.memory_total} MiB" for gpu in small)
        found.append(
            Finding(
                "gpu_memory",
                BLOCKS,
                f"The profile needs {wanted.gpu_memory_mib} MiB on each card; {seen}.",
                seen,
                "Choose a smaller model or more cards.",
            )
        )
    return found


def _state(gpus: tuple[Gpu, ...]) -> list[Finding]:
    found = []
    split = _listed(gpu for gpu in gpus if gpu.mig.lower() == "enabled")
    if split:
        found.append(
            Finding(
                "gpu_mig",
                BLOCKS,
                f"MIG is on for {split}; the engine needs whole cards.",
                advice="Turn it off (nvidia-smi -mig 0) when nobody uses its parts.",
            )
        )
    errors = [gpu for gpu in gpus if gpu.ecc_errors]
    if errors:
        counts = ", ".join(f"GPU {gpu.index}: {gpu.ecc_errors}" for gpu in errors)
        found.append(
            Finding(
                "gpu_ecc",
                WARNS,
                f"Uncorrectable memory errors since the driver was loaded: {counts}.",
                counts,
                "Reset the card; if they come back, have it replaced.",
            )
        )
    narrow = [gpu for gpu in gpus if gpu.link_width and gpu.link_width_max and gpu.link_width < gpu.link_width_max]
    if narrow:
        widths = ", ".join(f"GPU {gpu.index}: x{gpu.link_width} of x{gpu.link_width_max}" for gpu in narrow)
        found.append(Finding("gpu_link", WARNS, f"Narrow PCIe links: {widths}.", widths, "Reseat the card or riser."))
    idle = _listed(gpu for gpu in gpus if gpu.persistence.lower() == "disabled")
    if idle:
        found.append(
            Finding(
                "gpu_persistence",
                INFORMS,
                f"Persistence mode is off for {idle}: each start of a process waits for the driver.",
                advice="Enable nvidia-persistenced.",
            )
        )
    return found


def _use(facts: Facts, wanted: Wanted) -> list[Finding]:
    found = []
    reading = facts.gpus
    strangers = []
    for held in reading.processes:
        owner = facts.gpu_owners.get(held.pid)
        unit = owner.unit if owner else ""
        if unit in wanted.own_units or (held.memory is not None and held.memory <= PROCESS_TOLERANCE):
            continue
        who = owner.describe() if owner else f"pid {held.pid} ({held.name})"
        strangers.append((held.uuid, f"{who} holds {held.amount}"))
    if strangers:
        lines = [f"{words} on {cards}" for cards, words in reading.by_cards(strangers)]
        found.append(
            Finding(
                "gpu_processes",
                BLOCKS,
                f"Somebody else uses the cards: {'; '.join(lines)}.",
                "\n".join(lines),
                "End these processes, or name their service in sglang_replaces.",
            )
        )
    left = {uuid: size for uuid, size in unexplained(reading).items() if size > UNEXPLAINED_TOLERANCE}
    if left:
        sizes = ", ".join(f"{reading.card(uuid)}: {size} MiB" for uuid, size in sorted(left.items()))
        found.append(
            Finding(
                "gpu_unexplained",
                WARNS,
                f"GPU memory is in use that no listed process accounts for: {sizes}.",
                sizes,
                "Look for processes in containers, or for a driver that has not let go of a dead one's memory.",
            )
        )
    return found


def _listed(gpus: Iterable[Gpu]) -> str:
    return ", ".join(f"GPU {gpu.index}" for gpu in gpus)
