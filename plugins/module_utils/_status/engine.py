# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running engine says of itself: its command line, readiness and metrics. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.asking import NotYet, Server, Wrong

LAUNCHERS = ("sglang.launch_server", "sglang.srt.entrypoints.http_server")
_SAMPLE = re.compile(r"^sglang:(\w+)(?:\{[^}]*\})? ([-+0-9.eE]+|NaN)$", re.MULTILINE)
# The names of 0.5.23's gauges, and what they are called here.
_GAUGES = {"num_running_reqs": "running", "num_queue_reqs": "queued", "gen_throughput": "tokens_per_second"}


def is_engine(argv: Sequence[str]) -> bool:
    """Tell whether a command line starts SGLang's server (its workers carry other titles)."""
    return any(word in LAUNCHERS for word in argv) or (len(argv) > 1 and argv[1:2] == ["serve"] and "sglang" in argv[0])


def argument(argv: Sequence[str], flag: str, default: str = "") -> str:
    """Return the value of `--flag VALUE` or `--flag=VALUE` in a command line, the last one given."""
    value = default
    for word, after in zip(argv, [*argv[1:], ""]):
        if word == f"--{flag}":
            value = after
        elif word.startswith(f"--{flag}="):
            value = word.partition("=")[2]
    return value


def address(argv: Sequence[str]) -> tuple[str, int]:
    """Return where the engine listens, as one asks it from its own host. SGLang's defaults: 127.0.0.1 and 30000."""
    host = argument(argv, "host", "127.0.0.1")
    port = argument(argv, "port", "30000")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port) if port.isdigit() else 0


@dataclass(frozen=True)
class Answers:
    """What an engine answered. ready: None when it does not answer at all; the rest None where it has no metrics."""

    ready: bool | None = None
    running: int | None = None
    queued: int | None = None
    tokens_per_second: float | None = None


def gauges(text: str) -> dict[str, float]:
    """Sum the gauges that matter over all ranks of a /metrics text."""
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if name in _GAUGES and value != "NaN":
            sums[_GAUGES[name]] = sums.get(_GAUGES[name], 0.0) + float(value)
    return sums


def ask(url: str, limit: float, server: Callable[[str], Any] = Server) -> Answers:
    """Ask the engine at `url`, each question at most `limit` seconds. No question makes it generate anything.

    /ready is there from 0.5.20 on and needs no key; an older engine is ready when it lists its model, or refuses to
    do so without a key.
    """
    engine = server(url)
    try:
        status = engine.status("/ready", limit)
        if status == 404:
            status = engine.status("/v1/models", limit)
    except NotYet:
        return Answers()
    try:
        told = gauges(engine.text("/metrics", limit))
    except (NotYet, Wrong):
        told = {}
    counts = {name: round(told[name]) for name in ("running", "queued") if name in told}
    speed = round(told["tokens_per_second"], 1) if "tokens_per_second" in told else None
    return Answers(status in (200, 401, 403), counts.get("running"), counts.get("queued"), speed)
