# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of faults break things with: deployments that are watched or killed, and a node's known state."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from testinfra.host import Host

from fleet import faults
from fleet.__main__ import node_named
from fleet.config import OLD_SERVICE, cache_folder
from tests.fleet.control import BIN, DEPLOY, INVENTORY, PROJECT, Run, environment
from tests.fleet.hosts import SERVICE, Serving, root, serving, show, wait

NODE = os.environ.get("LLMFLEET_FAULT_NODE", "node2")
RECORD = "/var/lib/llmfleet/qwen"
ENVIRONMENT = yaml.safe_load((INVENTORY / "group_vars/sglang/cpu.yml").read_text())["sglang_environment"]
SERVES_AGAIN = f"The host serves again what it served before: {SERVICE}."
# Throw-away units of the tests, by what they are.
THIEF, ORPHAN, STUBBORN = "llmfleet-test-thief", "llmfleet-test-orphan", "llmfleet-test-stubborn"
DROP_IN = f"/etc/systemd/system/{SERVICE}.service.d/fault.conf"


def another(**variables: object) -> dict[str, object]:
    """Variables of a deployment that differs from any before (by one variable in the engine's environment)."""
    return {"sglang_environment": {**ENVIRONMENT, "LLMFLEET_TEST": uuid.uuid4().hex}, **variables}


def _descendants(pid: int) -> list[int]:
    """Every process below a process: Ansible's workers are in sessions of their own."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found, below = [], [pid]
    while below:
        one = below.pop()
        found.append(one)
        below += parents.get(one, [])
    return found


def _heed_ctrl_c() -> None:
    """A background job of a shell starts with Ctrl-C ignored, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Deployment:
    """A deployment under way, whose output is read as it comes, so that a test can act at a moment that it names."""

    def __init__(
        self,
        variables: Mapping[str, Any] | None = None,
        book: Path | str = DEPLOY,
        limit: str = NODE,
        within: list[str] | None = None,
        inventory: Path = INVENTORY,
    ) -> None:
        words = [*(within or []), BIN / "ansible-playbook", book, "-i", inventory, f"--limit={limit}"]
        self._words = [str(word) for word in [*words, *(["-e", json.dumps(dict(variables))] if variables else [])]]
        # Connections of its own: those of an earlier run may lead to a node that has lost its power since.
        self._sockets = tempfile.mkdtemp(prefix="llmfleet-cp-")
        self._process = subprocess.Popen(
            self._words,
            cwd=PROJECT,
            env=environment({"ANSIBLE_SSH_CONTROL_PATH_DIR": self._sockets}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_heed_ctrl_c,
        )
        self._output = ""
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._grown:
                self._output += line
                self._grown.notify_all()

    def until(self, text: str, timeout: float = 240) -> None:
        """Wait until the playbook has printed `text`; fails the test if it ends without or takes longer (seconds)."""
        with self._grown:
            came = self._grown.wait_for(lambda: text in self._output or self._process.poll() is not None, timeout)
            assert came and text in self._output, f"{text!r} did not come\n{self._output}"

    def runs(self) -> bool:
        """Whether it is still under way."""
        return self._process.poll() is None

    def end(self, timeout: float = 400) -> Run:
        """Wait for its end."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still under way after {timeout:.0f} s:\n{self._output}") from None
        self._reader.join(20)
        return Run(" ".join(self._words), self._process.returncode, self._output)

    def interrupt(self) -> None:
        """Press Ctrl-C on the controller."""
        self._process.send_signal(signal.SIGINT)

    def kill_alone(self) -> None:
        """Kill ansible-playbook with -9, and none of its workers."""
        self._process.kill()
        self._process.wait(20)

    def kill(self) -> None:
        """Kill the controller's whole side with -9."""
        for pid in _descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(20)


def deploy(variables: Mapping[str, Any] | None = None, timeout: float = 400) -> Run:
    """Deploy to the end."""
    return Deployment(variables).end(timeout)


def refused(run: Run) -> str:
    """The message of a deployment that had to fail: the last one, or the one before that it points to."""
    assert run.rc != 0, run.output
    told = [message for message in run.errors if "not prepared, for the reason in the recap above." not in message][-1]
    assert "Traceback (most recent call last)" not in told, run.output
    return told


def converges(host: Host, variables: Mapping[str, Any] | None = None) -> Serving:
    """A plain rerun ends with the right answers of what is wanted, and the one after changes nothing."""
    deploy(variables).must_pass()
    now = serving(host)
    again = deploy(variables).must_pass()
    assert again.changed == {NODE: 0}, again.output
    assert serving(host) == now
    assert show(host, OLD_SERVICE, "ActiveState", "UnitFileState") == {
        "ActiveState": "inactive",
        "UnitFileState": "disabled",
    }
    return now


def fleet(*words: str, timeout: float = 300) -> str:
    """Run a command of the test fleet."""
    argv = [sys.executable, "-m", "fleet", *words]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{argv} -> rc {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def gpus(**settings: object) -> None:
    """Settings of the node's simulated nvidia-smi; none: as normal."""
    faults.gpu(cache_folder(), node_named(NODE), [f"{name}={value}" for name, value in settings.items()])


def phase(host: Host) -> str:
    """The phase of the host's snapshot; "" when there is none."""
    text = root(host, f"cat {RECORD}/snapshot.json 2>/dev/null || true")
    return str(json.loads(text)["phase"]) if text.strip() else ""


def as_deployed(host: Host) -> Serving:
    """Bring the node to the known state (ours serves, deployed and concluded), by a fresh start if need be."""
    fleet("power", NODE, "on")
    clean_up(host)
    try:
        if phase(host) == "serving" and show(host, SERVICE, "NeedDaemonReload") == {"NeedDaemonReload": "no"}:
            return serving(host)
    except AssertionError:
        pass  # then it is deployed
    if deploy().rc:
        fleet("reset", NODE)
        deploy().must_pass()
    return serving(host)


def clean_up(host: Host) -> None:
    """Take away what a test may have left: throw-away units, mounts, settings of the simulated cards."""
    gpus()
    units = f"{THIEF} {ORPHAN} {STUBBORN}"
    root(host, f"systemctl kill --signal=KILL {units} 2>/dev/null; systemctl stop {units} 2>/dev/null || true")
    for place in (f"{RECORD}/next", RECORD, "/etc/systemd/system"):
        root(host, f"while mountpoint --quiet {place}; do umount --lazy {place}; done")
    root(host, f"rm -f {DROP_IN} && systemctl daemon-reload")


@contextlib.contextmanager
def deployment(variables: Mapping[str, Any] | None = None) -> Iterator[Deployment]:
    """A deployment under way that does not outlive the test."""
    one = Deployment(variables)
    try:
        yield one
    finally:
        if one.runs():
            one.kill()


def starting(host: Host, before: int, timeout: float = 240) -> int:
    """Wait until systemd has started another main process than `before`, and return it."""
    found = [0]

    def other() -> bool:
        found[0] = int(show(host, SERVICE, "MainPID")["MainPID"])
        return found[0] not in (0, before)

    wait("another main process", other, timeout, interval=0.1)
    return found[0]


def answers(host: Host, timeout: float = 240) -> Serving:
    """Wait until the node answers rightly, and return what serves."""
    seen: list[Serving] = []

    def rightly() -> bool:
        try:
            seen.append(serving(host))
        except AssertionError:
            return False
        return True

    wait("the right answers", rightly, timeout, interval=1)
    return seen[-1]


def restored(host: Host, before: Serving) -> Serving:
    """What serves after a rollback: the same unit as before, answering rightly, and nothing else."""
    after = serving(host)
    assert after.unit == before.unit
    assert show(host, SERVICE, "ActiveState", "UnitFileState", "NeedDaemonReload") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
    }
    assert one_engine(host) == after.pid
    return after


def one_engine(host: Host) -> int:
    """The one engine's main process on the node; fails the test when there are more or none."""
    [pid] = root(host, "pgrep --full -- '-m sglang[.]launch_server' || true").split()
    return int(pid)
