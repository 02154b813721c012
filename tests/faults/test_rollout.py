# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout over three nodes behind a real HAProxy, broken in its middle: who serves what, what is out, a rerun."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from testinfra.host import Host

from benchmarks.traffic import HAProxy, clients
from fleet.__main__ import node_named
from tests.faults.breaking import another, answers, fleet
from tests.faults.rolling import (
    NODES,
    balancer,
    converges,
    hosts,
    link,
    needs_haproxy,
    nothing_left,
    power_comes_back,
    rolled_out,
    rollout,
    served,
    states,
    under_way,
    version,
    versions,
)
from tests.faults.test_answers import Repository, shuffled
from tests.fleet.hosts import SERVED_MODEL, main_pid, wait
from tests.fleet.reporting import end_connections

# As a rollout goes through them; each is where the controller is killed once.
BOUNDARIES = [
    "TASK [Look at the host]",
    "TASK [Have the checkpoint]",
    "TASK [Go on with the hosts that are prepared, if enough are]",
    "TASK [Drain] *",
    "TASK [Put the new service in the old one's place]",
    ": Start the service, if it does not run what is wanted] *",
    "TASK [Prove that it answers rightly]",
    "TASK [Put the host back into the load balancer]",
]
__all__ = ["balancer", "hosts", "served", "shuffled"]  # pytest finds the fixtures by their names

pytestmark = needs_haproxy


@pytest.mark.faults(8)
def test_a_controller_that_is_killed_at_each_step(hosts: list[Host], balancer: HAProxy, served: dict[str, str]) -> None:
    wanted: dict[str, Any] = another()
    asking = clients(balancer, SERVED_MODEL, rate=0.5)
    with asking.at_work():
        for boundary in BOUNDARIES:
            with under_way(balancer, wanted) as run:
                run.until(boundary)
                run.kill()
            # Nobody but the canary was touched, and it alone may be out.
            assert {node: version(host) for node, host in zip(NODES[1:], hosts[1:], strict=True)} == {
                node: served[node] for node in NODES[1:]
            }, boundary
            assert set(balancer.out()) <= {"sglang/node1"}, boundary
        converges(hosts, balancer, wanted)
    assert [one.wrong for one in asking.lost] == []


@pytest.mark.faults(2)
def test_a_network_that_is_cut_in_a_batch_and_a_power_cut_after_one(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str], pytestconfig: pytest.Config
) -> None:
    wanted: dict[str, Any] = another()
    before = main_pid(hosts[1])
    try:
        with under_way(balancer, wanted) as run:
            wait("node2 to be stopped", lambda: main_pid(hosts[1]) != before, timeout=400, interval=0.5)
            link("node2", "down")
            fleet("power", "node1", "off")
            end = run.end(timeout=400)
    finally:
        link("node2", "up")
        end_connections(pytestconfig)
        power_comes_back("node1")
    assert end.rc != 0, end.output
    found = states(end)
    assert found["node2"] == "lost" and found["node3"] == "new", end.output
    # Its batch had ended well; that it was lost later says the recap of Ansible, and the exit status.
    assert found["node1"] == "new" and end.recap["node1"]["unreachable"] == 1, end.output
    assert version(hosts[2]) == wanted["sglang_environment"]["LLMFLEET_TEST"]
    assert balancer.out() == ["sglang/node2"]  # it may not serve, so it stays out
    converges(hosts, balancer, wanted)


def test_a_host_without_power_before_its_batch(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str], pytestconfig: pytest.Config
) -> None:
    end_connections(pytestconfig)
    fleet("power", "node3", "off")
    try:
        end = rolled_out(balancer, another())
    finally:
        end_connections(pytestconfig)
        power_comes_back("node3")
    assert end.rc != 0
    assert states(end) == {"node1": "untouched", "node2": "untouched", "node3": "unreachable"}, end.output
    assert versions(hosts[:2]) == {node: served[node] for node in NODES[:2]}
    answers(hosts[2])
    nothing_left(hosts, balancer)


def test_a_canary_that_answers_wrongly_loses_no_request(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str], shuffled: Repository
) -> None:
    wrong = another(sglang_hub_endpoint=shuffled.endpoint, sglang_checkpoint_revision=shuffled.revision)
    asking = clients(balancer, SERVED_MODEL, rate=1)
    with asking.at_work():
        end = rolled_out(balancer, wrong)
    assert end.rc != 0 and "gave a wrong answer" in end.output
    assert states(end) == {"node1": "went back", "node2": "untouched", "node3": "untouched"}, end.output
    assert versions(hosts) == served
    nothing_left(hosts, balancer)
    assert [one.wrong for one in asking.lost] == []


@pytest.mark.faults(3)
def test_another_controller_in_the_middle_and_an_owner_that_is_dead(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str]
) -> None:
    wanted: dict[str, Any] = another()
    # Another controller is one by another name.
    elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname ops2 && exec "$0" "$@"']
    with under_way(balancer, wanted) as run:
        run.until("TASK [Drain] *")
        refused = rollout(balancer, another(), within=elsewhere).end(timeout=200)
        assert refused.rc != 0 and "works on this host since" in refused.output, refused.output
        assert set(states(refused).values()) == {"not prepared"}, refused.output
        assert run.runs()
        run.kill()
    [taker] = set(re.findall(r"sglang_lock_broken=([0-9a-f]{12})", refused.output))
    again = rollout(balancer, wanted, within=elsewhere).end(timeout=200)
    assert again.rc != 0 and f"sglang_lock_broken={taker}" in again.output, again.output
    # A host that is slow by a factor of ten or more takes its time, and no more.
    veth = node_named("node3").veth
    shape = ["tc", "qdisc", "replace", "dev", veth, "root", "tbf", "rate", "20mbit", "burst", "32kb", "latency", "50ms"]
    subprocess.run(shape, check=True, timeout=20)
    try:
        over = rollout(balancer, {**wanted, "sglang_lock_broken": taker}, within=elsewhere).end(timeout=580)
        over.must_pass()
        assert "took over the lock of" in over.output
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", veth, "root"], check=True, timeout=20)
    assert set(versions(hosts).values()) == {wanted["sglang_environment"]["LLMFLEET_TEST"]}
    nothing_left(hosts, balancer)
