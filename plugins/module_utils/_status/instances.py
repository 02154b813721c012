# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every SGLang instance of a host, ours and others: what is recorded and what runs. Private to the collection."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import read_gpus, read_loads
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner, run
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import PROC, Process, read_processes
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import drift
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.source import GitError
from ansible_collections.llmfleet.sglang.plugins.module_utils._status import engine
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import STATE_VARIABLE, environment_value

ASK_SECONDS = 3.0
NVIDIA_SMI_SECONDS = 10.0
# What the phase of the last snapshot says of the last cut-over (host_snapshot).
VERDICTS = {
    "serving": "the new service answered",
    "restored": "went back to what served before",
    "cutover": "a cut-over has begun and not ended",
}
_NOT_ENDED = "a cut-over has begun and not ended: run the deployment or llmfleet.sglang.rollback"


@dataclass(frozen=True)
class Look:
    """How a host is looked at; tests put their own in place."""

    state: Path
    root: Path
    proc: str = PROC
    run: Runner = run
    ask: Callable[[str, float], engine.Answers] = engine.ask
    drift: Callable[[Path, Mapping[str, Any]], Sequence[drift.Drift]] = drift.compare
    now: Callable[[], float] = time.time
    uptime: Callable[[], float] = time.monotonic
    compare: bool = True


@dataclass
class Instance:
    """One instance. since: seconds since 1970, None when it does not run; problems: what an operator has to know."""

    name: str
    service: str
    ours: bool
    active: str = "inactive"
    enabled: bool = False
    main_pid: int = 0
    since: int | None = None
    model: str = ""
    release: str = ""
    commit: str = ""
    checkpoint: str = ""
    patched: list[dict[str, Any]] = field(default_factory=list)
    as_recorded: bool | None = None
    ready: bool | None = None
    running: int | None = None
    queued: int | None = None
    tokens_per_second: float | None = None
    drift: list[dict[str, str]] = field(default_factory=list)
    verdict: str = ""
    problems: list[str] = field(default_factory=list)


def look(how: Look) -> list[Instance]:
    """Return the host's instances by service: the recorded ones, and whatever else runs SGLang's server."""
    processes = read_processes(how.proc)
    argvs = {pid: _words(how.proc, pid) for pid in processes}
    found: dict[str, Instance] = {}
    for folder in sorted({path.parent for name in ("record", "snapshot") for path in how.state.glob(f"*/{name}.json")}):
        known = (folder / "record.json").exists()
        instance = _recorded(folder, how) if known else _begun(folder)
        if instance is None:
            continue
        found[instance.service] = instance
    servers: dict[str, int] = {}
    for process in _servers(processes, argvs):
        service = process.unit.removesuffix(".service") if process.unit.endswith(".service") else ""
        key = service or f"pid {process.pid}"
        servers.setdefault(key, process.pid)
        found.setdefault(key, Instance(name=key, service=service, ours=False))
    for key, instance in found.items():
        _running(instance, processes, how)
        if key in servers:
            _asked(instance, argvs[servers[key]], how)
    return sorted(found.values(), key=lambda one: (not one.ours, one.name))


def _recorded(folder: Path, how: Look) -> Instance:
    name = folder.name
    record = _json(folder / "record.json")
    if record is None:
        broken = Instance(name=name, service=f"sglang-{name}", ours=True)
        broken.problems.append(f"{folder / 'record.json'} cannot be read")
        return broken
    instance = Instance(
        name=name,
        service=str(record.get("service") or f"sglang-{name}"),
        ours=True,
        model=str(record.get("served_model_name", "")),
        release=str(record.get("release", "")),
        commit=str(record.get("commit", "")),
        checkpoint=str(record.get("checkpoint", "")),
    )
    phase = (_json(folder / "snapshot.json") or {}).get("phase", "")
    instance.verdict = VERDICTS.get(phase, phase)
    if phase == "cutover":
        instance.problems.append(_NOT_ENDED)
    _release(instance, how)
    return instance


def _begun(folder: Path) -> Instance | None:
    """An instance without a record: its first cut-over has not ended. None where it went back, and nothing is left."""
    place = folder / "snapshot.json"
    phase = str((_json(place) or {}).get("phase", ""))
    if phase == "restored":
        return None
    instance = Instance(name=folder.name, service=f"sglang-{folder.name}", ours=True)
    instance.verdict = VERDICTS.get(phase, phase)
    told = {"cutover": _NOT_ENDED, "": f"{place} cannot be read"}
    instance.problems.append(told.get(phase, f"{folder / 'record.json'} is not there"))
    return instance


def _release(instance: Instance, how: Look) -> None:
    folder = how.root / "releases" / instance.release
    record = read_record(folder) if instance.release else None
    if record is None:
        instance.problems.append(f"the release {instance.release or '(none recorded)'} is not there")
        return
    instance.patched = [{key: one.get(key) for key in ("id", "state")} for one in record.get("patched", [])]
    if not how.compare:
        return
    try:
        instance.drift = [one.as_dict() for one in how.drift(folder, record)]
    except (OSError, drift.CannotCompare, GitError) as error:
        instance.problems.append(f"the release cannot be compared with its record: {error}")


def _running(instance: Instance, processes: Mapping[int, Process], how: Look) -> None:
    pid = _main_pid(instance, how)
    if pid not in processes:
        return
    instance.main_pid = pid
    age = how.uptime() - processes[pid].start / os.sysconf("SC_CLK_TCK")
    instance.since = int(how.now() - age)
    record = _json(how.state / instance.name / "record.json") if instance.ours else None
    if record is not None:
        instance.as_recorded = record.get("state") == _state(how.proc, pid)
        if not instance.as_recorded:
            instance.problems.append("what runs is not what was recorded: deploy again, or restart the service")


def _asked(instance: Instance, argv: Sequence[str], how: Look) -> None:
    """Ask the server of the instance, which need not be the unit's main process: a script may have started it."""
    instance.model = engine.argument(argv, "served-model-name", engine.argument(argv, "model-path")) or instance.model
    host, port = engine.address(argv)
    answers = how.ask(f"http://{f'[{host}]' if ':' in host else host}:{port}", ASK_SECONDS)
    instance.ready, instance.running, instance.queued = answers.ready, answers.running, answers.queued
    instance.tokens_per_second = answers.tokens_per_second


def _main_pid(instance: Instance, how: Look) -> int:
    if not instance.service:
        return int(instance.name.rpartition(" ")[2])
    try:
        unit = systemd.show(how.run, instance.service)
    except systemd.SystemdError as error:
        instance.problems.append(str(error))
        return 0
    instance.active, instance.enabled = unit.active, unit.enabled
    if instance.ours and unit.failed:
        instance.problems.append(f"the unit has failed ({unit.result}): journalctl -u {unit.name}")
    return unit.main_pid


def _servers(processes: Mapping[int, Process], argvs: Mapping[int, Sequence[str]]) -> Iterable[Process]:
    """The server processes, without those that a server started (they have its command line until they rename)."""
    servers = {pid for pid, argv in argvs.items() if engine.is_engine(argv) and not processes[pid].gone}
    return [processes[pid] for pid in sorted(servers) if processes[pid].ppid not in servers]


def _words(proc: str, pid: int) -> list[str]:
    try:
        text = Path(proc, str(pid), "cmdline").read_bytes()
    except OSError:  # it ended in between
        return []
    return [word.decode("utf-8", "replace") for word in text.split(b"\0")[:-1]]


def _state(proc: str, pid: int) -> str | None:
    try:
        return environment_value(Path(proc, str(pid), "environ").read_bytes(), STATE_VARIABLE)
    except OSError:
        return None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def cards(runner: Runner = run) -> dict[str, Any]:
    """Return the cards' sum: count, memory in MiB used and in all, power in W drawn and allowed; or why not."""
    reading = read_gpus(runner, NVIDIA_SMI_SECONDS)
    if reading.status != "ok":
        return {"count": 0, "problem": reading.message}
    loads = read_loads(runner, NVIDIA_SMI_SECONDS)
    return {
        "count": len(reading.gpus),
        "memory_used": _sum(gpu.memory_used for gpu in reading.gpus),
        "memory_total": _sum(gpu.memory_total for gpu in reading.gpus),
        "power_draw": _sum(load.draw for load in loads),
        "power_limit": _sum(load.limit for load in loads),
        "problem": "",
    }


def _sum(values: Iterable[float | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known)) if known else None
