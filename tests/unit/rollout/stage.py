# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of local connections on which the real playbooks run with stand-ins for their roles, and for systemctl.

The stand-ins say what they do, and fail, get lost or wait where a host's variables tell them to: `fails_in`, `lost_in`
and `waits_in` name a step. What is tested is Ansible's own behaviour in our plays: who is touched, who goes back, when
it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
HOSTS = [f"h{number:02d}" for number in range(1, 7)]
_EVENT = re.compile(r"EVENT (\w+) (h\d\d)")
_RECAP = re.compile(r"^\s+(h\d\d)  ([a-z ]+?)  +\S", re.MULTILINE)


def _step(name: str) -> list[dict[str, Any]]:
    """The tasks of one step: say so, get lost, or fail, where the host is told to."""
    return [
        {"name": name, "ansible.builtin.debug": {"msg": f"EVENT {name} {{{{ inventory_hostname }}}}"}},
        {
            "name": "Wait",
            "ansible.builtin.command": {"argv": ["sleep", "60"]},
            "changed_when": False,
            "when": f"waits_in | default('') == '{name}'",
        },
        {
            "name": "Get lost",
            "ansible.builtin.command": {"argv": ["true"]},
            "changed_when": False,
            "when": f"lost_in | default('') == '{name}'",
            "vars": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        },
        {
            "name": "Fail",
            "ansible.builtin.fail": {"msg": f"The {name} failed."},
            "when": f"fails_in | default('') == '{name}'",
        },
    ]


def _fact(name: str, value: Any) -> dict[str, Any]:
    return {"name": f"Tell {name}", "ansible.builtin.set_fact": {name: value}}


# Somebody else takes the lock over in the middle of the run, where a host's variable `stolen` says so.
_STEAL = {
    "name": "Steal the lock",
    "ansible.builtin.copy": {
        "dest": "{{ sglang_deployment.paths.state }}/lock.json",
        "content": "{{ stolen | default({}) | to_json }}",
        "mode": "0600",
    },
    "changed_when": False,
    "when": "stolen is defined",
}
HOOKS = {
    f"sglang_{verb}_tasks": [
        *_step(verb),
        {"name": "Tell", "ansible.builtin.debug": {"msg": "HANDED {{ sglang_drained_host | to_json }}"}},
    ]
    for verb in ("drain", "undrain")
}

ROLES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "sglang_preflight": {"main": _step("preflight")},
    "sglang_build": {
        "main": [*_step("build"), _fact("sglang_build_release", {"id": "r", "path": "/r"})],
        "prune": _step("prune"),
    },
    "sglang_checkpoint": {
        "main": [*_step("checkpoint"), _fact("sglang_checkpoint_result", {"manifest_digest": "d"})],
    },
    "sglang_service": {
        "main": [
            *_step("unit"),
            _STEAL,
            {"name": "Prepare", "ansible.builtin.debug": {"msg": "prepared"}, "register": "sglang_service_prepared"},
        ],
        "compare": [
            {"name": "Know", "ansible.builtin.assert": {"that": "sglang_service_prepared is not skipped"}},
            _fact("sglang_service_plan", {"reason": "{{ '' if already | default(false) else 'another state' }}"}),
            _fact(
                "sglang_service_snapshot",
                {"phase": "{{ 'serving' if already | default(false) and not begun | default(false) else 'cutover' }}"},
            ),
        ],
        "start": [
            *_step("start"),
            {
                "name": "Start",
                "ansible.builtin.debug": {"msg": "started"},
                "changed_when": "not (already | default(false))",
                "register": "sglang_service_started",
            },
        ],
        "record": _step("record"),
    },
    "sglang_verify": {"main": _step("verify")},
    "sglang_benchmark": {"main": _step("measure")},
    "sglang_stop": {
        "main": [
            *_step("stop"),
            {
                "name": "Stop",
                "ansible.builtin.debug": {"msg": "stopped"},
                "changed_when": "not (already | default(false))",
                "register": "sglang_stop_result",
            },
        ],
    },
    "sglang_uninstall": {
        "main": [
            *_step("uninstall"),
            *(_fact(f"sglang_{name}", {"changed": False}) for name in ("stop_result", "uninstall_checkpoint")),
            _fact("sglang_uninstall_folders", {"changed": "{{ not (already | default(false)) }}"}),
            _fact("sglang_uninstall_result", {"changed": False, "next": "{{ left_to_do | default([]) }}"}),
        ],
    },
    "sglang_rollback": {
        "main": [
            {
                "name": "rollback",
                "ansible.builtin.debug": {"msg": "EVENT rollback {{ inventory_hostname }}"},
                "when": "sglang_rollback_needed | default(true)",
            },
            _fact(
                "sglang_rollback_verdict",
                {
                    "serves": False,
                    "restored": "{{ not (stuck | default(false)) }}",
                    "stopped": "{{ sglang_rollback_needed | default(true) }}",
                    "message": "{{ sglang_rollback_cause }}",
                },
            ),
        ],
    },
}


# What of systemctl the playbooks ask, for each host; a file `active` beside it holds what runs there.
_SYSTEMCTL = """#!/bin/sh
active="$(dirname "$0")/active"
for name; do :; done
name="${name%.service}"
runs=inactive; grep -qx "$name" "$active" 2>/dev/null && runs=active
case "$1" in
    show) echo "Id=$name.service"; echo LoadState=loaded; echo "ActiveState=$runs"; echo UnitFileState=enabled ;;
    is-enabled) echo enabled ;;
    start) echo "$name" >> "$active" ;;
    is-active) [ "$2" = --quiet ] || echo "$runs"; [ "$runs" = active ] ;;
esac
"""

# A host's own programs come first for what Ansible starts there.
_PYTHON = """#!/bin/sh
PATH="$(dirname "$0"):$PATH" exec {python} "$@"
"""


def _heed_ctrl_c() -> None:
    """A background job of a shell starts with Ctrl-C ignored, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _below(pid: int) -> list[int]:
    """The processes below one: Ansible's workers are in sessions of their own."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended meanwhile
        return []
    return [one for child in map(int, children) for one in (child, *_below(child))]


def _await_step(pid: int, timeout: float = 60) -> None:
    """Wait until the step that is held has begun: a Ctrl-C while Ansible starts a worker can be lost (seen in 2.21)."""
    deadline = time.monotonic() + timeout
    while not any("sleep\0" in _command(one) for one in _below(pid)):
        assert time.monotonic() < deadline, "the step did not begin"
        time.sleep(0.05)


def _command(pid: int) -> str:
    """A process's words, each ended by NUL; "" when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    return ""


@dataclass(frozen=True)
class Rollout:
    """What a run did. events: which hosts came to a step; states: each host's state in the recap."""

    rc: int
    output: str

    def came_to(self, step: str) -> list[str]:
        """The hosts that came to a step, in the order in which they did."""
        return [host for name, host in _EVENT.findall(self.output) if name == step]

    @property
    def states(self) -> dict[str, str]:
        """Each host's state in the recap."""
        return dict(_RECAP.findall(self.output))

    def hosts(self, state: str) -> list[str]:
        """The hosts in this state."""
        return [host for host, found in self.states.items() if found == state]


class Stage:
    """A collection with the real playbooks and plugins, and an inventory of local hosts. extra: for -e."""

    def __init__(self, folder: Path, hosts: list[str]) -> None:
        self.folder = folder
        self.hosts = hosts
        self.extra: dict[str, str] = {}
        self.dead = ""  # a host that is no target, and away
        collection = folder / "ansible_collections" / "llmfleet" / "sglang"
        self.books = collection / "playbooks"
        collection.mkdir(parents=True)
        for name in ("plugins", "playbooks", "meta", "galaxy.yml"):
            (collection / name).symlink_to(ROOT / name)
        for role, entries in ROLES.items():
            tasks = collection / "roles" / role / "tasks"
            tasks.mkdir(parents=True)
            for entry, steps in entries.items():
                (tasks / f"{entry}.yml").write_text(yaml.safe_dump(steps, sort_keys=False))
        self.hooks: dict[str, Any] = {name: str(folder / f"{name}.yml") for name in HOOKS}
        for name, steps in HOOKS.items():
            Path(self.hooks[name]).write_text(yaml.safe_dump(steps, sort_keys=False))
        (folder / "inventory").mkdir()
        (folder / "inventory" / "group_vars").symlink_to(ROOT / "inventories" / "demo" / "group_vars")
        (folder / "inventory" / "cpu-overrides.txt").symlink_to(ROOT / "inventories" / "demo" / "cpu-overrides.txt")

    def bin(self, host: str) -> Path:
        """The folder of a host's own programs."""
        folder = self.folder / "bin" / host
        if not folder.exists():
            folder.mkdir(parents=True)
            for name, text in {"systemctl": _SYSTEMCTL, "python": _PYTHON.format(python=sys.executable)}.items():
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
        return folder

    def runs(self, *services: str) -> None:
        """Let systemctl say on every host that these run."""
        for host in self.hosts:
            (self.bin(host) / "active").write_text("".join(f"{one}\n" for one in services))

    def dead_hook(self, verb: str, host: str) -> str:
        """A hook that asks a load balancer which is away, for one host."""
        task = {
            "name": verb,
            "ansible.builtin.command": {"argv": ["true"]},
            "changed_when": False,
            "delegate_to": "lb1",
            "when": f"inventory_hostname == '{host}'",
            "vars": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        }
        path = self.folder / f"dead_{verb}.yml"
        path.write_text(yaml.safe_dump([task], sort_keys=False))
        return str(path)

    def command(
        self, host_variables: dict[str, dict[str, Any]], book: str = "deploy_qwen", **variables: Any
    ) -> list[str]:
        """The command that runs a playbook, with these variables of hosts and these of the inventory."""
        common = {
            "ansible_connection": "local",
            "ansible_become": False,
            **variables,
        }
        hosts = {
            host: {
                **common,
                "ansible_host": f"192.0.2.{number}",
                "ansible_python_interpreter": str(self.bin(host) / "python"),
                "sglang_state": str(self.folder / "state" / host),
                **host_variables.get(host, {}),
            }
            for number, host in enumerate(self.hosts, 1)
        }
        away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        others = {"others": {"hosts": {self.dead: away}}} if self.dead else {}
        (self.folder / "inventory" / "hosts.yml").write_text(yaml.safe_dump({"sglang": {"hosts": hosts}, **others}))
        where = book if "/" in book else f"llmfleet.sglang.{book}"
        words = [str(Path(sys.executable).with_name("ansible-playbook")), where]
        extra = {"sglang_profile": "qwen3_5_397b_nvfp4", **self.extra}
        return [*words, "-i", str(self.folder / "inventory"), "-e", json.dumps(extra)]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the command."""
        own = {
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
            "ANSIBLE_FORKS": "12",
            "ANSIBLE_SSH_RETRIES": "0",
        }
        return {**os.environ, **own}

    def deploy(
        self, host_variables: dict[str, dict[str, Any]] | None = None, *, check: bool = False, **variables: Any
    ) -> Rollout:
        """Deploy to the end."""
        return self.play("deploy_qwen", host_variables, check=check, **variables)

    def play(
        self,
        book: str,
        host_variables: dict[str, dict[str, Any]] | None = None,
        *,
        check: bool = False,
        limit: str = "",
        **variables: Any,
    ) -> Rollout:
        """Run a playbook to its end."""
        words = [*(["--check"] if check else []), *(["--limit", limit] if limit else [])]
        done = subprocess.run(
            [*self.command(host_variables or {}, book, **variables), *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return Rollout(done.returncode, done.stdout)

    def end_after(self, text: str, how: signal.Signals, **variables: Any) -> Rollout:
        """Deploy, and send the controller a signal when it has printed `text`; with SIGKILL, its workers too.

        text: EVENT, a step and a host, which stays in that step until the signal comes.
        """
        step, host = text.removeprefix("EVENT ").split()
        with subprocess.Popen(
            self.command({host: {"waits_in": step}}, **variables),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_heed_ctrl_c,
        ) as run:
            assert run.stdout is not None
            output = ""
            for line in run.stdout:
                output += line
                if text in line:
                    break
            _await_step(run.pid)
            for pid in [run.pid, *_below(run.pid)] if how == signal.SIGKILL else [run.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
            output += run.communicate(timeout=120)[0]
        assert text in output, output
        return Rollout(run.returncode, output)

    def drained(self) -> list[str]:
        """The hosts that are marked as drained by us."""
        return [host for host in self.hosts if any((self.folder / "state" / host).glob("*/drained.json"))]

    def locked(self) -> list[str]:
        """The hosts on which somebody holds the lock."""
        return [host for host in self.hosts if (self.folder / "state" / host / "lock.json").exists()]
