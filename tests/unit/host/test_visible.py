# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two instances on one host: each is judged, and proven gone, by its own cards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import read_gpus
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.facts import collect
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import Machine, Request, stop
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost
from ansible_collections.llmfleet.sglang.tests.unit.host.good import WANTED

FIRST, SECOND = (0, 1, 2, 3), (4, 5, 6, 7)


@pytest.fixture
def two(host: FakeHost) -> FakeHost:
    """sglang-qwen on the first four cards, sglang-qwen-b on the others."""
    host.cards = 8
    for pid, name, cards in ((10, "sglang-qwen.service", FIRST), (20, "sglang-qwen-b.service", SECOND)):
        host.add_unit(name, main_pid=pid)
        host.add_process(pid, unit=name, gpu=80000)
        host.gpu_cards[pid] = cards
    return host


def findings(host: FakeHost, root: Path, visible: tuple[int, ...]) -> set[str]:
    wanted = replace(WANTED, service="sglang-qwen", replaces=(), visible_gpus=visible, gpu_count=len(visible) or 8)
    facts = collect(wanted.question(5), host.run, host.proc, str(root))
    return {one.id for one in check(facts, wanted) if one.id.startswith("gpu_")}


def test_a_reading_of_some_cards_has_their_processes_alone(two: FakeHost) -> None:
    reading = read_gpus(two.run, 5)
    assert [gpu.index for gpu in reading.only(SECOND).gpus] == list(SECOND)
    assert {one.pid for one in reading.only(SECOND).processes} == {20}
    assert reading.only(()) == reading


def test_preflight_judges_an_instances_own_cards(two: FakeHost, tmp_path: Path) -> None:
    assert "gpu_processes" in findings(two, tmp_path, ())
    assert not findings(two, tmp_path, FIRST) & {"gpu_processes", "gpu_count", "gpu_unexplained"}
    assert "gpu_processes" in findings(two, tmp_path, SECOND)
    assert "gpu_count" in findings(two, tmp_path, (0, 1, 2, 9))


@pytest.mark.parametrize("visible", [FIRST, ()])
def test_a_stop_is_proven_by_an_instances_own_cards(two: FakeHost, visible: tuple[int, ...]) -> None:
    def stopped() -> None:
        two.remove_process(10)
        two.units["sglang-qwen.service"].update(ActiveState="inactive", SubState="dead", MainPID="0")

    two.on_stop = stopped
    machine = Machine(two.run, two.proc, two.shm, two.clock, two.sleep, two.send)
    report = stop(Request("sglang-qwen.service", timeout=60, gpu_timeout=5, visible=visible), machine, False)
    assert not report.held
    # Who else is on the cards is named; on another instance's cards it is nobody's business.
    assert ("pid 20" in str(report)) is (not visible)
    assert set(report.after["gpu_memory_used"]) == {str(card) for card in visible or range(8)}
