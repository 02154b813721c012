# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout over nodes behind a real SMG, and one whose canary answers wrongly, under load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testinfra.host import Host

from benchmarks.traffic import SMG, clients, smg
from tests.faults.breaking import Deployment, another
from tests.faults.rolling import ALL, NODES, hosts, nothing_left, power_comes_back, rolled_out, states, versions
from tests.faults.test_answers import Repository, shuffled
from tests.fleet.hosts import SERVED_MODEL

__all__ = ["hosts", "shuffled"]  # pytest finds the fixtures by their names


@pytest.fixture(scope="module")
def gateway(hosts: list[Host]) -> Iterator[SMG]:
    """SMG in front of the nodes, which all serve, by a deployment if need be."""
    for node in NODES:
        power_comes_back(node)
    try:
        versions(hosts)
    except AssertionError:
        Deployment(limit=ALL).end(timeout=580).must_pass()
    with smg(NODES) as one:
        yield one


def all_ready(gateway: SMG) -> None:
    """All are on the gateway's list and get requests."""
    assert list(gateway.workers().values()) == ["ready"] * len(NODES), gateway.workers()


@pytest.mark.faults(0)
def test_a_full_rollout_loses_no_request(hosts: list[Host], gateway: SMG) -> None:
    wanted: dict[str, Any] = another()
    asking = clients(gateway, SERVED_MODEL, rate=1)
    with asking.at_work():
        end = rolled_out(gateway, wanted).must_pass()
    assert set(states(end).values()) == {"new"}, end.output
    assert set(versions(hosts).values()) == {wanted["sglang_environment"]["LLMFLEET_TEST"]}
    nothing_left(hosts, gateway)
    all_ready(gateway)
    assert [one.wrong for one in asking.lost] == []
    again = rolled_out(gateway, wanted).must_pass()
    assert set(states(again).values()) == {"unchanged"} and set(again.changed.values()) <= {0}, again.output


def test_a_canary_that_answers_wrongly_loses_no_request(hosts: list[Host], gateway: SMG, shuffled: Repository) -> None:
    before = versions(hosts)
    wrong = another(sglang_hub_endpoint=shuffled.endpoint, sglang_checkpoint_revision=shuffled.revision)
    asking = clients(gateway, SERVED_MODEL, rate=1)
    with asking.at_work():
        end = rolled_out(gateway, wrong)
    assert end.rc != 0 and "gave a wrong answer" in end.output
    assert states(end) == {**dict.fromkeys(NODES, "untouched"), NODES[0]: "went back"}, end.output
    assert versions(hosts) == before
    nothing_left(hosts, gateway)
    all_ready(gateway)
    assert [one.wrong for one in asking.lost] == []
