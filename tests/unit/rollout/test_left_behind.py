# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs left on a host, or what goes from it in the middle of one: a lock, a mark of the load balancer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, ROOT, Stage

FEW = HOSTS[:2]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, FEW)


@pytest.mark.parametrize("bad", [FEW[:1], FEW], ids=["one", "all"])
def test_a_lock_that_cannot_be_read_is_why_a_host_is_not_prepared(stage: Stage, bad: list[str]) -> None:
    for host in bad:
        lock = stage.folder / "state" / host / "lock.json"
        lock.parent.mkdir(parents=True)
        lock.write_text("{garbage" if host == "h02" else '{"schema": 1}')
    run = stage.deploy()
    assert run.rc == 2
    assert run.states == {host: "not prepared" if host in bad else "untouched" for host in FEW}
    assert f"{host}  not prepared  This host cannot be locked: the lock {lock} cannot be read" in run.output
    assert "The run was cut short" not in run.output
    assert run.came_to("build") == [] and stage.locked() == bad


def test_a_host_that_was_left_drained_is_told_by_a_run_that_cannot_put_it_back(stage: Stage) -> None:
    mark = stage.folder / "state" / "h01" / "qwen" / "drained.json"
    mark.parent.mkdir(parents=True)
    mark.write_text("{}")
    run = stage.deploy()
    assert run.rc == 2, run.output
    assert run.hosts("new") == FEW
    assert f"see by hand that it gets requests and remove {mark}." in run.output


def play(folder: Path, tasks: list[dict[str, Any]], *options: str, **hosts: str) -> subprocess.CompletedProcess[str]:
    """Run tasks of ours on local hosts, each reached by the address given, which have one record."""
    common = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
    deployment = {"paths": {"state": str(folder / "state")}}
    inventory = {host: {**common, "ansible_host": address} for host, address in hosts.items()}
    variables = {"sglang_deployment": deployment, "sglang_lock_reason": "tests"}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": inventory}}))
    (folder / "play.yml").write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": tasks}])
    )
    return subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "play.yml", "-i", "hosts.yml", *options],
        cwd=folder,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ours(name: str) -> dict[str, Any]:
    return {"ansible.builtin.import_tasks": str(ROOT / "playbooks" / "tasks" / f"{name}.yml")}


SAY = {"ansible.builtin.debug": {"msg": "PREPARED {{ inventory_hostname }} {{ sglang_prepared.done }}"}}


def test_a_lock_that_went_in_the_middle_is_not_taken_anew(tmp_path: Path) -> None:
    lock = tmp_path / "state" / "lock.json"
    gone = {"ansible.builtin.file": {"path": str(lock), "state": "absent"}}
    done = play(tmp_path, [ours("lock"), ours("keep_lock"), SAY, gone, ours("keep_lock"), SAY], a="127.0.0.1")
    assert done.stdout.index("PREPARED a True") < done.stdout.index("PREPARED a False"), done.stdout
    assert "This run has lost its lock of this host" in done.stdout
    assert not lock.exists()


def test_one_machine_by_two_addresses_is_worked_on_once(tmp_path: Path) -> None:
    done = play(tmp_path, [ours("lock"), SAY], "-f", "1", a="127.0.0.1", b="127.1", c="127.0.0.1")
    assert {f"PREPARED {host}" in done.stdout for host in "abc"} == {True}, done.stdout
    assert "PREPARED b False" in done.stdout and "PREPARED c True" in done.stdout
    assert "127.0.0.1:22 and 127.1:22 are one machine" in done.stdout


def test_check_mode_says_that_it_would_take_a_lock_over(tmp_path: Path) -> None:
    lock = tmp_path / "state" / "lock.json"
    lock.parent.mkdir()
    names = ("run", "owner", "reason", "controller", "process_start")
    lock.write_text(json.dumps({"schema": 1, **dict.fromkeys(names, "bob"), "pid": 1, "taken_at": 0, "expires_at": 1}))
    done = play(tmp_path, [ours("lock")], "--check", a="127.0.0.1")
    assert "a: would take over the lock of bob (bob): it has expired." in done.stderr
    assert "took over" not in done.stderr
    assert json.loads(lock.read_text())["owner"] == "bob"
