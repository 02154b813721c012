# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let the requests in flight end before a service is stopped. PRIVATE to the collection.

What is in flight is read from the connections to the service's ports and, where it has them on, from SGLang's own
metrics. No connection: nothing is in flight. Open connections may be idle ones of a router, so the metrics decide;
they are written once in 40 decoding steps only (0.5.23), so "none" has to last before it is believed.

A server that is never without requests is told to finish before systemd stops its unit, if systemd would send SIGTERM
to the server's workers too (KillMode=control-group, the default): those would drop what they work on.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection
from typing import Any, Callable

from .asking import NotYet, Server, Wrong
from .proc import PROC, Process, read_process
from .sockets import count_established

PAUSE = 0.5
BELIEVED_AFTER = 5.0
METRICS_TIMEOUT = 2.0
_GAUGE = re.compile(r"^sglang:num_(?:running|queue)_reqs(?:\{[^}]*\})? ([0-9.eE+-]+)", re.MULTILINE)


def requests_in_metrics(text: str) -> int | None:
    """Running and queued requests in a text of SGLang's /metrics, all ranks together; None if it does not tell."""
    values = [float(value) for value in _GAUGE.findall(text)]
    return round(sum(values)) if values else None


class Drain:
    """Watches one service's ports until nothing is in flight on them, or the time is up (seconds)."""

    def __init__(
        self, ports: Collection[int], host: str, clock: Callable[[], float], sleep: Callable[[float], None], proc: str
    ) -> None:
        self._ports = tuple(ports)
        self._host = f"[{host}]" if ":" in host else host
        self._clock = clock
        self._sleep = sleep
        self._proc = proc or PROC
        self._silent_since: float | None = None

    def wait(self, timeout: float) -> dict[str, Any]:
        """Wait, and say what was seen: connections and requests before and after (None: not told), seconds, idle."""
        began = self._clock()
        before = self._look()
        now, idle = before, self._idle(before)
        while not idle and self._clock() - began < timeout:
            self._sleep(min(PAUSE, timeout - (self._clock() - began)))
            now = self._look()
            idle = self._idle(now)
        return {
            "seconds": round(self._clock() - began, 2),
            "idle": idle,
            "connections_before": before[0],
            "requests_before": before[1],
            "connections_after": now[0],
            "requests_after": now[1],
        }

    def tell(
        self, servers: Collection[Process], send: Callable[[Process, int], bool], timeout: float
    ) -> dict[str, Any]:
        """Tell the processes that listen, and none below them, to finish; wait until they have ended.

        SGLang takes SIGTERM to its server process alone as the order to call itself not ready (/ready and /health say
        503, which routers heed; who asks all the same is still answered) and to end once it finds no request at work,
        for which it looks every 5 s (measured on 0.5.23). Returned: who was told, whether they ended, seconds.
        """
        listening = {process.pid for process in servers}
        told = [one for one in servers if one.ppid not in listening and send(one, signal.SIGTERM)]
        began = self._clock()
        left = told
        while True:
            left = [one for one in left if not _gone(one, self._proc)]
            waited = self._clock() - began
            if not left or waited >= timeout:
                break
            self._sleep(min(PAUSE, timeout - waited))
        return {"pids": [one.pid for one in told], "ended": not left, "seconds": round(self._clock() - began, 2)}

    def _look(self) -> tuple[int, int | None]:
        connections = count_established(self._ports, self._proc)
        return connections, self._requests() if connections else 0

    def _requests(self) -> int | None:
        told = [requests for requests in map(self._of_port, self._ports) if requests is not None]
        return sum(told) if told else None

    def _of_port(self, port: int) -> int | None:
        try:
            return requests_in_metrics(Server(f"http://{self._host}:{port}").text("/metrics", METRICS_TIMEOUT))
        except (NotYet, Wrong):
            return None

    def _idle(self, look: tuple[int, int | None]) -> bool:
        connections, requests = look
        if connections == 0:
            return True
        if requests != 0:
            self._silent_since = None
            return False
        if self._silent_since is None:
            self._silent_since = self._clock()
        return self._clock() - self._silent_since >= BELIEVED_AFTER


def _gone(process: Process, proc: str) -> bool:
    now = read_process(process.pid, proc)
    return now is None or now.key != process.key or now.gone
