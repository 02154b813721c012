# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin with Ansible itself: lines while a task runs, through a pipe."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

# Nothing listens there, so the module asks until its time is up: just longer than what is kept silent.
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Ask a server that is not there
      llmfleet.sglang.completion:
        host: 127.0.0.1
        port: "{{ port }}"
        own_port: false
        timeout: "{{ seconds }}"
        journal_lines: 0
      ignore_errors: true
      no_log: "{{ secret }}"
"""
HOSTS = """
all:
  hosts:
    open: {secret: false, seconds: 12}
    silent: {secret: true, seconds: 12}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "%s"
"""


def test_lines_come_while_the_task_runs_and_through_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "hosts.yml").write_text(HOSTS % sys.executable)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        command = ["ansible-playbook", "play.yml", "-i", "hosts.yml", "-e", json.dumps({"port": free.getsockname()[1]})]
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"), "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(
            [str(Path(sys.executable).with_name(command[0])), *command[1:]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    lines = done.stdout.splitlines()
    told = [number for number, line in enumerate(lines) if line.startswith("  [open] waiting for the engine: ")]
    assert told, done.stdout + done.stderr
    results = [number for number, line in enumerate(lines) if line.startswith("fatal: [open]")]
    assert len(results) == 1 and max(told) < results[0]
    assert not any(line.startswith("  [silent]") for line in lines)
