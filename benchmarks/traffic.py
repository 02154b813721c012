# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real HAProxy or SMG in front of the demo fleet, and clients that ask through it at a steady rate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.watching import RIGHT
from fleet import ask

SECONDS = 180  # what a client waits at most
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the fleet is on this machine
_CONFIGURATION = """
global
    stats socket {folder}/admin.sock mode 600 level admin
defaults
    mode http
    retries 3
    option redispatch
    timeout connect 5s
    timeout queue 60s
    timeout client {seconds}s
    timeout server {seconds}s
    timeout check 10s
    default-server check inter 1s rise 2 fall 3
frontend clients
    bind 127.0.0.1:{port}
    default_backend sglang
backend sglang
    balance leastconn
    # It needs no key and lets the engine generate nothing, as /health does.
    option httpchk GET /ready
    http-check expect status 200
{servers}
"""


@dataclass(frozen=True)
class HAProxy:
    """A running HAProxy. hosts: the variables of the fleet's nodes by name."""

    folder: Path
    port: int
    hosts: dict[str, dict[str, Any]]

    @property
    def socket(self) -> str:
        """Its admin socket."""
        return str(self.folder / "admin.sock")

    @property
    def hooks(self) -> dict[str, Any]:
        """The variables by which a rollout drains and undrains here."""
        place = {
            "host": "localhost",
            "become": False,
            "socket": self.socket,
            "record": str(self.folder / "record.json"),
            "seconds": 180,
        }
        return {"sglang_drain_tasks": "haproxy", "sglang_undrain_tasks": "haproxy", "sglang_haproxy": [place]}

    def out(self) -> list[str]:
        """The servers that a rollout has taken out and not put back."""
        record = self.folder / "record.json"
        return sorted(json.loads(record.read_text())["out"]) if record.exists() else []


@contextmanager
def haproxy(port: int = 30080, nodes: Collection[str] = ()) -> Iterator[HAProxy]:
    """Run HAProxy in front of every node of the inventory or these, on this machine alone."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        raise SystemExit("this needs HAProxy: apt-get install haproxy")
    hosts = {name: each for name, each in ask.inventory().items() if not nodes or name in nodes}
    servers = "\n".join(
        f"    server {name} {each['ansible_host']}:{each['sglang_port']}" for name, each in sorted(hosts.items())
    )
    with tempfile.TemporaryDirectory(prefix="llmfleet-haproxy-") as name:
        folder = Path(name)
        text = _CONFIGURATION.format(folder=folder, port=port, servers=servers, seconds=SECONDS)
        (folder / "haproxy.cfg").write_text(text)
        words = [program, "-db", "-f", str(folder / "haproxy.cfg")]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
            try:
                yield HAProxy(folder, port, hosts)
            finally:
                process.kill()


@dataclass(frozen=True)
class SMG:
    """A running SMG (Shepherd Model Gateway). hosts: the variables of the fleet's nodes by name."""

    folder: Path
    port: int
    hosts: dict[str, dict[str, Any]]

    @property
    def hooks(self) -> dict[str, Any]:
        """The variables by which a rollout drains and undrains here."""
        place = {
            "host": "localhost",
            "become": False,
            "url": f"http://127.0.0.1:{self.port}",
            "record": str(self.folder / "record.json"),
            "seconds": 180,
        }
        return {"sglang_drain_tasks": "smg", "sglang_undrain_tasks": "smg", "sglang_smg": [place]}

    def out(self) -> list[str]:
        """The nodes that a rollout has taken out and not put back."""
        record = self.folder / "record.json"
        urls = json.loads(record.read_text())["out"] if record.exists() else {}
        return sorted(name for name, each in self.hosts.items() if f"http://{each['ansible_host']}:30000" in urls)

    def workers(self) -> dict[str, str]:
        """Each worker's status by its address, as the gateway has it."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/workers")
        request.add_header("Authorization", f"Bearer {_key(self.hosts)}")
        with _DIRECT.open(request, timeout=20) as answer:
            return {str(one["url"]): str(one["status"]) for one in json.load(answer)["workers"]}


Balancer = Union[HAProxy, SMG]


@contextmanager
def smg(nodes: Collection[str], port: int = 30082) -> Iterator[SMG]:
    """Run SMG in front of nodes of the inventory, on this machine alone, once it has found all of them ready."""
    program = str(Path(sys.executable).with_name("smg"))
    hosts = {name: each for name, each in ask.inventory().items() if name in nodes}
    urls = [f"http://{each['ansible_host']}:{each['sglang_port']}" for _name, each in sorted(hosts.items())]
    words = [program, "launch", "--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(port + 1)]
    # It needs no key and lets the engine generate nothing, as /health does.
    words += ["--policy", "round_robin", "--health-check-endpoint", "/ready", "--health-check-timeout-secs", "20"]
    # Without the engines' key it does not find out what they are. It asks for the same itself.
    words += ["--request-timeout-secs", str(SECONDS), "--api-key", _key(hosts), "--worker-urls", *urls]
    with tempfile.TemporaryDirectory(prefix="llmfleet-smg-") as name:
        log = Path(name, "log")
        with open(log, "wb") as output, subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT) as process:
            try:
                one = SMG(Path(name), port, hosts)
                deadline = time.monotonic() + 120
                while not _all_ready(one, len(urls)):
                    if time.monotonic() > deadline or process.poll() is not None:
                        raise SystemExit(f"SMG does not find its workers:\n{log.read_text()[-4000:]}")
                    time.sleep(0.5)
                yield one
            finally:
                process.kill()


def _all_ready(of: SMG, count: int) -> bool:
    try:
        return list(of.workers().values()) == ["ready"] * count
    except (OSError, ValueError, KeyError):  # it does not listen yet
        return False


@dataclass(frozen=True)
class Answer:
    """One request: when it was sent and answered (monotonic seconds), and what came instead of a right answer."""

    sent: float
    ended: float
    wrong: str


@dataclass
class Clients:
    """Clients that send a question each `1 / rate` seconds, whether the ones before are answered or not."""

    url: str
    model: str
    key: str
    rate: float
    answers: list[Answer] = field(default_factory=list)
    _done: threading.Event = field(default_factory=threading.Event)
    _asking: list[threading.Thread] = field(default_factory=list)

    def _ask(self) -> None:
        sent, wrong = time.monotonic(), ""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": ask.QUESTION}],
            "max_tokens": 32,
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers)
        try:
            with _DIRECT.open(request, timeout=SECONDS) as answer:
                said = str(json.load(answer)["choices"][0]["message"]["content"])
            wrong = "" if RIGHT in said else f"answered {said!r}"
        except (OSError, ValueError, KeyError, IndexError) as error:
            wrong = str(error)
        self.answers.append(Answer(sent, time.monotonic(), wrong))

    def _run(self) -> None:
        while not self._done.wait(1 / self.rate):
            one = threading.Thread(target=self._ask, daemon=True)
            self._asking.append(one)
            one.start()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Ask until the block ends, and wait for the last answers."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()
            for one in self._asking:
                one.join(SECONDS + 10)

    @property
    def lost(self) -> list[Answer]:
        """The requests that got no right answer."""
        return [one for one in self.answers if one.wrong]

    @property
    def longest_gap(self) -> float:
        """The longest time without a right answer, in seconds, over all clients."""
        ends = sorted(one.ended for one in self.answers if not one.wrong)
        return max((later - earlier for earlier, later in zip(ends, ends[1:], strict=False)), default=0.0)

    @property
    def slowest(self) -> float:
        """The longest that one client waited for a right answer, in seconds."""
        return max((one.ended - one.sent for one in self.answers if not one.wrong), default=0.0)


def clients(of: Balancer, model: str, rate: float) -> Clients:
    """Clients of the fleet behind a load balancer."""
    return Clients(f"http://127.0.0.1:{of.port}", model, _key(of.hosts), rate)


def _key(hosts: dict[str, dict[str, Any]]) -> str:
    """The key that all engines ask for."""
    return str(next(iter(hosts.values())).get("sglang_api_key", ""))
