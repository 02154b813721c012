# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real load balancers as ordinary processes, and two small servers behind them that answer with their names."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path


def program(name: str, *places: str) -> str:
    """Where a program lies, looked for in PATH and then in `places`; `make unit` installs it."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *places]))
    assert found, f"{name} is not installed: `make unit` does that"
    return found


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_CONFIGURATION = """
global
    stats socket {folder}/admin.sock mode 600 level admin
    stats socket ipv4@127.0.0.1:{admin} level admin
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    default-server check inter 100ms rise 2 fall 2
frontend all
    bind 127.0.0.1:{port}
    default_backend sglang
backend sglang
    option httpchk GET /health
{servers}
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def until(condition: Callable[[], bool], timeout: float = 60) -> None:
    """Wait until it holds; fails the test after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.05)


@dataclass
class Worker:
    """A server that speaks enough of SGLang's API to stand behind a gateway. A question with `wait` waits for `go`."""

    name: str
    port: int = field(default_factory=free_port)
    go: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serve(self) -> Iterator[None]:
        """Serve until the block ends."""
        worker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers with the worker's name."""

            protocol_version = "HTTP/1.1"

            def _say(self, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                """The model's list and facts."""
                if self.path.startswith("/v1/models"):
                    return self._say({"object": "list", "data": [{"id": "m", "object": "model"}]})
                return self._say({"model_path": "m", "served_model_name": "m", "is_generation": True})

            def do_POST(self) -> None:
                """A completion."""
                question = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if b"wait" in question:
                    worker.asked.set()
                    worker.go.wait(60)
                message = {"role": "assistant", "content": worker.name}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                self._say({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})

            def log_message(self, *_words: object) -> None:
                """Say nothing."""

        class Server(http.server.ThreadingHTTPServer):
            """Health checks reset their connections."""

            daemon_threads = True

            def handle_error(self, *_words: object) -> None:
                """Say nothing."""

        server = Server(("127.0.0.1", self.port), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.go.set()
            server.shutdown()
            server.server_close()


def ask(port: int, question: str = "hello") -> str:
    """Who answers a question through the load balancer; "" when nobody does."""
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    try:
        with _DIRECT.open(request, timeout=60) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])
    except urllib.error.URLError:
        return ""


def who_answers(port: int, times: int = 8) -> set[str]:
    """Who answers several questions."""
    return {ask(port) for _one in range(times)}


@dataclass
class Balancer:
    """A load balancer with two workers behind it."""

    port: int
    admin: int
    folder: Path
    workers: dict[str, Worker]


@contextmanager
def _process(argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "wb") as output, subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def haproxy(folder: Path) -> Iterator[Balancer]:
    """HAProxy in front of a and b."""
    with ExitStack() as stack:
        workers = {name: Worker(name) for name in ("a", "b")}
        for one in workers.values():
            stack.enter_context(one.serve())
        port, admin = free_port(), free_port()
        servers = "\n".join(f"    server {one.name} 127.0.0.1:{one.port}" for one in workers.values())
        text = _CONFIGURATION.format(folder=folder, admin=admin, port=port, servers=servers)
        (folder / "haproxy.cfg").write_text(text)
        stack.enter_context(
            _process([program("haproxy", "/usr/sbin"), "-db", "-f", str(folder / "haproxy.cfg")], folder / "log")
        )
        until(lambda: who_answers(port) == {"a", "b"})
        yield Balancer(port, admin, folder, workers)


@contextmanager
def smg(folder: Path) -> Iterator[Balancer]:
    """SMG in front of a and b."""
    with ExitStack() as stack:
        workers = {name: Worker(name) for name in ("a", "b")}
        for one in workers.values():
            stack.enter_context(one.serve())
        port = free_port()
        urls = [one.url for one in workers.values()]
        words = [
            program("smg", str(Path(sys.executable).parent)),
            "launch",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--worker-urls",
            *urls,
        ]
        words += ["--policy", "round_robin", "--prometheus-port", str(free_port())]
        stack.enter_context(_process(words, folder / "log"))
        until(lambda: who_answers(port) == {"a", "b"}, timeout=90)
        yield Balancer(port, 0, folder, workers)
