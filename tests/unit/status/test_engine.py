# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running engine says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.asking import NotYet
from ansible_collections.llmfleet.sglang.plugins.module_utils._status import engine

# From SGLang 0.5.23 with --enable-metrics, two ranks.
METRICS = """
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 3.0
sglang:num_running_reqs{model_name="m",tp_rank="1"} 1.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2.0
sglang:gen_throughput{model_name="m",tp_rank="0"} 41.26
sglang:gen_throughput_total{model_name="m"} 1e9
"""


class Server:
    """An engine: statuses by path (no entry: it does not answer) and a text of metrics."""

    def __init__(self, statuses: dict[str, int], metrics: str = "") -> None:
        self.statuses, self.metrics = statuses, metrics

    def status(self, path: str, limit: float) -> int:
        if path not in self.statuses:
            raise NotYet("refused")
        return self.statuses[path]

    def text(self, path: str, limit: float) -> str:
        if not self.metrics:
            raise NotYet("no metrics")
        return self.metrics


@pytest.mark.parametrize(
    ("statuses", "ready"),
    [
        ({"/ready": 200}, True),
        ({"/ready": 503}, False),
        ({"/ready": 404, "/v1/models": 401}, True),  # before 0.5.20
        ({"/ready": 404, "/v1/models": 500}, False),
        ({}, None),
    ],
)
def test_readiness_is_the_engines_own(statuses: dict[str, int], ready: bool | None) -> None:
    assert engine.ask("http://x", 1, lambda url: Server(statuses)).ready is ready


def test_requests_are_summed_over_the_ranks() -> None:
    told = engine.ask("http://x", 1, lambda url: Server({"/ready": 200}, METRICS))
    assert (told.running, told.queued, told.tokens_per_second) == (4, 2, 41.3)


def test_without_metrics_nothing_is_claimed() -> None:
    told = engine.ask("http://x", 1, lambda url: Server({"/ready": 200}))
    assert (told.running, told.queued, told.tokens_per_second) == (None, None, None)


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("python -m sglang.launch_server --host 10.0.0.1 --port 31000", ("10.0.0.1", 31000)),
        ("python -m sglang.launch_server --host=0.0.0.0 --port=31000", ("127.0.0.1", 31000)),
        ("python -m sglang.launch_server --host ::", ("::1", 30000)),
        ("python -m sglang.launch_server", ("127.0.0.1", 30000)),
    ],
)
def test_an_engine_is_asked_where_it_listens(line: str, address: tuple[str, int]) -> None:
    assert engine.address(line.split()) == address


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("python -m sglang.launch_server --port 1", True),
        ("/opt/venv/bin/sglang serve --model-path m", True),
        ("sglang::scheduler", False),
        ("bash -c sglang.launch_server_and_more", False),
        ("", False),
    ],
)
def test_an_engine_is_told_by_its_command_line(line: str, is_one: bool) -> None:
    words: list[Any] = line.split()
    assert engine.is_engine(words) is is_one
