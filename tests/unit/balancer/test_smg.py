# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker of a real SMG, out and back in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer import smg
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Done, Record
from ansible_collections.llmfleet.sglang.tests.unit.balancer import programs
from ansible_collections.llmfleet.sglang.tests.unit.balancer.programs import Balancer, ask, until, who_answers


@pytest.fixture(scope="module")
def balancer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balancer]:
    with programs.smg(tmp_path_factory.mktemp("smg")) as one:
        yield one


def place(balancer: Balancer, record: Path, timeout: float = 60) -> smg.Place:
    url = f"http://127.0.0.1:{balancer.port}"
    return smg.Place(smg.asker(url), Record(record / "r.json"), balancer.workers["a"].url, "", timeout)


def test_a_worker_goes_and_comes_back_and_no_request_under_way_is_lost(balancer: Balancer, tmp_path: Path) -> None:
    one, slow = place(balancer, tmp_path), balancer.workers["a"]
    answers: list[str] = []
    asking = [threading.Thread(target=lambda: answers.append(ask(balancer.port, "wait"))) for _worker in range(2)]
    balancer.workers["b"].go.set()
    for each in asking:  # in turn: one of the two
        each.start()
    assert slow.asked.wait(20)
    assert smg.drain(one, check=True).changed and one.record.read() == {}
    done = smg.drain(one)
    assert done.changed and done.ours
    assert who_answers(balancer.port) == {"b"}
    assert smg.drain(one) == Done(False, True, done.message.replace("off", "not on"))
    slow.go.set()
    for each in asking:
        each.join(30)
    assert sorted(answers) == ["a", "b"]
    assert smg.ready(one, check=True).changed and who_answers(balancer.port) == {"b"}
    assert smg.ready(one).changed
    until(lambda: who_answers(balancer.port) == {"a", "b"})
    assert not smg.ready(one).changed


def test_a_worker_that_others_took_off_stays_off(balancer: Balancer, tmp_path: Path) -> None:
    other = place(balancer, tmp_path / "other")
    smg.drain(other)
    try:
        one = place(balancer, tmp_path)
        done = smg.drain(one)
        assert not done.changed and not done.ours
        assert not smg.ready(one).changed
        assert who_answers(balancer.port) == {"b"}
    finally:
        smg.ready(other)


def test_a_priority_that_was_set_comes_back(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path)
    smg.drain(one)
    one.record.forget(one.worker)
    one.record.note(one.worker, {"priority": 70, "cost": 2.0})
    smg.ready(one)
    now = one.look()
    assert now is not None and (now["priority"], now["cost"]) == (70, 2.0)
    smg.drain(one)
    assert one.record.read()[one.worker] == {"priority": 70, "cost": 2.0}
    smg.ready(one)


def test_what_is_no_gateway_is_said(balancer: Balancer) -> None:
    with pytest.raises(BalancerError, match=r"does not answer GET /workers as smg does"):
        smg.asker("http://127.0.0.1:1")("GET", "/workers", None)
    with pytest.raises(BalancerError, match=r"refuses DELETE /workers/nobody: 4"):
        smg.asker(f"http://127.0.0.1:{balancer.port}")("DELETE", "/workers/nobody", None)
