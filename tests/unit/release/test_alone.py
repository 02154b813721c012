# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Never two writers of releases on a host: with real processes, stopped, killed and orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import proc
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import alone

# A module that holds the lock and starts what uv would be; it says both pids and waits for it.
BUILD = """
import os, subprocess, sys
from pathlib import Path
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import alone
with alone.writing(Path(sys.argv[1])):
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2]])
    print(os.getpid(), child.pid, flush=True)
    child.wait()
"""
WAITS = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
BOUND = 30.0


def gone(pid: int) -> bool:
    """Whether a process has ended, a zombie among them."""
    process = proc.read_process(pid)
    return process is None or process.gone


class Build:
    """A build of another run: a module and its child."""

    def __init__(self, releases: Path, child: str = WAITS) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / ".collections")}
        command = [sys.executable, "-c", BUILD, str(releases), child]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.module, self.child = (int(pid) for pid in self.process.stdout.readline().split())

    def kill_module(self) -> None:
        """Leave the child an orphan."""
        self.process.kill()
        self.process.wait(timeout=BOUND)

    def clean(self) -> None:
        """End all of it."""
        for pid in (self.module, self.child):
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=BOUND)
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Build]]:
    builds: list[Build] = []

    def begin(child: str = WAITS) -> Build:
        builds.append(Build(tmp_path, child))
        return builds[-1]

    yield begin
    for build in builds:
        build.clean()


def test_a_later_step_does_not_write_beside_another_build(tmp_path: Path, start: Callable[..., Build]) -> None:
    build = start()
    said = rf"pid {build.module} .* writes into {tmp_path}: let one run build"
    with pytest.raises(alone.Occupied, match=said), alone.writing(tmp_path):
        pytest.fail("two writers")
    assert not gone(build.module) and not gone(build.child)


def test_the_first_step_ends_a_build_that_was_left_running(tmp_path: Path, start: Callable[..., Build]) -> None:
    build = start()
    os.kill(build.child, signal.SIGSTOP)
    with alone.writing(tmp_path, begins=True) as ended:
        assert gone(build.module) and gone(build.child)
        assert sorted(int(one.split()[1]) for one in ended) == sorted([build.module, build.child])


def test_a_child_whose_module_was_killed_is_ended_too(tmp_path: Path, start: Callable[..., Build]) -> None:
    build = start()
    build.kill_module()
    assert not gone(build.child)
    with alone.writing(tmp_path, begins=True) as ended:
        assert gone(build.child)
        assert [int(one.split()[1]) for one in ended] == [build.child]


def test_what_does_not_heed_the_request_is_killed(tmp_path: Path, start: Callable[..., Build]) -> None:
    build = start(DEAF)
    assert build.process.stdout and build.process.stdout.readline() == "deaf\n"
    build.kill_module()
    with alone.writing(tmp_path, begins=True, grace=0.3):
        assert gone(build.child)


def test_a_build_in_another_folder_is_left_alone(tmp_path: Path, start: Callable[..., Build]) -> None:
    build = start()
    other = tmp_path / "other"
    other.mkdir()
    with alone.writing(other, begins=True) as ended:
        assert ended == []
    assert not gone(build.module) and not gone(build.child)


def test_what_is_started_carries_the_mark_and_the_lock_goes_with_its_holder(tmp_path: Path) -> None:
    with alone.writing(tmp_path):
        said = subprocess.run(["printenv", alone.MARK], capture_output=True, text=True, check=True, timeout=30)
        assert said.stdout == f"{tmp_path}\n"
    assert alone.MARK not in os.environ
    with alone.writing(tmp_path, begins=True) as ended:
        assert ended == []


def test_a_lock_of_a_process_that_is_no_more_names_nobody(tmp_path: Path, start: Callable[..., Build]) -> None:
    # The number of a dead holder may be another process's by now: the time of its start tells them apart.
    (tmp_path / alone.LOCK).write_text(f"{os.getppid()} 1\n")
    with alone.writing(tmp_path, begins=True) as ended:
        assert ended == []
