# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a service that runs has stopped answering, asked of a real port."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import hung
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import parse_show

UNIT = parse_show("LoadState=loaded\nActiveState=active\nMainPID=1\n")


class Engine(http.server.BaseHTTPRequestHandler):
    """Answers /health with the next of the server's `statuses`, the last one for ever."""

    def do_GET(self) -> None:
        left: list[int] = self.server.statuses  # type: ignore[attr-defined]
        self.server.asked += 1  # type: ignore[attr-defined]
        assert self.path == "/health"
        self.send_response(left.pop(0) if len(left) > 1 else left[0])
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def engine() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        server.statuses, server.asked = [200], 0  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def look(port: int, active: str = "active") -> str:
    """What is said of a service, by a clock that only pauses move."""
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    unit = replace(UNIT, active=active)
    return hung.why_hung(unit, f"http://127.0.0.1:{port}/health", lambda: now[0], sleep)


@pytest.mark.parametrize("statuses", [[200], [503, 503, 200], [401], [403], [404], [405]])
def test_what_answers_is_not_hung(engine: Any, statuses: list[int]) -> None:
    engine.statuses = list(statuses)
    assert look(engine.server_address[1]) == "" and engine.asked == len(statuses)


def test_what_calls_itself_unhealthy_for_a_minute_is(engine: Any) -> None:
    engine.statuses = [503]
    said = look(engine.server_address[1])
    assert said.startswith("it runs what is wanted, and has not answered for 60 s: http://127.0.0.1:")
    assert said.endswith("/health answers (HTTP 503)") and engine.asked > 10


def test_what_is_still_loading_is_not_asked(engine: Any) -> None:
    engine.statuses = [503]
    assert look(engine.server_address[1], "activating") == "" and engine.asked == 0


def test_a_port_on_which_nobody_listens(engine: Any) -> None:
    engine.server_close()
    assert "Connection refused" in look(engine.server_address[1])
