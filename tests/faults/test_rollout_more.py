# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout over three nodes: interrupted, its canary without power, its hosts' clocks apart, or one of them slow."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from benchmarks.traffic import HAProxy, clients
from tests.faults.breaking import another, answers, fleet
from tests.faults.rolling import (
    NODES,
    balancer,
    converges,
    hosts,
    needs_haproxy,
    nothing_left,
    power_comes_back,
    rolled_out,
    rollout,
    served,
    slow,
    states,
    under_way,
    version,
    versions,
)
from tests.fleet.hosts import SERVED_MODEL, main_pid, root, wait
from tests.fleet.reporting import end_connections

# The interpreter by which Ansible runs on each node, and on the controller for the load balancer.
PYTHON = "/var/tmp/llmfleet-test-python"
HOURS = (0, 1, -1)  # of each node in turn
# What Python takes the calendar from, set by hours; timers are left as they are.
_CLOCK = """
import datetime, time
_off, _time, _time_ns = {hours} * 3600, time.time, time.time_ns
time.time, time.time_ns = lambda: _time() + _off, lambda: _time_ns() + _off * 10**9
class _Clock(datetime.datetime):
    now = classmethod(lambda cls, tz=None: super(_Clock, cls).now(tz) + datetime.timedelta(seconds=_off))
    utcnow = classmethod(lambda cls: super(_Clock, cls).utcnow() + datetime.timedelta(seconds=_off))
datetime.datetime = _Clock
"""
__all__ = ["balancer", "hosts", "served"]  # pytest finds the fixtures by their names

pytestmark = needs_haproxy


def test_ctrl_c_in_the_middle_of_a_batch(hosts: list[Host], balancer: HAProxy, served: dict[str, str]) -> None:
    wanted: dict[str, Any] = another()
    before = main_pid(hosts[1])
    asking = clients(balancer, SERVED_MODEL, rate=0.5)
    with asking.at_work():
        with under_way(balancer, wanted) as run:
            wait("node2 to be stopped", lambda: main_pid(hosts[1]) != before, timeout=500, interval=0.5)
            run.interrupt()
            end = run.end(timeout=120)
        assert end.rc != 0, end.output
        # The canary had ended well and serves. Nobody knows of the batch after it, which may be out.
        assert version(hosts[0]) == wanted["sglang_environment"]["LLMFLEET_TEST"]
        assert "sglang/node2" in balancer.out() and "sglang/node1" not in balancer.out()
        converges(hosts, balancer, wanted)
    assert [one.wrong for one in asking.lost] == []


def test_a_canary_that_loses_its_power_in_its_batch(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str], pytestconfig: pytest.Config
) -> None:
    wanted: dict[str, Any] = another()
    before = main_pid(hosts[0])
    try:
        with under_way(balancer, wanted) as run:
            wait("node1 to be stopped", lambda: main_pid(hosts[0]) != before, timeout=500, interval=0.5)
            fleet("power", "node1", "off")
            end = run.end(timeout=400)
    finally:
        end_connections(pytestconfig)
        power_comes_back("node1")
    assert end.rc != 0
    assert states(end) == {"node1": "lost", "node2": "untouched", "node3": "untouched"}, end.output
    assert versions(hosts[1:]) == {node: served[node] for node in NODES[1:]}
    assert balancer.out() == ["sglang/node1"]  # nobody has seen it serve, so it stays out
    answers(hosts[0])
    converges(hosts, balancer, wanted)


@pytest.fixture
def clocks(hosts: list[Host]) -> Iterator[dict[str, Any]]:
    """Ansible's Python on node2 is an hour ahead, on node3 an hour behind; the variable that says so."""
    Path(PYTHON).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    Path(PYTHON).chmod(0o755)
    for host, hours in zip(hosts, HOURS, strict=False):
        root(host, f"mkdir -p {PYTHON}.d && printf %s > {PYTHON}.d/sitecustomize.py", _CLOCK.format(hours=hours))
        runs = f'#!/bin/sh\nPYTHONPATH={PYTHON}.d exec /usr/bin/python3 "$@"\n'
        root(host, f"chmod -R a+rX {PYTHON}.d && printf %s > {PYTHON} && chmod 755 {PYTHON}", runs)
    yield {"ansible_python_interpreter": PYTHON}
    Path(PYTHON).unlink()
    for host in hosts:
        root(host, f"rm -rf {PYTHON} {PYTHON}.d")


def test_clocks_that_are_an_hour_apart(
    hosts: list[Host], balancer: HAProxy, served: dict[str, str], clocks: dict[str, Any]
) -> None:
    wanted: dict[str, Any] = another(**clocks)
    elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname ops2 && exec "$0" "$@"']
    with under_way(balancer, wanted) as run:
        run.until("TASK [Drain] *", timeout=400)
        began = [float(json.loads(root(host, "cat /var/lib/llmfleet/lock.json"))["taken_at"]) for host in hosts]
        # They are apart, and each lock is by its own host's clock.
        for hours, moment in zip(HOURS, began, strict=False):
            assert abs(moment - began[0] - hours * 3600) < 600, began
        refused = rollout(balancer, {**another(), **clocks}, within=elsewhere).end(timeout=300)
        assert set(states(refused).values()) == {"not prepared"}, refused.output
        told = r"works on this host since \d+ (?:s|min) \(.*\)\. The lock expires in (?:5 h|6 h 0 min)"
        assert re.search(told, refused.output)
        run.end(timeout=580).must_pass()
    assert set(versions(hosts).values()) == {wanted["sglang_environment"]["LLMFLEET_TEST"]}
    nothing_left(hosts, balancer)
    again = rolled_out(balancer, wanted).must_pass()
    assert set(states(again).values()) == {"unchanged"} and set(again.changed.values()) <= {0}, again.output


def test_a_host_whose_engine_is_ten_times_slower(hosts: list[Host], balancer: HAProxy, served: dict[str, str]) -> None:
    # Patience is the operator's to give: its start takes as much longer.
    wanted: dict[str, Any] = another(sglang_ready_timeout=1500, sglang_stop_timeout=300)
    asking = clients(balancer, SERVED_MODEL, rate=0.3)
    with asking.at_work():
        with slow(NODES[-1]):
            end = rolled_out(balancer, wanted, timeout=2400).must_pass()
            assert states(end) == dict.fromkeys(NODES, "new"), end.output
            nothing_left(hosts, balancer)
        again = rolled_out(balancer, wanted).must_pass()
    assert set(states(again).values()) == {"unchanged"} and set(again.changed.values()) <= {0}, again.output
    assert [one.wrong for one in asking.lost] == []
