# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two instances on one machine, deployed by one run, then changed and rolled back: never both at once."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml
from testinfra.host import Host

from fleet import ask
from fleet.__main__ import node_named
from fleet.config import OLD_SERVICE
from tests.faults.breaking import Deployment, another, fleet
from tests.faults.rolling import states
from tests.fleet.control import INVENTORY, PROJECT, Run
from tests.fleet.hosts import CHOICES, root

NODE = "node3"
SERVICES = {"node3-a": "sglang-qwen", "node3-b": "sglang-qwen-b"}
PORTS = {"node3-a": 30000, "node3-b": 30001}
CARDS = {"node3-a": "0,1,2,3", "node3-b": "4,5,6,7"}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's inventory, with node3 as two hosts."""
    folder = tmp_path_factory.mktemp("instances") / "demo"
    shutil.copytree(INVENTORY, folder)
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    both = {
        name: {
            "ansible_host": node_named(NODE).address,
            "sglang_visible_gpus": [int(card) for card in CARDS[name].split(",")],
            "sglang_instance": SERVICES[name].removeprefix("sglang-"),
            "sglang_port": PORTS[name],
            "sglang_replaces": [OLD_SERVICE],  # which had all cards
        }
        for name in SERVICES
    }
    hosts["sglang"]["hosts"] = both
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts, sort_keys=False))
    return folder


@pytest.fixture(scope="module")
def machine() -> Iterator[Host]:
    """node3, fresh; and fresh again for whoever comes next."""
    fleet("power", NODE, "on")
    fleet("reset", NODE)
    yield testinfra.get_host(f"ansible://{NODE}", ansible_inventory=str(INVENTORY))
    fleet("reset", NODE)


def play(inventory: Path, book: str, limit: str = "node3-a,node3-b", **variables: Any) -> Run:
    """Run a playbook to its end."""
    path = PROJECT / "playbooks" / f"{book}.yml"
    given = {"sglang_profile": "qwen3_5_397b_nvfp4", "sglang_serial": ["100%"], **variables}
    return Deployment(given, book=path, limit=limit, inventory=inventory).end(timeout=1500)


def answer(name: str) -> str:
    """What an instance answers; "" when it does not."""
    where = {"ansible_host": node_named(NODE).address, **CHOICES, "sglang_port": PORTS[name]}
    try:
        return ask.ask(where, ask.QUESTION)[1]
    except (OSError, ValueError, KeyError, IndexError):
        return ""


def main_pids(machine: Host) -> dict[str, int]:
    """By host of the inventory, the main process of its instance; 0 where there is none."""
    found = {}
    for name, service in SERVICES.items():
        found[name] = int(root(machine, f"systemctl show --value --property=MainPID {service}"))
    return found


def environ(machine: Host, pid: int) -> dict[str, str]:
    """A process's environment."""
    text = root(machine, f"tr '\\0' '\\n' < /proc/{pid}/environ")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@dataclass
class Watch:
    """Asks both instances all the time; `silent` are the moments at which neither answered."""

    silent: int = 0
    asked: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(150)

    def _work(self) -> None:
        while not self._done.wait(1):
            self.asked += 1
            self.silent += not any("Paris" in answer(name) for name in SERVICES)


def serve_apart(machine: Host) -> dict[str, int]:
    """Both answer, each by its own process, port, cards and records; their main processes."""
    pids = main_pids(machine)
    assert 0 not in pids.values() and len(set(pids.values())) == 2, pids
    for name, pid in pids.items():
        assert "Paris" in answer(name), name
        assert environ(machine, pid)["CUDA_VISIBLE_DEVICES"] == CARDS[name]
        record = json.loads(
            root(machine, f"cat /var/lib/llmfleet/{SERVICES[name].removeprefix('sglang-')}/record.json")
        )
        assert record["service"] == SERVICES[name]
    assert root(machine, "ls /var/lib/llmfleet/lock.json /var/lib/llmfleet/*/drained.json 2>/dev/null || true") == ""
    return pids


@pytest.mark.faults(0)
def test_one_run_brings_both_and_the_next_changes_nothing(machine: Host, inventory: Path) -> None:
    end = play(inventory, "deploy").must_pass()
    assert states(end) == dict.fromkeys(SERVICES, "new"), end.output
    before = serve_apart(machine)
    again = play(inventory, "deploy").must_pass()
    assert states(again) == dict.fromkeys(SERVICES, "unchanged") and set(again.changed.values()) == {0}, again.output
    assert serve_apart(machine) == before


@pytest.mark.faults(0)
def test_of_two_that_change_one_serves_at_each_moment(machine: Host, inventory: Path) -> None:
    before = serve_apart(machine)
    wanted: dict[str, Any] = another()
    with Watch() as watch:
        end = play(inventory, "deploy", **wanted).must_pass()
    assert states(end) == dict.fromkeys(SERVICES, "new"), end.output
    after = serve_apart(machine)
    assert not set(before.values()) & set(after.values())
    assert watch.asked > 5 and watch.silent == 0


def test_one_that_cannot_start_goes_back_and_the_other_never_noticed(machine: Host, inventory: Path) -> None:
    before = serve_apart(machine)
    arguments = {**yaml.safe_load((INVENTORY / "group_vars/sglang/cpu.yml").read_text())["sglang_arguments"]}
    end = play(inventory, "deploy", limit="node3-b", sglang_arguments={**arguments, "context-length": 1_000_000})
    assert end.rc != 0 and states(end) == {"node3-b": "went back"}, end.output
    after = serve_apart(machine)
    assert after["node3-a"] == before["node3-a"] and after["node3-b"] != before["node3-b"]


@pytest.mark.faults(0)
def test_going_back_and_stopping_are_an_instances_own(machine: Host, inventory: Path) -> None:
    changed: dict[str, Any] = another()
    play(inventory, "deploy", limit="node3-b", **changed).must_pass()
    before = serve_apart(machine)
    end = play(inventory, "rollback", limit="node3-b").must_pass()
    assert states(end) == {"node3-b": "went back"}, end.output
    after = serve_apart(machine)
    assert after["node3-a"] == before["node3-a"] and after["node3-b"] != before["node3-b"]
    end = play(inventory, "stop", limit="node3-b").must_pass()
    assert states(end) == {"node3-b": "stopped"}, end.output
    assert main_pids(machine) == {"node3-a": before["node3-a"], "node3-b": 0} and "Paris" in answer("node3-a")
    end = play(inventory, "start", limit="node3-b").must_pass()
    assert states(end) == {"node3-b": "started"}, end.output
    assert serve_apart(machine)["node3-a"] == before["node3-a"]
