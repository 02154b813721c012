# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real HTTP server that answers as a test tells it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.judge import Question

SERVICE = "sglang-qwen.service"
MODEL = "qwen3.5-397b"


def question(text: str, expect: str = "", **extra: Any) -> Question:
    return Question(({"role": "user", "content": text},), expect, extra)


FRANCE = question("What is the capital of France?", "Paris")
JAPAN = question("What is the capital of Japan?", "Tokyo")


def reply(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text, **more}, "finish_reason": finish}]}


class Engine(ThreadingHTTPServer):
    """A server that answers as it is told; `script` is asked for each completion: (status, body)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.drip = False
        self.models: list[str] = [MODEL]
        self.gets: dict[str, int] = {}
        self.got: list[str] = []
        self.metrics = ""
        self.script: Callable[[int, dict[str, Any]], tuple[int, Any]] = lambda number, body: (200, reply("Paris."))
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is part of the tests."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        if self.headers["Accept-Encoding"]:  # Python's client: not a balancer of another test that had this port before
            self.server.got.append(self.path)
        if self.path == "/v1/models":
            self._send(200, {"data": [{"id": name} for name in self.server.models]})
        elif self.path == "/metrics" and self.server.metrics:
            self._send(200, self.server.metrics.encode())
        else:
            self._send(self.server.gets.get(self.path, 404), {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.headers.append(dict(self.headers))
        self._send(*self.server.script(len(self.server.asked), body))

    def _send(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        pause = 0.2 if self.server.drip and self.command == "POST" else 0.0
        for at in range(0, len(data), 1 if pause else len(data)):
            self.wfile.write(data[at:] if not pause else data[at : at + 1])
            time.sleep(pause)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        pass
