# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a benchmark ends with ansible-playbook, however that ends: Ansible's worker would outlive it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _parent

from tests.unit.benchmark.test_bench import gone

ROOT = Path(__file__).parents[3]
FORK = multiprocessing.get_context("fork")

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - hold: {}
      vars: {ansible_python_interpreter: "%s"}
"""
ACTION = "from ansible_collections.llmfleet.sglang.plugins.action.benchmark import ActionModule\n"
# A module that goes on for as long as somebody reads, as the benchmark does.
MODULE = """#!/usr/bin/python
import os, time
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.asker import Asker
reads = Asker(1)
for path, number in (("worker", os.getsid(0)), ("module", os.getpid())):
    with open(os.path.join(%r, path + ".new"), "w") as file:
        file.write(str(number))
    os.rename(file.name, file.name[:-4])
until = time.monotonic() + 60
while reads() and time.monotonic() < until:
    time.sleep(0.1)
"""


def _heed_hang_ups() -> None:
    """What nohup starts ignores them, and so would what it starts."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def number_in(path: Path) -> int:
    """Return what a process wrote, once it has."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"nothing wrote {path.name}"
        time.sleep(0.01)
    return int(path.read_text())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_the_worker_and_what_it_reads_end_with_the_run(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "play.yml").write_text(PLAY % sys.executable)
    for place, text in (("action_plugins", ACTION), ("library", MODULE % str(tmp_path))):
        (tmp_path / place).mkdir()
        (tmp_path / place / "hold.py").write_text(text)
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections")}
    with open(tmp_path / "printed", "wb") as printed:
        playbook = subprocess.Popen(
            [str(Path(sys.executable).with_name("ansible-playbook")), "play.yml"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            preexec_fn=_heed_hang_ups,
        )
    worker, module = (number_in(tmp_path / name) for name in ("worker", "module"))
    try:
        assert worker != playbook.pid
        playbook.send_signal(how)
        assert playbook.wait(20) == -how
        assert gone(worker) and gone(module)
    finally:
        playbook.kill()
        with contextlib.suppress(OSError):
            os.kill(worker, signal.SIGKILL)


def test_a_worker_whose_run_had_ended_before_ends_too(tmp_path: Path) -> None:
    note = tmp_path / "worker"

    def worker() -> None:
        main = os.getppid()
        note.with_suffix(".new").write_text(str(os.getpid()))
        note.with_suffix(".new").rename(note)
        while os.getppid() == main:
            time.sleep(0.01)
        _parent.end_with_the_run(every=3600.0)
        time.sleep(60)

    def main() -> None:
        child = FORK.Process(target=worker)
        child.start()
        child.join()

    run = FORK.Process(target=main)
    run.start()
    number = number_in(note)
    run.kill()
    run.join(20)
    assert gone(number)


def test_a_process_that_is_no_worker_is_left_alone() -> None:
    _parent.end_with_the_run()
    assert "llmfleet-run" not in [one.name for one in threading.enumerate()]
