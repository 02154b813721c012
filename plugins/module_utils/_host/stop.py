# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stop a service and prove that it is gone. PRIVATE to the collection."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Callable

from . import systemd
from .command import Runner, run
from .gpu import Reading, read_gpus, unexplained
from .proc import PROC, Process, descendants, environment, read_processes
from .sockets import Listener, conflicts, read_listeners, with_owners
from .systemd import SystemdError, Unit

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
GPU_QUERY_TIMEOUT = 30.0


@dataclass(frozen=True)
class Request:
    """What to stop, and what has to be free afterwards. Times in seconds, memory in MiB."""

    name: str
    ports: tuple[int, ...] = ()
    address: str = ""
    tolerate: tuple[str, ...] = ()
    timeout: float = 300
    disable: bool = False
    gpus: bool = True
    gpu_timeout: float = 120
    gpu_slack: int = 1024


@dataclass(frozen=True)
class Machine:
    """The host as this code touches it; tests put their own in its place."""

    run: Runner = run
    proc: str = PROC
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Look:
    """What one look at the host showed of the service."""

    unit: Unit
    processes: tuple[Process, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpus: Reading | None = None

    def as_dict(self, pids: Iterable[int]) -> dict[str, Any]:
        """The look as a module returns it, with the GPU memory of these pids."""
        gpus = self.gpus
        return {
            "unit": asdict(self.unit),
            "processes": [asdict(process) for process in self.processes],
            "listeners": [asdict(listener) for listener in self.listeners],
            "gpu_status": gpus.status if gpus else "not asked",
            "gpu_memory_used": {str(gpu.index): gpu.memory_used for gpu in gpus.gpus} if gpus else {},
            "gpu_processes": [asdict(held) for held in gpus.held_by(set(pids))] if gpus else [],
        }


@dataclass
class Report:
    """What was found and done; `held` is empty when the service is proven gone."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False
    disabled: bool = False
    seconds: float = 0.0
    held: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.stopped or self.disabled


class CannotStop(Exception):
    """Nothing was touched, for the reason given: the service still runs as it did."""


def stop(request: Request, machine: Machine, check_mode: bool = False) -> Report:
    """Stop the service of `request` and wait until nothing of it is left, or say what still is.

    Raises CannotStop, or SystemdError when systemd does not take the order, before anything was done. What goes
    wrong afterwards is told by the report, so that the caller knows that the service was stopped.
    """
    began = machine.clock()
    if check_mode:
        request = replace(request, gpu_timeout=0)
    before, recorded = _look_first(request, machine)
    report = Report(before=before.as_dict({pid for pid, _start in recorded}))
    running = not before.unit.stopped or bool(before.processes)
    report.stopped = running
    report.disabled = request.disable and before.unit.enabled
    if not running:
        _prove(request, machine, report, recorded, wait=False, gpus=_gpus_must_be_free(request, machine))
    elif not check_mode:
        systemd.order(machine.run, ["stop", "--no-block"], request.name)
    refused = "" if check_mode or not report.disabled else _disable(request, machine)
    if running and not check_mode:
        _prove(request, machine, report, recorded, wait=True, gpus=request.gpus)
    if refused:
        report.disabled = False
        report.held.append(refused)
    report.warnings += _triggers(before.unit, machine)
    if before.gpus and before.gpus.status == "missing":
        report.warnings.append("there is no nvidia-smi on this host: nothing is proven about GPU memory")
    report.seconds = round(machine.clock() - began, 2)
    return report


def _disable(request: Request, machine: Machine) -> str:
    """Disable the service; returns what systemd said against it, since the stop is under way by now."""
    try:
        systemd.order(machine.run, ["disable"], request.name)
    except SystemdError as error:
        return f"it stays enabled: {error}"
    return ""


def _look_first(request: Request, machine: Machine) -> tuple[Look, set[tuple[int, int]]]:
    unit = systemd.show(machine.run, request.name)
    processes = read_processes(machine.proc)
    ours = _processes_of(unit, processes, set(), machine.proc)
    gpus = read_gpus(machine.run, GPU_QUERY_TIMEOUT) if request.gpus else None
    if gpus and gpus.status in ("hung", "failed"):
        raise CannotStop(
            f"{unit.name} was left alone: that its GPU memory becomes free could not be proven, since "
            f"{gpus.message}. Mend the driver first, or stop without that proof (gpu_proof: skip)."
        )
    pids = {process.pid for process in ours}
    listeners = [one for one in with_owners(read_listeners(None, machine.proc), processes, machine.proc)]
    held = tuple(one for one in listeners if one.pid in pids or one.port in request.ports)
    return Look(unit, ours, held, gpus), {process.key for process in ours}


def _processes_of(
    unit: Unit, processes: dict[int, Process], recorded: set[tuple[int, int]], proc: str
) -> tuple[Process, ...]:
    """Everything that belongs to the unit and still lives.

    Its control group, what descends from its main process, and what carries its invocation's id in the
    environment: a worker that was moved to another control group and lost its parent is still found by that.
    """
    pids = descendants([unit.main_pid] if unit.main_pid else [], processes)
    for process in processes.values():
        if process.key in recorded or process.unit == unit.name or _invoked_by(unit, process, proc):
            pids.add(process.pid)
    return tuple(processes[pid] for pid in sorted(pids) if not processes[pid].gone)


def _invoked_by(unit: Unit, process: Process, proc: str) -> bool:
    return bool(unit.invocation) and environment(process.pid, proc).get("INVOCATION_ID") == unit.invocation


def _gpus_must_be_free(request: Request, machine: Machine) -> bool:
    # With the successor already running, what is used on the cards is its own affair.
    return request.gpus and all(systemd.show(machine.run, name).stopped for name in request.tolerate)


def _prove(
    request: Request,
    machine: Machine,
    report: Report,
    recorded: set[tuple[int, int]],
    wait: bool,
    gpus: bool,
) -> None:
    """Look until nothing is held any more, or the time is up; the last look goes into the report."""
    deadline = machine.clock() + (request.timeout if wait else 0)
    settled: float | None = None
    pause = FIRST_PAUSE
    while True:
        try:
            look = _look_again(request, machine, recorded)
            report.held = _held(look)
            if not report.held and gpus:
                settled = settled if settled is not None else machine.clock()
                deadline = settled + request.gpu_timeout
                look = replace(look, gpus=read_gpus(machine.run, GPU_QUERY_TIMEOUT))
                report.held = _held_on_gpus(look, request, {pid for pid, _start in recorded})
            report.after = look.as_dict({pid for pid, _start in recorded})
        except SystemdError as error:
            # Its bus may be away for a moment; the stop has been ordered, and goes on.
            report.held = [str(error)]
        if not report.held or machine.clock() >= deadline:
            break
        machine.sleep(min(pause, max(0.0, deadline - machine.clock())))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    unit = report.after.get("unit", {})
    if unit.get("active") == "failed":
        report.warnings.append(
            f"{unit['name']} ended as failed (result {unit['result']}, status {unit['exit_status']})"
        )


def _look_again(request: Request, machine: Machine, recorded: set[tuple[int, int]]) -> Look:
    unit = systemd.show(machine.run, request.name)
    processes = read_processes(machine.proc)
    ours = _processes_of(unit, processes, recorded, machine.proc)
    # What the service started since the last look belongs to the proof too.
    recorded |= {process.key for process in ours}
    sockets = [one for one in read_listeners(request.ports, machine.proc) if conflicts(one, request.address)]
    owned = with_owners(sockets, processes, machine.proc)
    return Look(unit, ours, tuple(one for one in owned if one.unit not in _tolerated(request)))


def _tolerated(request: Request) -> set[str]:
    return {systemd.unit_name(name) for name in request.tolerate}


def _held(look: Look) -> list[str]:
    held = []
    if not look.unit.stopped:
        limit = f"; systemd kills it after {look.unit.stop_timeout}" if look.unit.stop_timeout else ""
        held.append(f"the unit is still {look.unit.active} ({look.unit.sub}){limit}")
    held += [f"{process.describe()} still runs" for process in look.processes]
    held += [f"{listener.describe()} still listens" for listener in look.listeners]
    return held


def _held_on_gpus(look: Look, request: Request, pids: set[int]) -> list[str]:
    reading = look.gpus
    if reading is None or reading.status == "missing":
        return []
    if reading.status != "ok":
        return [f"the GPUs cannot be asked any more: {reading.message}"]
    rows = [(one.uuid, f"{one.amount} by pid {one.pid} ({one.name})") for one in reading.held_by(pids)]
    for uuid, left in unexplained(reading).items():
        if left > request.gpu_slack:
            rows.append((uuid, f"{left} MiB in use that no listed process accounts for"))
    return [f"{cards}: {words}" for cards, words in reading.by_cards(rows)]


def _triggers(unit: Unit, machine: Machine) -> list[str]:
    return [
        f"{name} is active and can start {unit.name} again"
        for name in unit.triggered_by
        if machine.run(["systemctl", "is-active", "--quiet", "--", name], 20).ok
    ]
