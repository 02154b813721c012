# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping what does not want to: draining, killing, left-overs, failed units, shared memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import leftovers, segments
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.drain import Drain, requests_in_metrics
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import read_process, read_processes
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import (
    KILL_GRACE,
    Machine,
    Report,
    Request,
    stop,
)
from ansible_collections.llmfleet.sglang.tests.unit.host.engine import Engine
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

KIMI, QWEN = "sglang-kimi.service", "sglang-qwen.service"
REQUEST = Request(KIMI, ports=(30000,), address="10.77.0.11", tolerate=(QWEN,), timeout=60, disable=True)


def go(host: FakeHost, request: Request = REQUEST, check_mode: bool = False) -> Report:
    return stop(request, Machine(host.run, host.proc, host.shm, host.clock, host.sleep, host.send), check_mode)


@pytest.fixture
def kimi(host: FakeHost) -> FakeHost:
    """A running service of two processes, of which the scheduler left the control group."""
    host.add_unit(KIMI, main_pid=10, InvocationID="abc", TimeoutStopUSec="infinity")
    host.add_process(10, unit=KIMI, listens=[("0.0.0.0", 30000)], env={"INVOCATION_ID": "abc"})
    host.add_process(12, "sglang::scheduler", gpu=80000, env={"INVOCATION_ID": "abc"})
    host.on_stop = lambda: host.at(host.now + 2, lambda: end(host, 10, 12))
    return host


def end(host: FakeHost, *pids: int, active: str = "inactive") -> None:
    for pid in pids:
        host.remove_process(pid)
    host.units[KIMI].update(ActiveState=active, SubState="dead", MainPID="0")


# killing ---------------------------------------------------------------------------------------------------------


def test_a_service_that_ignores_sigterm_for_ever_is_killed_in_time_and_that_is_said(kimi: FakeHost) -> None:
    kimi.on_stop = lambda: None
    kimi.on_kill = lambda: end(kimi, 10, 12, active="failed")
    report = go(kimi)
    assert report.held == [] and report.killed == [f"{KIMI}, by SIGKILL"]
    assert ["systemctl", "kill", "--signal=SIGKILL", "--", KIMI] in kimi.orders
    assert any("had not stopped after 60 s and was killed" in warning for warning in report.warnings)
    assert 60 <= kimi.now <= 63


def test_killing_can_be_left_to_systemd(kimi: FakeHost) -> None:
    kimi.on_stop = lambda: None
    report = go(kimi, replace(REQUEST, kill=False))
    assert report.held and report.killed == [] and kimi.now == pytest.approx(60, abs=1.1)


def test_a_process_that_cannot_even_be_killed_is_named(kimi: FakeHost) -> None:
    kimi.on_stop = lambda: None
    report = go(kimi)
    assert "pid 10" in "; ".join(report.held) and kimi.now == pytest.approx(60 + KILL_GRACE, abs=1.1)


# left-overs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def orphaned(kimi: FakeHost) -> FakeHost:
    """Its scheduler outlives the stop, out of the control group."""
    kimi.on_stop = lambda: end(kimi, 10)
    return kimi


def test_a_left_over_is_only_named(orphaned: FakeHost) -> None:
    report = go(orphaned)
    assert report.held == ["pid 12 (sglang::scheduler), unit session-1.scope still runs"]
    assert orphaned.signals == [] and report.killed == []


def test_a_left_over_is_ended_where_that_is_allowed(orphaned: FakeHost) -> None:
    report = go(orphaned, replace(REQUEST, kill_leftovers=True))
    assert report.held == [] and orphaned.signals == [(12, signal.SIGTERM), (12, signal.SIGKILL)]
    assert [words.rpartition(", ")[2] for words in report.killed] == ["by SIGTERM", "by SIGKILL"]
    assert 20 <= orphaned.now < 24


def test_a_left_over_is_ended_however_short_the_time_for_the_unit(orphaned: FakeHost) -> None:
    report = go(orphaned, replace(REQUEST, kill_leftovers=True, timeout=5))
    assert report.held == [] and orphaned.signals == [(12, signal.SIGTERM), (12, signal.SIGKILL)]


def test_left_overs_of_a_stop_in_the_past(host: FakeHost) -> None:
    """KillMode=process, or a unit file that was removed: the unit is gone, its control group is not."""
    host.add_process(12, "sglang::scheduler", unit=KIMI, gpu=80000)
    report = go(host)
    assert not report.stopped and report.held == [f"pid 12 (sglang::scheduler), unit {KIMI} still runs"]
    assert host.orders == []
    assert go(host, replace(REQUEST, kill_leftovers=True), check_mode=True).killed != []
    assert host.signals == []
    report = go(host, replace(REQUEST, kill_leftovers=True))
    assert report.held == [] and report.changed and not report.stopped


def test_somebody_else_on_the_cards_is_named_and_left_alone(kimi: FakeHost) -> None:
    kimi.add_process(70, "train.py", unit="training.service", gpu=10000)
    kimi.add_process(80, "successor", unit=QWEN, gpu=500)
    report = go(kimi, replace(REQUEST, kill_leftovers=True))
    assert report.held == [] and kimi.signals == []
    assert report.warnings == [
        "GPUs 0, 1: 10000 MiB held by pid 70 (train.py, unit training.service), "
        "which is not of this service and was left alone"
    ]


def test_a_signal_goes_to_the_very_process_or_to_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        process = read_process(child.pid)
        assert process
        assert not leftovers.send(replace(process, start=process.start + 1), signal.SIGKILL)
        assert child.poll() is None
        assert leftovers.send(process, signal.SIGKILL)
        assert child.wait(10) == -signal.SIGKILL
        assert not leftovers.send(process, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


# failed units ----------------------------------------------------------------------------------------------------


def test_a_unit_in_start_limit_hit_is_reset(host: FakeHost) -> None:
    host.add_unit(KIMI, active="failed", Result="start-limit-hit")
    assert go(host, check_mode=True).reset and host.orders == []
    report = go(host)
    assert report.reset and report.changed and ["systemctl", "reset-failed", "--", KIMI] in host.orders
    host.units[KIMI]["UnitFileState"] = "disabled"
    assert not go(host).changed


def test_a_unit_that_restarts_itself_is_stopped_between_two_starts(kimi: FakeHost) -> None:
    kimi.units[KIMI].update(ActiveState="activating", SubState="auto-restart", MainPID="0")
    report = go(kimi)
    assert report.stopped and report.held == []


def test_a_failure_that_cannot_be_reset_is_said(host: FakeHost) -> None:
    host.add_unit(KIMI, active="failed")
    host.refuses = "reset-failed"
    report = go(host)
    assert not report.reset and report.held == [] and "its failure could not be reset" in report.warnings[-1]


# draining --------------------------------------------------------------------------------------------------------


def drain(host: FakeHost, engine: Engine, timeout: float = 30) -> dict[str, object]:
    return Drain((engine.server_port,), "127.0.0.1", host.clock, host.sleep, host.proc).wait(timeout)


def test_without_connections_nothing_is_in_flight(host: FakeHost, engine: Engine) -> None:
    host.connect(("127.0.0.1", 1))
    seen = drain(host, engine)
    assert (seen["idle"], seen["connections_before"], host.now) == (True, 0, 0)


def test_connections_are_waited_for_where_there_are_no_metrics(host: FakeHost, engine: Engine) -> None:
    host.connect(("127.0.0.1", engine.server_port))
    host.at(7, host.connect)
    seen = drain(host, engine)
    assert seen["idle"] and seen["connections_before"] == 1 and seen["requests_before"] is None
    assert host.now == pytest.approx(7, abs=0.6)


def test_metrics_that_show_none_for_a_while_end_the_wait(host: FakeHost, engine: Engine) -> None:
    """Idle connections of a router stay open; the gauge lags, so a single zero is not believed."""
    host.connect(("127.0.0.1", engine.server_port), ("127.0.0.1", engine.server_port))
    engine.metrics = 'sglang:num_running_reqs{tp_rank="0"} 0.0\nsglang:num_queue_reqs{tp_rank="0"} 0.0\n'
    host.at(2, lambda: setattr(engine, "metrics", "sglang:num_running_reqs 3.0\n"))
    host.at(10, lambda: setattr(engine, "metrics", "sglang:num_running_reqs 0.0\n"))
    seen = drain(host, engine)
    assert seen["idle"] and seen["connections_after"] == 2 and seen["requests_after"] == 0
    assert host.now == pytest.approx(15, abs=0.6)


def test_the_time_to_drain_is_bounded(host: FakeHost, engine: Engine) -> None:
    host.connect(("127.0.0.1", engine.server_port))
    engine.metrics = "sglang:num_running_reqs 1.0\n"
    seen = drain(host, engine, 12)
    assert not seen["idle"] and seen["requests_after"] == 1 and host.now == pytest.approx(12)


def test_a_stop_drains_first(kimi: FakeHost) -> None:
    kimi.connect(("10.77.0.11", 30000))
    kimi.at(4, kimi.connect)
    report = go(kimi, replace(REQUEST, drain_timeout=30))
    assert report.drain["seconds"] == pytest.approx(4, abs=0.6) and report.held == []
    assert report.seconds >= 6


def test_a_server_is_told_to_finish_where_systemd_would_end_its_workers_too(kimi: FakeHost) -> None:
    kimi.units[KIMI]["KillMode"] = "control-group"
    kimi.add_process(11, "worker", unit=KIMI, ppid=10, listens=[("0.0.0.0", 30000)])
    kimi.at(3, lambda: kimi.remove_process(11))
    kimi.at(4, lambda: kimi.remove_process(10))
    kimi.on_stop = lambda: end(kimi, 12)
    report = go(kimi, replace(REQUEST, drain_timeout=30))
    assert kimi.signals == [(10, signal.SIGTERM)] and report.held == [] and report.killed == []
    assert report.drain["told"] == {"pids": [10], "ended": True, "seconds": pytest.approx(4, abs=0.6)}


def test_a_server_that_does_not_finish_is_stopped_all_the_same(kimi: FakeHost) -> None:
    kimi.units[KIMI]["KillMode"] = "control-group"
    report = go(kimi, replace(REQUEST, drain_timeout=10))
    assert report.drain["told"]["ended"] is False and report.held == []
    assert report.drain["told"]["seconds"] == pytest.approx(10)


def test_a_unit_without_a_file_that_the_drain_ended_is_stopped(kimi: FakeHost) -> None:
    """systemd forgets it with its last process, and has nothing loaded that it could stop."""
    kimi.units[KIMI].update(KillMode="control-group", LoadState="not-found", UnitFileState="transient")

    def forget() -> None:
        kimi.remove_process(10)
        kimi.remove_process(12)
        del kimi.units[KIMI]

    kimi.at(3, forget)
    report = go(kimi, replace(REQUEST, drain_timeout=30))
    assert report.drain["told"]["ended"] is True
    assert (report.stopped, report.held, report.warnings) == (True, [], [])


def test_a_stop_that_systemd_refuses_after_the_server_was_told_is_no_untouched_service(kimi: FakeHost) -> None:
    kimi.units[KIMI]["KillMode"] = "control-group"
    kimi.refuses = "stop"
    report = go(kimi, replace(REQUEST, drain_timeout=10))
    assert report.stopped and "Access denied" in report.warnings[0]
    assert "the unit is still active" in "; ".join(report.held)


@pytest.mark.parametrize(("mode", "seconds"), [("mixed", 30), ("control-group", 0)])
def test_nobody_is_told_where_systemd_does_it_or_nobody_waits(kimi: FakeHost, mode: str, seconds: int) -> None:
    kimi.units[KIMI]["KillMode"] = mode
    go(kimi, replace(REQUEST, drain_timeout=seconds))
    assert kimi.signals == []


def test_a_stop_without_time_to_drain_or_without_its_port_drains_nothing(kimi: FakeHost) -> None:
    kimi.connect(("10.77.0.11", 30000))
    assert go(kimi, replace(REQUEST, ports=(31000,), drain_timeout=30)).drain == {}


def test_running_and_queued_requests_are_read_from_metrics() -> None:
    text = (
        "# HELP sglang:num_running_reqs The number of running requests.\n"
        'sglang:num_running_reqs{engine_type="unified",tp_rank="0"} 2.0\n'
        'sglang:num_queue_reqs{engine_type="unified",tp_rank="0"} 1.0\n'
        'sglang:num_running_reqs_total{x="y"} 99.0\n'
    )
    assert requests_in_metrics(text) == 3
    assert requests_in_metrics("vllm:num_requests_running 1.0\n") is None


# shared memory ---------------------------------------------------------------------------------------------------


def test_segments_of_its_dead_processes_go(kimi: FakeHost) -> None:
    mapped = kimi.add_segment("sglang_loads_0c26_5089.shm", 10)
    opened = kimi.add_segment("psm_1a2b", 12, opened=True)
    stamped = kimi.add_segment("torch_12_345_0")
    report = go(kimi)
    assert not any(path.exists() for path in (mapped, opened, stamped))
    assert len(report.removed) == 3 and f"{mapped} (16 bytes)" in report.removed


def test_segments_of_others_stay(kimi: FakeHost) -> None:
    kimi.add_process(70, "another engine", unit=QWEN)
    kept: list[Path] = [
        kimi.add_segment("sglang_loads_shared.shm", 10, 70),
        kimi.add_segment("sglang_loads_other.shm", 70),
        kimi.add_segment("sglang_loads_nobodys.shm"),
        kimi.add_segment("model-00001.safetensors", 10),
        kimi.add_segment("torch_70_1_0", 10),
    ]
    report = go(kimi)
    assert all(path.exists() for path in kept) and report.removed == []


def test_segments_stay_while_a_process_of_it_lives(orphaned: FakeHost) -> None:
    path = orphaned.add_segment("sglang_loads_x.shm", 10)
    assert go(orphaned).removed == [] and path.exists()


def test_a_segment_that_was_made_anew_stays(kimi: FakeHost) -> None:
    path = kimi.add_segment("sglang_loads_x.shm", 10)
    was = kimi.on_stop

    def anew() -> None:
        was()
        other = path.with_name("new")
        other.write_bytes(b"other")
        other.replace(path)

    kimi.on_stop = anew
    assert go(kimi).removed == [] and path.exists()


def test_cleaning_can_be_left_out_and_check_mode_cleans_nothing(kimi: FakeHost) -> None:
    path = kimi.add_segment("sglang_loads_x.shm", 10)
    go(kimi, check_mode=True)
    assert path.exists()
    assert go(kimi, replace(REQUEST, clean_shm=False)).removed == [] and path.exists()


MAP = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 4096)
held = mmap.mmap(fd, 4096)
os.close(fd)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_real_shared_memory_is_found_by_who_maps_it(tmp_path: Path) -> None:
    path = Path(f"/dev/shm/sglang_loads_test_{os.getpid()}.shm")
    child = subprocess.Popen(
        [sys.executable, "-c", MAP, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout and child.stdout.readline() == "ready\n"
        mine = [read_processes()[child.pid]]
        found = [one for one in segments.owned(mine) if one.path == str(path)]
        assert len(found) == 1 and segments.stale(found) == []
        child.communicate("")
        assert segments.stale(found) == found
        assert segments.remove(found) == (found, []) and not path.exists()
    finally:
        child.kill()
        child.wait()
        path.unlink(missing_ok=True)


NAMES: list[tuple[str, int]] = [
    ("sgl_shm_kv_4242_0a1b2c3d", 4242),
    ("multi_tokenizer_args_77", 77),
    ("torch_123_456_0", 123),
    ("__KMP_REGISTERED_LIB_99_0", 99),
    ("torch_compile_cache", 0),
    ("sglang_loads_123_0a.shm", 0),
]


@pytest.mark.parametrize(("name", "pid"), NAMES)
def test_the_pid_in_a_name(name: str, pid: int) -> None:
    assert segments.creator(name) == pid
