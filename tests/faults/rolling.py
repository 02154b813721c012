# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of broken rollouts share: three nodes behind a real HAProxy, rollouts, what serves, what is left."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from benchmarks.traffic import Balancer, HAProxy, haproxy
from fleet.__main__ import node_named
from tests.faults.breaking import RECORD, Deployment, fleet
from tests.fleet.control import INVENTORY, Run
from tests.fleet.hosts import name, root, serving

# Fewer do for the tests that ask for no more.
NODES = os.environ.get("LLMFLEET_FAULT_NODES", "node1,node2,node3").split(",")
ALL = ",".join(NODES)
SERIAL = [1, "100%"]
_STATES = re.compile(r"^\s+(?:msg: )?(node\d(?:-\w)?)  ([a-z ]+?)  +\S", re.MULTILINE)

needs_haproxy = pytest.mark.skipif(
    not (shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")), reason="haproxy is not installed"
)


@pytest.fixture(scope="module")
def balancer() -> Iterator[HAProxy]:
    """HAProxy in front of the nodes."""
    with haproxy(30081, NODES) as one:
        yield one


@pytest.fixture(scope="module")
def hosts() -> list[Host]:
    """The three nodes."""
    return [testinfra.get_host(f"ansible://{node}", ansible_inventory=str(INVENTORY)) for node in NODES]


@pytest.fixture
def served(hosts: list[Host], balancer: Balancer) -> dict[str, str]:
    """All three serve, deployed and concluded, by a rollout if need be; by node, the version that it serves."""
    for node in NODES:
        power_comes_back(node)
    with contextlib.suppress(AssertionError):
        nothing_left(hosts, balancer)
        if not any('"cutover"' in root(host, f"grep phase {RECORD}/snapshot.json") for host in hosts):
            return versions(hosts)
    rolled_out(balancer, {}).must_pass()
    return versions(hosts)


def rollout(
    balancer: Balancer, variables: dict[str, Any], within: list[str] | None = None, inventory: Path = INVENTORY
) -> Deployment:
    """A rollout under way."""
    given = {"sglang_serial": SERIAL, **balancer.hooks, **variables}
    return Deployment(given, limit=ALL, within=within, inventory=inventory)


@contextlib.contextmanager
def under_way(balancer: Balancer, variables: dict[str, Any]) -> Iterator[Deployment]:
    """A rollout that does not outlive the test."""
    one = rollout(balancer, variables)
    try:
        yield one
    finally:
        if one.runs():
            one.kill()


def rolled_out(balancer: Balancer, variables: dict[str, Any], timeout: float = 900) -> Run:
    """A rollout to its end."""
    return rollout(balancer, variables).end(timeout)


def states(run: Run) -> dict[str, str]:
    """Each node's state in the recap."""
    return dict(_STATES.findall(run.output.rpartition("TASK [Say what serves]")[2]))


def version(host: Host) -> str:
    """Which of the tests' deployments a node serves; "" when it is the inventory's own. It answers rightly."""
    pid = serving(host).pid
    found = root(host, f"tr '\\0' '\\n' < /proc/{pid}/environ | grep ^LLMFLEET_TEST= || true")
    return found.strip().partition("=")[2]


def versions(hosts: list[Host]) -> dict[str, str]:
    """By node, what it serves."""
    return {name(host): version(host) for host in hosts}


def nothing_left(hosts: list[Host], balancer: Balancer) -> None:
    """Nothing is out of the load balancer, and no lock is held."""
    assert balancer.out() == []
    for host in hosts:
        left = root(host, "ls /var/lib/llmfleet/*/drained.json /var/lib/llmfleet/lock.json 2>/dev/null || true")
        assert left == "", f"{name(host)}: {left}"


def converges(hosts: list[Host], balancer: Balancer, wanted: dict[str, Any]) -> None:
    """A plain rerun brings all three to what is wanted, and the run after changes nothing."""
    rolled_out(balancer, wanted).must_pass()
    now = versions(hosts)
    assert set(now.values()) == {wanted["sglang_environment"]["LLMFLEET_TEST"]}, now
    nothing_left(hosts, balancer)
    again = rolled_out(balancer, wanted).must_pass()
    assert set(states(again).values()) == {"unchanged"} and set(again.changed.values()) <= {0}, again.output


def power_comes_back(node: str) -> None:
    """Boot a node, if it is off. Its boot ends when its engine answers, which a busy machine takes minutes for."""
    with contextlib.suppress(AssertionError):
        fleet("power", node, "on")


def link(node: str, state: str) -> None:
    """Cut a node's network, or give it back."""
    subprocess.run(["ip", "link", "set", node_named(node).veth, state], check=True, timeout=20)


def engine(node: str) -> list[int]:
    """The processes on a node that run from a release, as this machine numbers them."""
    netns = node_named(node).netns
    listed = subprocess.run(["ip", "netns", "pids", netns], check=True, capture_output=True, text=True, timeout=20)
    found = []
    for pid in listed.stdout.split():
        with contextlib.suppress(OSError):
            words, own = Path(f"/proc/{pid}/cmdline").read_bytes(), Path(f"/proc/{pid}/comm").read_text()
            if b"/opt/sglang/releases/" in words or own.startswith("sglang::"):
                found.append(int(pid))
    return found


@contextlib.contextmanager
def slow(node: str, factor: int = 10) -> Iterator[None]:
    """Let all that runs from a release on a node run for one part of `factor` of the time, until the block ends."""
    done = threading.Event()

    def tell(pids: list[int], what: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    def pace() -> None:
        while not done.is_set():
            stopped = engine(node)
            tell(stopped, signal.SIGSTOP)
            done.wait(1 - 1 / factor)
            tell(stopped, signal.SIGCONT)
            done.wait(1 / factor)

    pacing = threading.Thread(target=pace, daemon=True)
    pacing.start()
    try:
        yield
    finally:
        done.set()
        pacing.join(20)
        tell(engine(node), signal.SIGCONT)
