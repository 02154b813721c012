# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `service_stop` must not call freed: each proof is shown something that is still held, and has to name it.

The services are throw-away ones beside the engine, which goes on serving.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from testinfra.host import Host

from fleet import faults
from fleet.__main__ import node_named
from fleet.config import cache_folder
from tests.fleet.control import module
from tests.fleet.hosts import address, name, root, serving, show, wait

VICTIM, STRANGER = "llmfleet-test-victim", "llmfleet-test-stranger"
PORT = 31001
# A control group that no unit owns, in each hierarchy that systemd keeps its units in on this machine.
TREES = "/sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup"
MOVE_OUT = f"""
for tree in {TREES}; do
    [ ! -e $tree/cgroup.procs ] || {{ mkdir -p $tree/llmfleet-test && echo %s > $tree/llmfleet-test/cgroup.procs; }}
done
"""
FORGET = f"for tree in {TREES}; do [ ! -d $tree/llmfleet-test ] || rmdir $tree/llmfleet-test; done"


def start(host: Host, unit: str, command: str, *properties: str) -> int:
    """Start a throw-away service; its main process."""
    options = " ".join(f"--property={one}" for one in properties)
    root(host, f"systemd-run --quiet --collect --unit={unit} {options} {command}")
    return int(show(host, unit, "MainPID")["MainPID"])


def left_over(host: Host, pattern: str) -> int:
    """The process whose command line matches."""
    found: list[str] = []

    def there() -> bool:
        found[:] = root(host, f"pgrep --full --exact '{pattern}' || true").split()
        return len(found) == 1

    wait(f"one process {pattern}", there, timeout=10, interval=0.2)
    return int(found[0])


def stop(host: Host, **options: Any) -> dict[str, Any]:
    """Ask the module to stop the victim and prove it gone."""
    given = {"name": VICTIM, "timeout": 5, "gpu_timeout": 3, "tolerate": ["sglang-qwen"], **options}
    return module(name(host), "service_stop", given)


@pytest.fixture(autouse=True)
def as_before(node: Host) -> Iterator[None]:
    """The engine serves on, and nothing of the test is left."""
    before = serving(node)
    yield
    root(node, f"systemctl stop {VICTIM} {STRANGER} 2>/dev/null || true")
    faults.gpu(cache_folder(), node_named(name(node)), [])
    assert serving(node) == before


@pytest.fixture
def doomed(node: Host) -> Iterator[list[int]]:
    """Processes that are ended after the test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        root(node, f"kill {pid} 2>/dev/null || true")
        wait(f"{pid} to end", lambda pid=pid: not node.file(f"/proc/{pid}").exists, timeout=10)  # type: ignore[misc]
    root(node, FORGET)


def test_a_process_that_its_unit_leaves_behind(node: Host, doomed: list[int]) -> None:
    start(node, VICTIM, "/bin/bash -c 'sleep 601 & exec sleep 602'", "KillMode=process")
    pid = left_over(node, "sleep 601")
    doomed.append(pid)
    result = stop(node)
    assert (result["failed"], result["stopped"]) == (True, True)
    assert result["msg"].startswith(f"{VICTIM}.service was told to stop, but ")
    assert len(result["held"]) == 1 and f"pid {pid} " in result["held"][0]
    assert result["held"][0].endswith("still runs") and result["held"][0] in result["msg"]
    # With the process gone, the same call has nothing to complain about.
    root(node, f"kill {pid}")
    again = stop(node)
    assert (again["failed"], again["held"]) == (False, [])


def test_a_process_that_left_its_units_control_group(node: Host, doomed: list[int]) -> None:
    start(node, VICTIM, "/bin/bash -c '(sleep 611 &); exec sleep 612'")
    pid = left_over(node, "sleep 611")
    doomed.append(pid)
    root(node, MOVE_OUT, str(pid))
    result = stop(node)
    assert result["failed"], result
    assert show(node, VICTIM, "ActiveState") == {"ActiveState": "inactive"}
    assert len(result["held"]) == 1 and f"pid {pid} " in result["held"][0]
    assert result["held"][0].endswith("still runs")


def test_a_port_that_a_stranger_holds(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 621")
    server = f"/usr/bin/python3 -m http.server --directory /mnt --bind {address(node)} {PORT}"
    pid = start(node, STRANGER, server)
    wait("the stranger to listen", lambda: node.socket(f"tcp://{address(node)}:{PORT}").is_listening, timeout=20)
    result = stop(node, ports=[PORT], address=address(node))
    assert result["failed"], result
    assert len(result["held"]) == 1
    assert f"port {PORT}" in result["held"][0] and f"pid {pid} " in result["held"][0]
    assert f"{STRANGER}.service" in result["held"][0]
    # Nobody else's business: another port, or one that is tolerated.
    again = stop(node, ports=[PORT + 1], address=address(node))
    assert (again["failed"], again["held"]) == (False, [])
    again = stop(node, ports=[PORT], address=address(node), tolerate=["sglang-qwen", STRANGER])
    assert (again["failed"], again["held"]) == (False, [])


def test_gpu_memory_that_stays_in_use(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 631", "Environment=LLMFLEET_SIM_GPU=2,5:4096")
    faults.gpu(cache_folder(), node_named(name(node)), ["hold_seconds=300"])
    result = stop(node)
    assert (result["failed"], result["stopped"]) == (True, True), result
    assert [one["memory"] for one in result["before"]["gpu_processes"]] == [4096, 4096]
    # 4,096 MiB, and the few that a driver keeps for itself.
    [held] = result["held"]
    assert re.fullmatch(r"GPUs 2, 5: 4\d\d\d MiB in use that no listed process accounts for", held), held
    # As soon as the memory is free, it is proven so.
    faults.gpu(cache_folder(), node_named(name(node)), [])
    again = stop(node)
    assert (again["failed"], again["held"]) == (False, [])


def test_gpu_memory_that_becomes_free_in_time(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 641", "Environment=LLMFLEET_SIM_GPU=2,5:4096")
    faults.gpu(cache_folder(), node_named(name(node)), ["hold_seconds=3"])
    result = stop(node, gpu_timeout=60)
    assert (result["failed"], result["stopped"], result["held"]) == (False, True, []), result
    assert result["seconds"] >= 3


def test_gpu_memory_of_a_stranger_is_named(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 651")
    pid = start(node, STRANGER, "/bin/sleep 652", "Environment=LLMFLEET_SIM_GPU=3:4096")
    result = stop(node)
    said = [line for line in result["said"].splitlines() if f"pid {pid} " in line and "4096 MiB" in line]
    assert said and "GPU 3: 4096 MiB held by " in said[0]
    assert f"{STRANGER}.service" in said[0]
    assert show(node, STRANGER, "MainPID") == {"MainPID": str(pid)}
