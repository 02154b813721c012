# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `service_stop` must not call freed: each proof is shown something that is still held, and has to name it.

The services are throw-away ones beside the engine, which goes on serving.
"""

from __future__ import annotations

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
# A control group that no unit owns, in whichever hierarchy systemd keeps its units on this machine.
ADOPT = """
for tree in /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    if [ -e $tree/cgroup.procs ]; then mkdir -p $tree/llmfleet-test && echo {pid} > $tree/llmfleet-test/cgroup.procs && exit 0; fi
done; exit 1
"""
FORGET = "rmdir /sys/fs/cgroup/systemd/llmfleet-test /sys/fs/cgroup/llmfleet-test 2>/dev/null || true"


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
    return module(name(host), "service_stop", **given)


@pytest.fixture(autouse=True)
def as_before(node: Host) -> Iterator[None]:
    """The engine serves on, and nothing of the test is left."""
    before = serving(node)
    yield
    # Named by a command line that nothing else has; none may be left, and that is no error.
    root(node, f"systemctl stop {VICTIM} {STRANGER} 2>/dev/null; pkill --full --exact 'sleep 86[0-9][0-9]'; {FORGET}")
    faults.gpu(cache_folder(), node_named(name(node)), [])
    assert serving(node) == before


def test_a_process_that_its_unit_leaves_behind(node: Host) -> None:
    start(node, VICTIM, "/bin/bash -c 'sleep 8601 & exec sleep 8602'", "KillMode=process")
    pid = left_over(node, "sleep 8601")
    result = stop(node)
    assert (result["failed"], result["stopped"]) == (True, True)
    assert result["msg"].startswith(f"{VICTIM}.service was told to stop, but ")
    assert len(result["held"]) == 1 and f"pid {pid} " in result["held"][0]
    assert result["held"][0].endswith("still runs") and result["held"][0] in result["msg"]
    # With the process gone, the same call has nothing to complain about.
    root(node, f"kill {pid}")
    again = stop(node)
    assert (again["failed"], again["held"]) == (False, [])


def test_a_process_that_left_its_units_control_group(node: Host) -> None:
    start(node, VICTIM, "/bin/bash -c '(sleep 8611 &); exec sleep 8612'")
    pid = left_over(node, "sleep 8611")
    root(node, ADOPT.format(pid=pid))
    result = stop(node)
    assert result["failed"], result
    assert show(node, VICTIM, "ActiveState") == {"ActiveState": "inactive"}
    assert len(result["held"]) == 1 and f"pid {pid} " in result["held"][0]
    assert result["held"][0].endswith("still runs")


def test_a_port_that_a_stranger_holds(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 8621")
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
    start(node, VICTIM, "/bin/sleep 8631", "Environment=LLMFLEET_SIM_GPU=2,5:4096")
    faults.gpu(cache_folder(), node_named(name(node)), ["hold_seconds=300"])
    result = stop(node)
    assert (result["failed"], result["stopped"]) == (True, True), result
    assert [one["memory"] for one in result["before"]["gpu_processes"]] == [4096, 4096]
    assert result["held"] == ["GPUs 2, 5: 4096 MiB in use that no listed process accounts for"]
    # As soon as the memory is free, it is proven so.
    faults.gpu(cache_folder(), node_named(name(node)), [])
    again = stop(node)
    assert (again["failed"], again["held"]) == (False, [])


def test_gpu_memory_that_becomes_free_in_time(node: Host) -> None:
    start(node, VICTIM, "/bin/sleep 8641", "Environment=LLMFLEET_SIM_GPU=2,5:4096")
    faults.gpu(cache_folder(), node_named(name(node)), ["hold_seconds=3"])
    result = stop(node, gpu_timeout=60)
    assert (result["failed"], result["stopped"], result["held"]) == (False, True, []), result
    assert result["seconds"] >= 3
