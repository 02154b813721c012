# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Five ways in which Ansible by itself goes on after a failure, each for real: what deploy.yml must not be built upon.

That deploy.yml goes on in none of them is in test_playbook.py and test_hooks.py; docs/rollout.md says which test is
whose. When one of these fails, Ansible has changed, and what was built around it can be thought over.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HOSTS = [f"h{number:02d}" for number in range(1, 7)]
Task = dict[str, Any]


def say(word: str) -> Task:
    return {"name": word, "ansible.builtin.debug": {"msg": f"{word} {{{{ inventory_hostname }}}}"}}


def fails_on(host: str) -> Task:
    return {"name": "Fail", "ansible.builtin.fail": {"msg": "unhealthy"}, "when": f"inventory_hostname == '{host}'"}


def lost_on(host: str) -> Task:
    return {
        "name": "Ask",
        "ansible.builtin.command": {"argv": ["true"]},
        "changed_when": False,
        "when": f"inventory_hostname == '{host}'",
        "vars": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
    }


AGAIN: Task = {"name": "Fail again", "ansible.builtin.fail": {"msg": "rolled back"}}


@dataclass(frozen=True)
class Ended:
    """A play's end. said: the hosts that came to a word, in order."""

    rc: int
    output: str

    def said(self, word: str) -> list[str]:
        """The hosts that came to it."""
        return [host for host in HOSTS if f"{word} {host}" in self.output]


def play(folder: Path, tasks: list[Task], serial: list[Any], **keywords: Any) -> Ended:
    """Run a play of batches over six local hosts."""
    one = {"name": "Roll out", "hosts": "all", "gather_facts": False, "serial": serial, **keywords, "tasks": tasks}
    (folder / "ansible.cfg").touch()
    (folder / "play.yml").write_text(yaml.safe_dump([one], sort_keys=False))
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {host: dict(local) for host in HOSTS}}}))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "play.yml", "-i", "hosts.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "ANSIBLE_FORKS": "6"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout)


def test_a_rescue_that_succeeds_wipes_the_failure(tmp_path: Path) -> None:
    block = {"block": [say("deploy"), fails_on("h01")], "rescue": [say("back")]}
    end = play(tmp_path, [block], [1, "100%"], max_fail_percentage=0)
    assert (end.rc, end.said("deploy"), end.said("back")) == (0, HOSTS, ["h01"]), end.output


def test_a_rescue_that_fails_again_leaves_the_peers_of_its_batch_drained(tmp_path: Path) -> None:
    block = {"block": [fails_on("h03")], "rescue": [AGAIN]}
    end = play(tmp_path, [say("drain"), block, say("undrain")], [1, 3, "100%"], max_fail_percentage=0)
    assert (end.rc, end.said("drain"), end.said("undrain")) == (2, HOSTS[:4], ["h01"]), end.output


def test_with_an_always_the_failure_is_not_counted_and_all_hosts_are_deployed(tmp_path: Path) -> None:
    inner = {"block": [fails_on("h03")], "rescue": [AGAIN]}
    outer = {"block": [say("deploy"), inner], "always": [say("undrain")]}
    end = play(tmp_path, [outer], [1, 3, "100%"], max_fail_percentage=0)
    assert (end.rc, end.said("deploy")) == (2, HOSTS), end.output


def test_any_errors_fatal_runs_the_rescue_on_healthy_hosts_and_goes_on(tmp_path: Path) -> None:
    block = {"block": [say("deploy"), fails_on("h03"), say("passed")], "rescue": [say("back")]}
    end = play(tmp_path, [block], [1, 3, "100%"], any_errors_fatal=True)
    assert end.said("back") == ["h02", "h03", "h04"], end.output
    assert end.said("deploy") == HOSTS, end.output


@pytest.mark.parametrize("keywords", [{"max_fail_percentage": 0}, {"any_errors_fatal": True}])
def test_a_host_that_is_lost_is_seen_by_nothing_and_the_next_batch_starts(
    tmp_path: Path, keywords: dict[str, Any]
) -> None:
    block = {"block": [lost_on("h03")], "rescue": [say("back")]}
    end = play(tmp_path, [block, say("next")], [1, 3, "100%"], **keywords)
    assert end.rc != 0 and end.said("back") in ([], ["h02", "h04"]), end.output
    assert set(HOSTS[4:]) <= set(end.said("next")), end.output
