# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bench_serving is run with a stand-in: what reaches it, what it says, and how it ends."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import bench
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import Abandoned, BenchFailed, Target

from tests.unit.benchmark.case import KEY, SHAPE

# What 0.5.23 writes, the fields that are read.
LINE = {
    "completed": SHAPE.requests,
    "output_throughput": 3740.5,
    "total_throughput": 11200.0,
    "duration": 17.5,
    "median_ttft_ms": 812.25,
    "median_tpot_ms": 8.125,
}


class Stand:
    """A program in the interpreter's place, which notes what reached it and does what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.program = folder, folder / "python"
        self.does(f"cat > \"$file\" <<'END'\n{json.dumps(LINE)}\nEND")

    def does(self, script: str) -> None:
        """Write the program."""
        head = f'#!/bin/sh\nfor file; do :; done\necho "$0 $@" > {self.folder}/argv\nenv > {self.folder}/env\n'
        self.program.write_text(f"{head}{script}\n")
        self.program.chmod(0o755)

    def target(self, **changes: Any) -> Target:
        """What is measured."""
        environ = {"PATH": os.environ["PATH"], "NCCL_P2P_LEVEL": "SYS", "LLMFLEET_STATE": "s1", "HOME": "/var/lib/x"}
        given: dict[str, Any] = {"host": "127.0.0.1", "port": 30000, "model": "/models/q", "environ": environ}
        return Target(python=str(self.program), **{"api_key": KEY, **given, **changes})

    def read(self, name: str) -> str:
        """What the program noted."""
        return (self.folder / name).read_text()


def gone(pid: int) -> bool:
    """Whether a process has ended; its end may be a moment behind the signal."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """A stand-in that answers as bench_serving does."""
    return Stand(tmp_path)


def test_the_figures_are_read(stand: Stand) -> None:
    run = bench.measure(stand.target(), SHAPE, 7, 30)
    assert (run.output_tokens_per_second, run.total_tokens_per_second, run.seconds) == (3740.5, 11200.0, 17.5)
    assert (run.ttft_ms, run.tpot_ms) == (812.25, 8.125)


def test_it_is_asked_for_the_shape_and_never_finds_prompts_cached(stand: Stand) -> None:
    bench.measure(stand.target(), SHAPE, 7, 30)
    words = stand.read("argv")
    for asked in (
        "-m sglang.bench_serving --backend sglang",
        "--dataset-name random-ids",
        "--random-input-len 1024 --random-output-len 512 --num-prompts 128 --max-concurrency 32",
        "--random-range-ratio 1",
        "--seed 7",
        "--flush-cache",
    ):
        assert asked in words


def test_the_key_goes_by_the_environment_alone(stand: Stand) -> None:
    bench.measure(stand.target(), SHAPE, 7, 30)
    assert KEY not in stand.read("argv")
    environment = stand.read("env").splitlines()
    assert f"OPENAI_API_KEY={KEY}" in environment and "NCCL_P2P_LEVEL=SYS" in environment
    assert "HF_HUB_OFFLINE=1" in environment and "NO_PROXY=*" in environment
    # The service's own folders and state are not this process's.
    assert not [line for line in environment if line.startswith("LLMFLEET_STATE=") or line == "HOME=/var/lib/x"]


def test_a_key_of_the_services_own_environment_is_not_sent(stand: Stand) -> None:
    target = stand.target(api_key="", environ={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "another"})
    bench.measure(target, SHAPE, 7, 30)
    assert "OPENAI_API_KEY" not in stand.read("env")


def test_a_failure_ends_with_what_was_said_last_and_without_the_key(stand: Stand) -> None:
    stand.does(f'echo "===="; echo "ValueError: Warmup failed, {KEY}" >&2; exit 1')
    with pytest.raises(BenchFailed) as caught:
        bench.measure(stand.target(), SHAPE, 7, 30)
    assert str(caught.value) == "bench_serving ended with 1:\n  ValueError: Warmup failed, ***"


def test_a_time_of_nothing_was_not_told(stand: Stand) -> None:
    """bench_serving leaves 0 where no answer held a token that could be read as text."""
    stand.does(f"cat > \"$file\" <<'END'\n{json.dumps({**LINE, 'median_ttft_ms': 0.0})}\nEND")
    run = bench.measure(stand.target(), SHAPE, 7, 30)
    assert (run.ttft_ms, run.tpot_ms) == (None, 8.125)


def test_requests_that_failed_are_no_measurement(stand: Stand) -> None:
    stand.does(f"cat > \"$file\" <<'END'\n{json.dumps({**LINE, 'completed': 100})}\nEND")
    with pytest.raises(BenchFailed, match="28 of 128 requests failed"):
        bench.measure(stand.target(), SHAPE, 7, 30)


@pytest.mark.parametrize("script", [":", "echo nonsense > $file", "echo '{}' > $file", "echo '[1]' > $file"])
def test_no_figures_are_a_failure_although_it_ended_well(stand: Stand, script: str) -> None:
    stand.does(f"echo all is well\n{script}")
    with pytest.raises(BenchFailed, match=r"wrote no figures[\s\S]*all is well"):
        bench.measure(stand.target(), SHAPE, 7, 30)


def test_what_hangs_is_killed_with_all_that_it_started(stand: Stand) -> None:
    stand.does(f"sleep 600 & echo $! > {stand.folder}/child; echo it waits; wait")
    with pytest.raises(BenchFailed, match=r"did not end within 1 s:\n  it waits"):
        bench.measure(stand.target(), SHAPE, 7, 1)
    assert gone(int(stand.read("child")))


def test_it_is_not_waited_for_once_the_server_has_ended(stand: Stand) -> None:
    stand.does("echo it waits for a server; sleep 600")
    with pytest.raises(BenchFailed, match=r"the process that it measured has ended:\n  it waits for a server"):
        bench.measure(stand.target(serves=lambda: False), SHAPE, 7, 20)


def test_it_ends_with_the_one_who_asked_for_it(stand: Stand) -> None:
    stand.does(f"sleep 600 & echo $! > {stand.folder}/child; wait")
    with pytest.raises(Abandoned, match="bench_serving was stopped, for it has gone"):
        bench.measure(stand.target(over=lambda: "it has gone"), SHAPE, 7, 20)
    assert gone(int(stand.read("child")))


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv")
def test_it_ends_with_the_process_that_runs_it_however_that_ends(stand: Stand) -> None:
    stand.does(f"echo $$ > {stand.folder}/child; exec sleep 600")
    runs = multiprocessing.get_context("fork").Process(target=bench.measure, args=(stand.target(), SHAPE, 7, 500))
    runs.start()
    try:
        until = time.monotonic() + 20
        while not ((stand.folder / "child").exists() and stand.read("child").strip()):
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        runs.kill()
        runs.join(20)
    assert gone(int(stand.read("child")))


def test_what_it_leaves_behind_in_the_background_does_not_outlive_it(stand: Stand) -> None:
    stand.does(f"sleep 600 & echo $! > {stand.folder}/child\ncat > \"$file\" <<'END'\n{json.dumps(LINE)}\nEND")
    bench.measure(stand.target(), SHAPE, 7, 30)
    assert gone(int(stand.read("child")))


def test_nobody_and_no_interpreter_are_said_so(stand: Stand) -> None:
    with pytest.raises(BenchFailed, match="there is no user llmfleet-nobody"):
        bench.measure(stand.target(user="llmfleet-nobody"), SHAPE, 7, 30)
    stand.program.unlink()
    with pytest.raises(BenchFailed, match="cannot be run: it is not there"):
        bench.measure(stand.target(), SHAPE, 7, 30)
