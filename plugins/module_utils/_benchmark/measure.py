# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what serves: every shape several times, with power and clocks meanwhile. Private to the collection."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import bench, ended, paths, record, running
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import Abandoned, BenchFailed, Target
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import (
    Benchmark,
    Measured,
    Run,
    Sample,
    Shape,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.running import Running
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.sampling import Sampler, Window, loads, within
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import Cause
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Gpu
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import View, look
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import Matrix
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.asking import NotYet, Server, Wrong
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner, run
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.fabric_checks import check_ways
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import Finding
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.gpu_checks import check_cards
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import PROC
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import Launch
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.starved import check_seen, check_starved

NVIDIA_SMI_SECONDS = 20.0
INFO_SECONDS = 20.0
LOG_LINES = 20000


@dataclass(frozen=True)
class Request:
    """What to measure, of what.

    runs: of each shape, of which the first `cold` count for nothing; timeout: seconds for everything; visible: the
    cards of the instance as nvidia-smi counts them, all if empty; causes: what the end of a service is explained by;
    quality: share of right answers, None: not asked; tried: variables on trial, whose values the process should have.
    """

    service: str
    instance: str
    profile: str
    root: Path
    state: Path
    host: str
    port: int
    shapes: tuple[Shape, ...]
    runs: int
    cold: int
    timeout: float
    user: str = ""
    api_key: str = ""
    reason: str = "asked"
    visible: tuple[int, ...] = ()
    paths: tuple[paths.Path, ...] = ()
    causes: tuple[Cause, ...] = ()
    quality: float | None = None
    tried: Mapping[str, Any] = field(default_factory=dict)


def ask_info(url: str, api_key: str) -> dict[str, Any] | None:
    """Return /server_info (/get_server_info before 0.5.9); None where it cannot be had. It may hold secrets."""
    server = Server(url, api_key)
    for path in ("/server_info", "/get_server_info"):
        try:
            return server.call(path, None, INFO_SECONDS)
        except (NotYet, Wrong):
            continue
    return None


@dataclass(frozen=True)
class Machine:
    """The host, as the logic reaches it; tests put their own in place."""

    run: Runner = run
    proc: str = PROC
    look: Callable[[Runner, float], View] = look
    measure: Callable[[Target, Shape, int, float], Run] = bench.measure
    info: Callable[[str, str], Mapping[str, Any] | None] = ask_info
    now: Callable[[], float] = time.monotonic
    patience: float = ended.PATIENCE
    over: Callable[[], str] = lambda: ""
    progress: Progress = field(default_factory=lambda: Progress(None))


def benchmark(request: Request, machine: Machine) -> Benchmark:
    """Measure, and return all of it; nothing is written.

    Raises BenchFailed, running.NotServing and systemd.SystemdError.
    """
    if not request.shapes:
        raise BenchFailed(f"there is no shape to measure: the profile {request.profile} has no 'benchmark'")
    began, at = machine.now(), datetime.now(timezone.utc)
    measured = running.read(machine.run, request.service, request.root, machine.proc)
    view = machine.look(machine.run, NVIDIA_SMI_SECONDS)
    warm: list[Window] = []
    try:
        uuids = [gpu.uuid for gpu in cards_of(view, request.visible)]
        with Sampler(machine.run, uuids, began, clock=machine.now) as sampler:
            shapes = tuple(
                _shape(one, number, request, machine, began, measured, warm)
                for number, one in enumerate(request.shapes)
            )
    except Abandoned:
        raise
    except BenchFailed as error:
        raise BenchFailed(_explained(error, request, machine, measured)) from error
    died = _ended(request, machine, measured, patience=0.0)
    if died:  # the figures are of two processes
        raise BenchFailed(died)
    return Benchmark(
        id=f"{at:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        at=at.isoformat(timespec="seconds"),
        seconds=round(machine.now() - began, 1),
        reason=request.reason,
        host=socket.gethostname(),
        shapes=shapes,
        quality=request.quality,
        samples=record.thinned(sampler.samples),
        findings=tuple(one.as_dict() for one in _starved(within(sampler.samples, warm), view, measured, request)),
        topology=topology_of(view, request.visible),
        driver=", ".join(sorted({gpu.driver for gpu in view.reading.gpus if gpu.driver})),
        **_provenance(request, measured),
        **_paths(request, measured, machine),
    )


def _provenance(request: Request, measured: Running) -> dict[str, Any]:
    release, arguments = measured.release, measured.arguments
    return {
        "instance": request.instance,
        "service": request.service,
        "profile": request.profile,
        "model": str(arguments.get("served-model-name", "")),
        "checkpoint": measured.checkpoint,
        "state": measured.state,
        "main_pid": measured.unit.main_pid,
        "release": str(release.get("id", "")),
        "commit": str(release.get("inputs", {}).get("commit", "")),
        "version": str(release.get("inputs", {}).get("version", "")),
        "patch_sets": measured.patch_sets,
        "patches": measured.patches,
        "arguments": arguments,
        "arguments_digest": record.digest(arguments, measured.environment),
        "environment": measured.environment,
        "tried": measured.compared(request.tried),
        "packages": measured.packages,
        "python": str(release.get("python", "")),
        "cuda": str(release.get("cuda") or ""),
        "tensor_parallel": measured.tensor_parallel,
    }


def _shape(
    shape: Shape,
    number: int,
    request: Request,
    machine: Machine,
    began: float,
    measured: Running,
    warm: list[Window],
) -> Measured:
    """Measure one shape, as often as asked. warm: takes the times in which the runs that count had their requests."""
    target = Target(
        python=measured.argv[0],
        host=request.host,
        port=request.port,
        model=str(measured.arguments.get("model-path", "")),
        environ=measured.environ,
        user=request.user,
        api_key=request.api_key,
        serves=Path(machine.proc, str(measured.unit.main_pid)).exists,
        over=machine.over,
    )
    machine.progress.phase(f"benchmark of {shape.name}", total=request.runs, unit="runs")
    runs: list[Run] = []
    for one in range(request.runs):
        over = machine.over()
        if over:
            raise Abandoned(f"nothing more was measured, for {over}")
        left = request.timeout - (machine.now() - began)
        if left <= 0:
            raise BenchFailed(
                f"{len(runs)} of {request.runs} runs of {shape.name} were made within the {request.timeout:.0f} s that "
                "were given: allow more (sglang_benchmark_timeout), or ask for fewer runs or smaller shapes"
            )
        # The same seeds in each benchmark, another one in each run.
        runs.append(machine.measure(target, shape, 1 + number * request.runs + one, left))
        if one >= request.cold:
            # bench_serving starts, reads the tokenizer and warms up first: the requests are its end.
            ended_at = machine.now() - began
            warm.append((ended_at - runs[-1].seconds, ended_at))
        machine.progress.at(one + 1)
        machine.progress.detail(f"last run {runs[-1].output_tokens_per_second:.4g} tokens a second")
    return Measured(shape, request.cold, tuple(runs))


def _explained(error: BenchFailed, request: Request, machine: Machine, measured: Running) -> str:
    """Return what a failed benchmark says: what the service ended of, where it did; else what bench_serving said."""
    try:
        died = _ended(request, machine, measured, machine.patience)
    except systemd.SystemdError:
        died = ""
    return died or str(error)


def _ended(request: Request, machine: Machine, measured: Running, patience: float) -> str:
    """Say what the process ended of that was measured; "" where it still serves."""
    return bench.redacted(ended.why(machine.run, measured.unit, request.causes, patience), request.api_key)


def cards_of(view: View, visible: Sequence[int] = ()) -> list[Gpu]:
    """Return the cards of an instance: all of the host, or those with these indexes."""
    return [gpu for gpu in view.reading.gpus if not visible or gpu.index in visible]


def topology_of(view: View, visible: Sequence[int] = ()) -> str:
    """Return in words what cards an instance has and how they are connected; equal hosts give equal words."""
    cards = cards_of(view, visible)
    if not cards:
        return record.NO_GPU
    words = [f"{len(cards)} x {' and '.join(sorted({gpu.name for gpu in cards}))}"]
    if len(cards) > 1:
        own = {f"GPU{gpu.index}" for gpu in cards}
        rows = {name: row for name, row in view.topology.links.items() if name in own}
        among = Matrix({name: {to: link for to, link in row.items() if to in own} for name, row in rows.items()})
        words += [among.farthest() or "connection unknown", f"NVLink {among.nvlink or 'unknown'}"]
    return ", ".join(words)


def _starved(samples: Sequence[Sample], view: View, measured: Running, request: Request) -> list[Finding]:
    """What the cards did while requests ran. Its likely causes are ordered by what this host shows, as preflight."""
    launch = Launch(measured.arguments, dict(measured.environment))
    seen = replace(view, reading=view.reading.only(request.visible))
    host = {one.id for one in (*check_cards(seen), *check_ways(seen, launch))}
    most = max(one.concurrency for one in request.shapes)
    unseen = check_seen(len(samples)) if cards_of(view, request.visible) else []
    return unseen or check_starved(loads(samples), launch, host, concurrency=most)


def _paths(request: Request, measured: Running, machine: Machine) -> dict[str, Any]:
    """What the engine says of the paths that it was to take, and of its arguments."""
    url = f"http://{f'[{request.host}]' if ':' in request.host else request.host}:{request.port}"
    info = machine.info(url, request.api_key)
    log = systemd.journal(machine.run, measured.unit, LOG_LINES, measured.unit.started)
    seen = paths.Seen(
        patch_sets=measured.patch_sets,
        arguments=measured.arguments,
        environment=measured.environ,
        tensor_parallel=measured.tensor_parallel,
        log=[bench.redacted(line, request.api_key) for line in log],
        info=info,
    )
    return {
        "paths": tuple(one.as_dict() for one in paths.taken(request.paths, seen)),
        "resolved": resolved(measured.arguments, info or {}),
    }


def resolved(arguments: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what /server_info says of these arguments: plain values alone, and of no other key."""
    found = {flag: info.get(flag.replace("-", "_")) for flag in arguments}
    return {flag: value for flag, value in found.items() if isinstance(value, (str, int, float, bool))}
