# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cards that are fully used and wait."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Sample
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.sampling import loads, look
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Load
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import Launch
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.starved import (
    check_starved,
    likely_causes,
    starved_cards,
)

RECORDED = Path(__file__).parents[1] / "gpu" / "recordings" / "h200-x2"
FUSED = Launch({"enable-flashinfer-allreduce-fusion": True})


def looks(*figures: tuple[float | None, float | None], limit: float | None = 600.0, cards: int = 8) -> list[list[Load]]:
    """Samples of all cards, each of (utilisation, draw)."""
    return [[Load(f"GPU-{card}", use, draw, limit) for card in range(cards)] for use, draw in figures]


@pytest.mark.parametrize(
    ("figures", "starved"),
    [
        ([(100, 250)] * 3, True),
        ([(100, 125)] * 5, True),
        ([(100, 250), (100, 251), (100, 590)], True),  # medians
        ([(100, 280)] * 3, False),
        ([(100, 590)] * 3, False),
        ([(60, 150)] * 3, False),  # little to do is not starving
        ([(0, 31)] * 3, False),
        ([(100, 250)] * 2, False),  # too few samples
        ([(None, 250), (100, None), (100, 250)], False),
        ([], False),
    ],
)
def test_full_utilisation_at_low_power(figures: list[tuple[float | None, float | None]], starved: bool) -> None:
    assert bool(starved_cards(looks(*figures))) is starved
    assert [one.id for one in check_starved(looks(*figures))] == (["gpu_starved"] if starved else [])


def test_cards_that_do_not_tell_their_limit_are_not_judged() -> None:
    assert starved_cards(looks(*[(100.0, 250.0)] * 3, limit=None)) == []


def test_the_finding_says_how_starved_and_why() -> None:
    (one,) = check_starved(looks(*[(100, 250)] * 3), FUSED, ["gpu_numa"], concurrency=64)
    assert one.severity == "warns"
    assert one.message.startswith("8 cards were fully used at no more than 250 of 600 W (42%): kernels run and wait.")
    assert (
        "all-reduce by kernels that load from other cards over PCIe (enable-flashinfer-allreduce-fusion)" in one.message
    )
    numbered = [line for line in one.evidence.splitlines() if line[0].isdigit()]
    assert numbered[1] == "2. all-reduce across the sockets (gpu_numa)" and len(numbered) == 7


def test_one_card_alone_is_named() -> None:
    figures = [[Load("GPU-0", 100, 125, 600), Load("GPU-1", 100, 500, 600)] for _run in range(3)]
    (one,) = check_starved(figures)
    assert one.message.startswith("One card was") and one.evidence.startswith("GPU-0: 100 %, 125 of 600 W")


@pytest.mark.parametrize(
    ("launch", "findings", "concurrency", "first"),
    [
        (FUSED, set(), 0, "all-reduce by kernels"),
        (Launch({}, {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}), set(), 0, "all-reduce by kernels"),
        (Launch(), {"iommu_acs"}, 0, "exchange through main memory"),
        (Launch(), {"gpu_link"}, 0, "a slow PCIe link"),
        (Launch(), set(), 1, "too few requests"),
        (Launch(), {"gpu_power_limit"}, 64, "clocks that are held down"),
        (Launch(), set(), 64, "all-reduce by kernels"),
    ],
)
def test_what_something_speaks_for_comes_first(
    launch: Launch, findings: set[str], concurrency: int, first: str
) -> None:
    causes = likely_causes(launch, findings, concurrency)
    assert causes[0].startswith(first) and len(set(causes)) == 7


@pytest.mark.parametrize(
    ("recording", "starved"),
    [
        ("load_waits.csv", ["100 %, 122 of 700 W"]),  # one card's all-reduce waits for the other, which comes late
        ("load_ping.csv", []),  # small all-reduces, one after the other: power is low, and so is utilisation
        ("load_works.csv", []),  # a matrix product on both
    ],
)
def test_real_cards_that_wait_are_told_from_those_that_work(recording: str, starved: list[str]) -> None:
    rows = (RECORDED / recording).read_text(encoding="utf-8").splitlines(keepends=True)
    asked = iter("".join(rows[at : at + 2]) for at in range(0, len(rows), 2))

    def nvidia_smi(argv: Sequence[str], _timeout: float) -> Outcome:
        return Outcome(tuple(argv), 0, next(asked))

    samples = [Sample(second, look(nvidia_smi)) for second in range(0, len(rows), 2)]
    found = starved_cards(loads(samples))
    assert [f"{one.utilisation:.0f} %, {one.draw:.0f} of {one.limit:.0f} W" for one in found] == starved
