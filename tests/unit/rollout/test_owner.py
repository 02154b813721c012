# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of one controller: the second is refused while the first lives, and takes over when it has died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _owner

ROOT = Path(__file__).parents[3]
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Lock
      llmfleet.sglang.host_lock:
        path: "{{ lock }}"
        reason: "{{ reason }}"
    - name: Say that it is held
      ansible.builtin.debug:
        msg: the lock is held
    - name: Stay
      ansible.builtin.command:
        argv: [sleep, "{{ stay }}"]
"""
INVENTORY = "all: {hosts: {here: {ansible_connection: local, ansible_python_interpreter: '%s'}}}"


def words(folder: Path, reason: str, stay: int) -> list[str]:
    (folder / "play.yml").write_text(PLAY)
    (folder / "hosts.yml").write_text(INVENTORY % sys.executable)
    extra = json.dumps({"lock": str(folder / "lock.json"), "reason": reason, "stay": stay})
    return [str(Path(sys.executable).with_name("ansible-playbook")), "play.yml", "-i", "hosts.yml", "-e", extra]


def environment() -> dict[str, str]:
    return {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"), "ANSIBLE_NOCOLOR": "1"}


def test_a_second_run_waits_for_no_dead_owner(tmp_path: Path) -> None:
    first = subprocess.Popen(
        words(tmp_path, "the first", 60),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert first.stdout is not None
        assert any("the lock is held" in line for line in first.stdout)
        second = subprocess.run(
            words(tmp_path, "the second", 0),
            check=False,
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert second.returncode == 2
        assert "works on this host since" in second.stdout + second.stderr
        assert "(the first)" in second.stdout + second.stderr
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(20)
    third = subprocess.run(
        words(tmp_path, "the third", 0),
        check=False,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert third.returncode == 0, third.stdout
    assert "took over the lock of" in third.stderr and "its run has died" in third.stderr
    assert json.loads((tmp_path / "lock.json").read_text())["reason"] == "the third"


def test_a_run_is_one_process_and_another_controller_is_not_judged() -> None:
    mine = _owner.this_run(os.getpid())
    assert mine == _owner.this_run(os.getpid())
    assert mine["run"] != _owner.this_run(os.getppid())["run"]
    assert not _owner.has_died(mine)
    assert _owner.has_died({**mine, "process_start": "1@other boot"})
    assert not _owner.has_died({**mine, "process_start": "1@other boot", "controller": "another"})
    assert not _owner.has_died({**mine, "process_start": ""})


def test_a_controller_without_a_machine_id_still_has_a_name(tmp_path: Path) -> None:
    assert len(_owner.controller_id(tmp_path, tmp_path)) == 16
    assert _owner.controller_id(tmp_path, tmp_path) != _owner.controller_id()


@pytest.mark.parametrize("pid", [2**22 + 1, 0])
def test_a_process_that_is_not_there_has_no_start(pid: int) -> None:
    assert _owner.process_start(pid) == ""
