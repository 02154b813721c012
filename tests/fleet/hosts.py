# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's tests ask a node."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml
from testinfra.host import Host

from fleet.config import OLD_SERVICE
from tests.fleet.control import INVENTORY, PROJECT

CHOICES = yaml.safe_load((INVENTORY / "group_vars/sglang/main.yml").read_text())
API_KEY: str = CHOICES["sglang_api_key"]
API_PORT: int = CHOICES["sglang_port"]
SERVICE = "sglang-qwen"
SERVED_MODEL = "qwen3.5-397b-a17b"
UNIT = f"/etc/systemd/system/{SERVICE}.service"
QUESTION, ANSWER = "What is the capital of France?", "Paris"
MARK = "/run/llmfleet-test-mark"


def address(host: Host) -> str:
    """A node's address, as the inventory has it."""
    return str(host.ansible.get_variables()["ansible_host"])


def name(host: Host) -> str:
    """A node's name in the inventory."""
    return str(host.ansible.get_variables()["inventory_hostname"])


def limit(hosts: list[Host]) -> str:
    """The option that limits a playbook to these nodes."""
    return f"--limit={','.join(name(host) for host in hosts)}"


def root(host: Host, command: str, *words: str) -> str:
    """What a shell command prints as root; fails the test when it fails. `%s` in it are quoted `words`."""
    with host.sudo():
        done = host.run(command, *words)
    assert done.rc == 0, f"{name(host)}: {done.command!r} -> rc {done.rc}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


def wait(what: str, condition: Callable[[], bool], timeout: float, interval: float = 0.5) -> None:
    """Wait until `condition` holds; fails the test after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s for {what}"
        time.sleep(interval)


def show(host: Host, unit: str, *properties: str) -> dict[str, str]:
    """Properties of a unit, as `systemctl show` has them."""
    text = root(host, f"systemctl show {unit} {' '.join(f'--property={one}' for one in properties)}")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def main_pid(host: Host, unit: str = SERVICE) -> int:
    """The unit's main process; 0 if there is none."""
    return int(show(host, unit, "MainPID")["MainPID"])


def api(host: Host, path: str, body: dict[str, Any] | None = None, key: str | None = API_KEY) -> tuple[int, Any]:
    """Status and JSON answer of a node's API, asked from the controller."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://{address(host)}:{API_PORT}{path}", data)
    request.add_header("Content-Type", "application/json")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the fleet is on this machine
    try:
        with direct.open(request, timeout=30) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        raise AssertionError(f"the API of {name(host)} does not answer {path}: {error}") from error


def ask(host: Host, model: str = SERVED_MODEL, key: str | None = API_KEY) -> tuple[int, Any]:
    """Status and text of the answer to the question with the known answer."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 0,
        "max_tokens": 16,
        "chat_template_kwargs": {"enable_thinking": False, "thinking": False},  # as Qwen and GLM call it, and Kimi
    }
    status, answer = api(host, "/v1/chat/completions", body, key)
    return status, answer["choices"][0]["message"]["content"] if status == 200 else answer


@dataclass(frozen=True)
class Serving:
    """What serves on a node: the main process, the unit's bytes (as a digest) and when it was started."""

    pid: int
    unit: str
    began: str


def serving(host: Host) -> Serving:
    """What serves on a node now; fails the test unless it answers rightly."""
    status, answer = ask(host)
    assert status == 200 and ANSWER in str(answer), f"{name(host)} answers {status} {answer!r}"
    about = show(host, SERVICE, "MainPID", "ExecMainStartTimestampMonotonic")
    digest = root(host, f"sha256sum {UNIT}").split()[0]
    return Serving(int(about["MainPID"]), digest, about["ExecMainStartTimestampMonotonic"])


def old_service_digest(host: Host) -> str:
    """SHA-256 of the old service's unit file on a node."""
    return root(host, f"sha256sum /etc/systemd/system/{OLD_SERVICE}.service").split()[0]


# Its argument is the file that it writes.
LISTING = (PROJECT / "tests/fleet/listing.sh").read_text()


@contextmanager
def nothing_changes(host: Host, *but: str) -> Iterator[None]:
    """Fails the test if another process serves afterwards, or if a file appeared, changed or went.

    `but`: regular expressions of paths that may.
    """
    before = serving(host)
    root(host, f"sh -c %s listing {MARK}.before", LISTING)
    try:
        yield
        root(host, f"sh -c %s listing {MARK}.after", LISTING)
        rows = root(host, f"diff {MARK}.before {MARK}.after || true").splitlines()
        rows += root(host, f"find /opt/sglang/releases -not -type d -newer {MARK}.before").splitlines()
        found = [row for row in rows if row[:1] in "<>/"]
        found = [row for row in found if not any(re.match(f"(?:[<>] )?{one}(?: |$)", row) for one in but)]
        assert not found, f"{name(host)} has changed (<: before, >: after):\n" + "\n".join(found[:40])
        assert serving(host) == before
    finally:
        root(host, f"rm -f {MARK}.before {MARK}.after")
