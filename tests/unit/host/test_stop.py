# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping a service: what counts as gone, and that each proof can fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import (
    KILL_GRACE,
    CannotStop,
    Machine,
    Report,
    Request,
    stop,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import SystemdError
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

KIMI, QWEN = "sglang-kimi.service", "sglang-qwen.service"
REQUEST = Request(KIMI, ports=(30000,), address="10.77.0.11", tolerate=(QWEN,), timeout=60, disable=True)


def machine(host: FakeHost) -> Machine:
    return Machine(host.run, host.proc, host.shm, host.clock, host.sleep, host.send)


def go(host: FakeHost, request: Request = REQUEST, check_mode: bool = False) -> Report:
    return stop(request, machine(host), check_mode)


@pytest.fixture
def kimi(host: FakeHost) -> FakeHost:
    """A running service of three processes; the scheduler left the control group and lost its parent."""
    host.add_unit(KIMI, main_pid=10, InvocationID="abc", TimeoutStopUSec="1min 30s")
    host.add_process(10, unit=KIMI, listens=[("0.0.0.0", 30000)], env={"INVOCATION_ID": "abc"})
    host.add_process(11, "sglang::detokenizer", unit=KIMI, ppid=10)
    host.add_process(12, "sglang::scheduler", gpu=80000, env={"INVOCATION_ID": "abc"}, listens=[("127.0.0.1", 41234)])
    host.add_process(99, "bystander", listens=[("127.0.0.1", 30000)])

    def end(pid: int) -> Callable[[], None]:
        return lambda: host.remove_process(pid)

    def stopped() -> None:
        host.at(2, end(11))
        host.at(4, end(10))
        host.at(4, lambda: host.units[KIMI].update(ActiveState="inactive", SubState="dead", MainPID="0"))
        host.at(5, end(12))

    host.on_stop = stopped
    return host


def test_a_running_service_is_stopped_disabled_and_proven_gone(kimi: FakeHost) -> None:
    report = go(kimi)
    assert report.held == []
    assert (report.stopped, report.disabled, report.changed) == (True, True, True)
    assert kimi.orders == [["systemctl", "stop", "--no-block", "--", KIMI], ["systemctl", "disable", "--", KIMI]]
    assert [one["pid"] for one in report.before["processes"]] == [10, 11, 12]
    assert {one["port"] for one in report.before["listeners"]} == {30000, 41234}
    assert {one["memory"] for one in report.before["gpu_processes"]} == {80000}
    assert report.after["processes"] == [] and report.after["gpu_memory_used"] == {"0": 0, "1": 0}
    assert 5 <= report.seconds <= 7


def test_a_second_run_changes_nothing_while_the_successor_serves(kimi: FakeHost) -> None:
    go(kimi)
    kimi.orders.clear()
    kimi.add_unit(QWEN, main_pid=20)
    kimi.add_process(20, unit=QWEN, listens=[("10.77.0.11", 30000)], gpu=85000)
    kimi.stray_memory = 5000
    report = go(kimi)
    assert (report.changed, report.held, kimi.orders) == (False, [], [])


def test_check_mode_says_what_would_happen_and_does_nothing(kimi: FakeHost) -> None:
    report = go(kimi, check_mode=True)
    assert report.changed and report.stopped and report.disabled
    assert kimi.orders == [] and kimi.now == 0
    assert report.after == {} and len(report.before["processes"]) == 3


def test_a_missing_unit_is_fine(host: FakeHost) -> None:
    report = go(host)
    assert (report.changed, report.held) == (False, [])
    assert report.before["unit"]["load"] == "not-found"


def test_a_stopped_but_enabled_unit_is_only_disabled(host: FakeHost) -> None:
    host.add_unit(KIMI, active="inactive")
    report = go(host)
    assert (report.stopped, report.disabled) == (False, True)
    assert host.orders == [["systemctl", "disable", "--", KIMI]]


@pytest.mark.parametrize(
    ("load", "state"),
    [("loaded", "disabled"), ("loaded", "static"), ("masked", "masked"), ("masked", "masked-runtime")],
)
def test_what_no_reboot_starts_is_stopped_and_not_disabled(kimi: FakeHost, load: str, state: str) -> None:
    """`systemctl mask` leaves a service running; there is nothing to disable then."""
    kimi.units[KIMI].update(LoadState=load, UnitFileState=state)
    report = go(kimi)
    assert (report.stopped, report.disabled, report.held) == (True, False, [])
    assert kimi.orders == [["systemctl", "stop", "--no-block", "--", KIMI]]
    kimi.orders.clear()
    again = go(kimi)
    assert (again.changed, kimi.orders) == (False, [])


def test_what_was_enabled_until_the_next_boot_is_disabled_once(host: FakeHost) -> None:
    host.add_unit(KIMI, active="inactive", UnitFileState="enabled-runtime")
    assert go(host).disabled
    assert host.orders == [["systemctl", "disable", "--runtime", "--", KIMI]]
    assert not go(host).changed


def test_what_a_disable_leaves_enabled_is_told(host: FakeHost) -> None:
    host.add_unit(KIMI, active="inactive")
    run = host.run

    def deaf(argv: Sequence[str], timeout: float) -> Outcome:
        return Outcome(tuple(argv), 0) if "disable" in argv else run(argv, timeout)

    report = stop(REQUEST, Machine(deaf, host.proc, host.shm, host.clock, host.sleep, host.send))
    assert (report.disabled, report.changed) == (False, False)
    assert report.held == ["it stays enabled: systemd says 'enabled' of it after systemctl disable"]


def test_a_unit_whose_file_is_gone_is_still_stopped(kimi: FakeHost) -> None:
    kimi.units[KIMI].update(LoadState="not-found", UnitFileState="")
    report = go(kimi)
    assert (report.stopped, report.disabled, report.held) == (True, False, [])


def test_a_service_that_ignores_its_stop_is_named(kimi: FakeHost) -> None:
    kimi.on_stop = lambda: None
    report = go(kimi)
    text = "; ".join(report.held)
    assert "still deactivating (stop-sigterm); systemd kills it after 1min 30s" in text
    assert "pid 12 (sglang::scheduler), unit session-1.scope still runs" in text
    assert "port 30000 on 0.0.0.0: pid 10" in text
    assert kimi.now == pytest.approx(60 + KILL_GRACE, abs=1.1)
    assert report.killed == [f"{KIMI}, by SIGKILL"]


def test_a_worker_outside_the_control_group_that_lives_on_is_named(kimi: FakeHost) -> None:
    original = kimi.on_stop
    kimi.on_stop = lambda: (original(), kimi._events.pop())[0]
    report = go(kimi)
    assert report.held == ["pid 12 (sglang::scheduler), unit session-1.scope still runs"]


def test_a_process_started_while_stopping_belongs_to_the_proof(kimi: FakeHost) -> None:
    kimi.at(1, lambda: kimi.add_process(13, "late", unit=KIMI))
    assert go(kimi).held == ["pid 13 (late), unit sglang-kimi.service still runs"]


def test_a_stranger_who_takes_the_port_is_named(kimi: FakeHost) -> None:
    kimi.at(4, lambda: kimi.add_process(50, "nc -l", unit="thief.service", listens=[("::", 30000)]))
    assert go(kimi).held == ["port 30000 on [::]: pid 50 (nc -l), unit thief.service still listens"]


def test_a_reused_pid_is_another_process(kimi: FakeHost) -> None:
    kimi.at(6, lambda: kimi.add_process(10, "somebody else", start=9999))
    assert go(kimi).held == []


def test_a_zombie_holds_nothing(kimi: FakeHost) -> None:
    kimi.add_process(14, "defunct", unit=KIMI, ppid=10, state="Z")
    assert go(kimi).held == []


def test_memory_that_is_held_for_a_while_is_waited_for(kimi: FakeHost) -> None:
    kimi.at(4.5, lambda: setattr(kimi, "stray_memory", 80000))
    kimi.at(30, lambda: setattr(kimi, "stray_memory", 0))
    report = go(kimi)
    assert report.held == []
    assert 30 <= report.seconds < 33


def test_memory_that_stays_held_is_named_card_by_card(kimi: FakeHost) -> None:
    kimi.at(4.5, lambda: setattr(kimi, "stray_memory", 80000))
    report = go(kimi)
    words = "80000 MiB in use that no listed process accounts for"
    assert report.held == [f"GPUs 0, 1: {words}"]
    assert 125 <= kimi.now <= 127


def test_memory_that_a_dead_process_is_still_listed_with_is_named(kimi: FakeHost) -> None:
    kimi.at(6, lambda: None)
    original = kimi.remove_process

    def keep(pid: int) -> None:
        held = kimi.gpu_memory.get(pid)
        original(pid)
        if held:
            kimi.gpu_memory[pid] = held

    kimi.remove_process = keep  # type: ignore[method-assign]
    assert go(kimi).held == ["GPUs 0, 1: 80000 MiB by pid 12 (python3, with a comma)"]


def test_memory_of_others_is_no_concern(kimi: FakeHost) -> None:
    kimi.add_process(70, "training", gpu=10000)
    assert go(kimi).held == []


def test_after_a_killed_run_memory_is_proven_before_anything_starts(host: FakeHost) -> None:
    host.add_unit(KIMI, active="inactive", UnitFileState="disabled")
    host.stray_memory = 80000
    report = go(host)
    assert not report.changed and len(report.held) == 1
    host.now = 0
    host.at(10, lambda: setattr(host, "stray_memory", 0))
    assert go(host).held == []


@pytest.mark.parametrize("problem", ["hung", "NVIDIA-SMI has failed"])
def test_without_a_working_nvidia_smi_nothing_is_touched(kimi: FakeHost, problem: str) -> None:
    kimi.gpu_problem = problem
    with pytest.raises(CannotStop, match="was left alone"):
        go(kimi)
    assert kimi.orders == []


def test_without_cards_the_rest_is_still_proven(kimi: FakeHost) -> None:
    kimi.gpu_problem = "missing"
    report = go(kimi)
    assert report.held == [] and "nothing is proven about GPU memory" in report.warnings[0]


def test_nvidia_smi_that_hangs_after_the_stop_is_no_proof(kimi: FakeHost) -> None:
    kimi.at(4.5, lambda: setattr(kimi, "gpu_problem", "hung"))
    assert "cannot be asked any more" in go(kimi).held[0]


def test_a_bus_that_is_away_for_a_moment_is_no_failure(kimi: FakeHost) -> None:
    kimi.at(1, lambda: setattr(kimi, "bus_problem", "Transport endpoint is not connected"))
    kimi.at(8, lambda: setattr(kimi, "bus_problem", ""))
    assert go(kimi).held == []


def test_a_bus_that_stays_away_after_the_stop_is_told_with_what_was_done(kimi: FakeHost) -> None:
    kimi.at(1, lambda: setattr(kimi, "bus_problem", "Transport endpoint is not connected"))
    report = go(kimi)
    assert report.stopped and "Transport endpoint is not connected" in report.held[0]


def test_a_refused_order_leaves_the_service_alone(kimi: FakeHost) -> None:
    kimi.refuses = "stop"
    with pytest.raises(SystemdError, match=r"systemctl stop sglang-kimi.service failed: .*Access denied"):
        go(kimi)


def test_a_service_that_cannot_be_disabled_is_stopped_and_told(kimi: FakeHost) -> None:
    kimi.refuses = "disable"
    report = go(kimi)
    assert (report.stopped, report.disabled) == (True, False)
    assert len(report.held) == 1 and "it stays enabled" in report.held[0]


@pytest.mark.parametrize(("active", "state"), [("active", "static"), ("inactive", "enabled")])
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_trigger_is_named_and_never_fought(kimi: FakeHost, active: str, state: str, check_mode: bool) -> None:
    kimi.add_unit("sglang-kimi.path", active, UnitFileState=state)
    kimi.units[KIMI]["TriggeredBy"] = "sglang-kimi.path"
    with pytest.raises(CannotStop, match=r"systemctl disable --now sglang-kimi\.path first"):
        go(kimi, check_mode=check_mode)
    assert kimi.orders == []


def test_a_trigger_that_is_off_is_no_hindrance(kimi: FakeHost) -> None:
    kimi.add_unit("sglang-kimi.path", "inactive", UnitFileState="disabled")
    kimi.units[KIMI]["TriggeredBy"] = "sglang-kimi.path"
    assert go(kimi).held == []


def test_a_failed_end_is_gone_too_and_said(kimi: FakeHost) -> None:
    kimi.at(5, lambda: kimi.units[KIMI].update(ActiveState="failed", Result="timeout", ExecMainStatus="9"))
    report = go(kimi)
    assert report.held == []
    assert report.warnings == ["sglang-kimi.service ended as failed (result timeout, status 9)"]


SERVER = """
import socket, subprocess, sys, time
port = int(sys.argv[1])
if len(sys.argv) == 3:  # the parent, which is told the child's code
    subprocess.Popen([sys.executable, "-c", sys.argv[2], str(port)])
    time.sleep(600)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
print("ready", flush=True)
time.sleep(600)
"""


def test_real_processes_a_child_that_outlives_its_parent_and_holds_the_port() -> None:
    """Real processes, real /proc: only systemd is played. The child is found, named, and not killed."""
    port = 41987
    main = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port), SERVER],
        stdout=subprocess.PIPE,
        env={**os.environ, "INVOCATION_ID": "f00d"},
    )
    assert main.stdout and main.stdout.readline() == b"ready\n"
    state = {"ActiveState": "active", "MainPID": str(main.pid), "InvocationID": "f00d", "LoadState": "loaded"}

    def run(argv: Sequence[str], timeout: float) -> Outcome:
        if argv[0] == "nvidia-smi":
            return Outcome(tuple(argv), None, problem="missing")
        if "stop" in argv:
            main.kill()
            main.wait()
            state.update(ActiveState="inactive", MainPID="0")
        return Outcome(tuple(argv), 0, "".join(f"{key}={value}\n" for key, value in state.items()))

    request = Request("real.service", ports=(port,), timeout=1)
    report = stop(request, Machine(run=run))
    children = [one["pid"] for one in report.after["processes"]]
    try:
        assert len(children) == 1 and len(report.before["processes"]) == 2
        assert (
            f"pid {children[0]}" in report.held[0] and f"port {port} on 127.0.0.1: pid {children[0]}" in report.held[1]
        )
        os.kill(children[0], 0)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    again = stop(Request("real.service", ports=(port,), timeout=20), Machine(run=run))
    assert again.held == [] and time.monotonic() - began < 10
