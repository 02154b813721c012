# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What preflight makes of the cards. PRIVATE to the collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .._gpu.cards import Gpu, unexplained
from .._gpu.kernel import Xid
from .._gpu.look import View
from .facts import Facts
from .findings import BLOCKS, INFORMS, WARNS, Finding
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
        found += _kind(reading.gpus, wanted) + check_cards(facts.view) + _use(facts, wanted)
    return found + _xids(facts.view)


def check_cards(view: View) -> list[Finding]:
    """Findings on the cards' own state and their links, whatever is deployed."""
    return _state(view.reading.gpus) + _links(view)


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
    if len({_make(gpu) for gpu in gpus}) > 1:
        seen = ", ".join(f"GPU {gpu.index}: {_make(gpu)}" for gpu in gpus)
        found.append(Finding("gpu_mixed", WARNS, "The cards are not alike; the smallest sets the pace.", seen))
    return found


def _make(gpu: Gpu) -> str:
    """What cards that work together should have in common."""
    limit = "" if gpu.power_limit is None else f", {gpu.power_limit:.0f} W"
    return f"{gpu.name}, {gpu.memory_total} MiB{limit}"


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
    limits = [(gpu, gpu.power_limit, gpu.power_limit_default) for gpu in gpus]
    low = [
        f"GPU {gpu.index}: {now:.0f} of {usual:.0f} W" for gpu, now, usual in limits if now and usual and now < usual
    ]
    if low:
        message = f"Power limits below the default: {', '.join(low)}."
        found.append(
            Finding("gpu_power_limit", WARNS, message, ", ".join(low), "Raise them (nvidia-smi -pl), if not meant.")
        )
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


def _links(view: View) -> list[Finding]:
    """An idle card lowers its generation, so that only what card and slot can do together is judged of it."""
    rows = []
    for gpu in view.reading.gpus:
        best = view.link_width_best(gpu)
        if gpu.link_width and best and gpu.link_width < best:
            rows.append(f"GPU {gpu.index}: x{gpu.link_width} of x{best}")
        most, card = gpu.link_generation_max, gpu.link_generation_card
        if most and card and most < card:
            rows.append(f"GPU {gpu.index}: generation {most} of {card}")
    if not rows:
        return []
    words = ", ".join(rows)
    return [
        Finding(
            "gpu_link",
            WARNS,
            f"Slow PCIe links: {words}.",
            words,
            "Reseat the card or riser, and look at the slot's lanes and generation in the firmware's settings.",
        )
    ]


def _xids(view: View) -> list[Finding]:
    found = []
    for severity, advice in (
        (WARNS, "Look the number up in NVIDIA's Xid documentation; a card that fell off the bus needs a reboot."),
        (INFORMS, "These are usually a program's own errors."),
    ):
        rows = [xid for xid in view.kernel.xids or () if xid.programs_own == (severity == INFORMS)]
        if rows:
            counts = ", ".join(f"Xid {xid.number} ({xid.count} x) of {_named(view, xid)}" for xid in rows)
            evidence = "\n".join(f"{xid.address}: {xid.last}" for xid in rows)
            found.append(Finding("gpu_xid", severity, f"The kernel's log has {counts}.", evidence, advice))
    return found


def _named(view: View, xid: Xid) -> str:
    for gpu in view.reading.gpus:
        if view.slot(gpu).address == xid.address:
            return f"GPU {gpu.index}"
    return f"the card at {xid.address}, which nvidia-smi does not show"


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
