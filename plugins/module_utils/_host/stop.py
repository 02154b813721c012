# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stop a service and prove that it is gone. PRIVATE to the collection."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Callable

from .._gpu.cards import Reading, read_gpus, unexplained
from .._progress.report import Progress
from . import leftovers, segments, systemd
from .belongs import processes_of
from .command import Runner, run
from .drain import Drain
from .proc import PROC, Process, read_processes
from .segments import SHM, Segment
from .sockets import Listener, conflicts, read_listeners, with_owners
from .systemd import SystemdError, Unit

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 0.5
GPU_QUERY_TIMEOUT = 30.0
# Seconds until a killed process has given everything back.
KILL_GRACE = 30.0


@dataclass(frozen=True)
class Request:
    """What to stop, and what has to be free afterwards. Times in seconds, memory in MiB.

    visible: the cards of this service, by nvidia-smi's index; empty: all.
    """

    name: str
    ports: tuple[int, ...] = ()
    address: str = ""
    tolerate: tuple[str, ...] = ()
    timeout: float = 300
    drain_timeout: float = 0
    kill: bool = True
    kill_leftovers: bool = False
    clean_shm: bool = True
    disable: bool = False
    gpus: bool = True
    gpu_timeout: float = 120
    gpu_slack: int = 1024
    visible: tuple[int, ...] = ()


@dataclass(frozen=True)
class Machine:
    """The host as this code touches it; tests put their own in its place."""

    run: Runner = run
    proc: str = PROC
    shm: str = SHM
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    send: Callable[[Process, int], bool] = leftovers.send
    progress: Progress = field(default_factory=lambda: Progress(None))


@dataclass(frozen=True)
class Look:
    """What one look at the host showed of the service."""

    unit: Unit
    processes: tuple[Process, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpus: Reading | None = None
    others: tuple[str, ...] = ()

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
    reset: bool = False
    seconds: float = 0.0
    drain: dict[str, Any] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.stopped or self.disabled or self.reset or bool(self.killed or self.removed)


class CannotStop(Exception):
    """Nothing was touched, for the reason given: the service still runs as it did."""


def stop(request: Request, machine: Machine, check_mode: bool = False) -> Report:
    """Stop the service of `request` and wait until nothing of it is left, or say what still is.

    Raises CannotStop, or SystemdError when systemd does not take the order, before anything was done. What goes
    wrong afterwards is told by the report, so that the caller knows that the service was stopped.
    """
    began = machine.clock()
    before, recorded = _look_first(request, machine)
    report = Report(before=before.as_dict({pid for pid, _start in recorded}), warnings=list(before.others))
    report.stopped = not before.unit.stopped
    report.disabled = request.disable and before.unit.enabled
    report.reset = before.unit.failed
    if check_mode:
        _foresee(request, machine, report, before, recorded)
    else:
        _carry_out(request, machine, report, before, recorded)
    if before.gpus and before.gpus.status == "missing":
        report.warnings.append("there is no nvidia-smi on this host: nothing is proven about GPU memory")
    report.seconds = round(machine.clock() - began, 2)
    return report


def _foresee(request: Request, machine: Machine, report: Report, before: Look, recorded: set[tuple[int, int]]) -> None:
    """Check mode: what is held although there is nothing to stop, and who would be killed."""
    if report.stopped:
        return
    if before.processes and request.kill_leftovers:
        report.killed = [process.describe() for process in before.processes]
        return
    gpus = _gpus_must_be_free(request, machine)
    _Proof(replace(request, gpu_timeout=0), machine, report, recorded).look(wait=False, gpus=gpus)


def _carry_out(
    request: Request, machine: Machine, report: Report, before: Look, recorded: set[tuple[int, int]]
) -> None:
    # Looked at while its processes live: afterwards nobody can tell whose a segment was.
    shared = segments.owned(before.processes, machine.proc, machine.shm) if request.clean_shm else []
    if report.stopped:
        report.drain = _drain(request, machine, before, recorded)
        _tell_to_stop(request, machine, report)
    refused = _disable(request, machine, before.unit) if report.disabled else ""
    gpus = request.gpus if report.stopped or before.processes else _gpus_must_be_free(request, machine)
    proof = _Proof(request, machine, report, recorded)
    proof.look(wait=report.stopped or bool(before.processes), gpus=gpus)
    state = report.after.get("unit", {}).get("file_state", "")
    if report.disabled and not refused and state in systemd.ENABLED:
        refused = f"it stays enabled: systemd says '{state}' of it after systemctl disable"
    if refused:
        report.disabled = False
        report.held.append(refused)
    _clean(machine, report, shared)
    report.reset = _reset(request, machine, report)


def _tell_to_stop(request: Request, machine: Machine, report: Report) -> None:
    """Order the stop. A unit without a file is gone for systemd once its process ends, as the drain may have it do."""
    try:
        systemd.order(machine.run, ["stop", "--no-block"], request.name)
    except SystemdError as error:
        if systemd.show(machine.run, request.name).stopped:
            return
        if not report.drain.get("told"):
            raise
        report.warnings.append(str(error))  # its server was told to end: the proof says what came of that


def _drain(request: Request, machine: Machine, before: Look, recorded: set[tuple[int, int]]) -> dict[str, Any]:
    """Let requests in flight end; empty if that was not asked for, or nothing of it serves the ports."""
    pids = {pid for pid, _start in recorded}
    mine = [one for one in before.listeners if one.pid in pids and one.port in request.ports]
    if request.drain_timeout <= 0 or not mine:
        return {}
    machine.progress.phase(f"waiting for the requests in flight of {request.name}")
    host = mine[0].address
    host = {"0.0.0.0": request.address or "127.0.0.1", "::": request.address or "::1"}.get(host, host)
    drain = Drain({one.port for one in mine}, host, machine.clock, machine.sleep, machine.proc)
    seen = drain.wait(request.drain_timeout)
    if before.unit.kill_mode == "control-group":
        # systemd would end the server's workers with it, and with them what came in meanwhile.
        servers = [process for process in before.processes if process.pid in {one.pid for one in mine}]
        seen["told"] = drain.tell(servers, machine.send, request.drain_timeout)
    return seen


def _clean(machine: Machine, report: Report, shared: list[Segment]) -> None:
    """Remove the segments that only processes held which are proven dead now."""
    if report.after.get("processes"):
        return
    gone, problems = segments.remove(segments.stale(shared, machine.proc))
    report.removed = [one.describe() for one in gone]
    report.warnings += problems


def _reset(request: Request, machine: Machine, report: Report) -> bool:
    """Forget a failure, so that neither a start limit nor the state "failed" stands in the way of a later start."""
    if report.after.get("unit", {}).get("active") != "failed":
        return False
    try:
        systemd.order(machine.run, ["reset-failed"], request.name)
    except SystemdError as error:
        report.warnings.append(f"its failure could not be reset: {error}")
        return False
    return True


def _disable(request: Request, machine: Machine, unit: Unit) -> str:
    """Disable the service; returns what systemd said against it, since the stop is under way by now."""
    # Links below /run, which a reboot forgets, are left where they are without it.
    until_reboot = ["--runtime"] if unit.file_state == "enabled-runtime" else []
    try:
        systemd.order(machine.run, ["disable", *until_reboot], request.name)
    except SystemdError as error:
        return f"it stays enabled: {error}"
    return ""


def _read(request: Request, machine: Machine) -> Reading:
    return read_gpus(machine.run, GPU_QUERY_TIMEOUT).only(request.visible)


def _look_first(request: Request, machine: Machine) -> tuple[Look, set[tuple[int, int]]]:
    unit = systemd.show(machine.run, request.name)
    triggers = systemd.triggers(machine.run, unit)
    if triggers:
        raise CannotStop(
            f"{unit.name} was left alone: {', '.join(triggers)} would start it again while it is stopped, or after the "
            f"next boot. Run systemctl disable --now {' '.join(triggers)} first."
        )
    processes = read_processes(machine.proc)
    ours = processes_of(unit, processes, set(), machine.proc)
    gpus = _read(request, machine) if request.gpus else None
    if gpus and gpus.status in ("hung", "failed"):
        raise CannotStop(
            f"{unit.name} was left alone: that its GPU memory becomes free could not be proven, since "
            f"{gpus.message}. Mend the driver first, or stop without that proof (gpu_proof: skip)."
        )
    pids = {process.pid for process in ours}
    listeners = list(with_owners(read_listeners(None, machine.proc), processes, machine.proc))
    held = tuple(one for one in listeners if one.pid in pids or one.port in request.ports)
    others = _others(gpus, pids, processes, _tolerated(request)) if gpus else ()
    return Look(unit, ours, held, gpus, others), {process.key for process in ours}


def _others(gpus: Reading, pids: set[int], processes: dict[int, Process], tolerated: set[str]) -> tuple[str, ...]:
    """Who else is on the cards: named, never touched."""
    rows = []
    for one in gpus.processes:
        process = processes.get(one.pid)
        if one.pid in pids or (process and process.unit in tolerated):
            continue
        name = process.command if process else one.name
        who = f"pid {one.pid} ({name[:60]}{', unit ' + process.unit if process and process.unit else ''})"
        rows.append((one.uuid, f"{one.amount} held by {who}, which is not of this service and was left alone"))
    return tuple(f"{cards}: {words}" for cards, words in gpus.by_cards(rows))


def _gpus_must_be_free(request: Request, machine: Machine) -> bool:
    # With the successor already running, what is used on the cards is its own affair.
    return request.gpus and all(systemd.show(machine.run, name).stopped for name in request.tolerate)


class _Proof:
    """Looks until nothing is held any more, or the time is up; the last look goes into the report."""

    def __init__(self, request: Request, machine: Machine, report: Report, recorded: set[tuple[int, int]]) -> None:
        self._request = request
        self._machine = machine
        self._report = report
        self._recorded = recorded
        self._leftovers = leftovers.LeftOvers(machine.clock, machine.send)

    def look(self, wait: bool, gpus: bool) -> None:
        """Look once, or until the time is up (`wait`); with `gpus`, memory has to be free too, within its own time."""
        request, machine, report = self._request, self._machine, self._report
        deadline = machine.clock() + (request.timeout if wait else 0)
        settled: float | None = None
        ended: float | None = None
        killed = not (wait and request.kill)
        pause = FIRST_PAUSE
        machine.progress.phase(f"proving that {request.name} is gone")
        while True:
            try:
                look = self._look_again()
                report.held = _held(look)
                if wait and look.unit.stopped and look.processes and request.kill_leftovers:
                    self._leftovers.end(look.processes)
                    ended = ended if ended is not None else machine.clock()
                    deadline = max(deadline, ended + leftovers.PATIENCE)  # however short the time for the unit was
                if not report.held and gpus:
                    settled = settled if settled is not None else machine.clock()
                    deadline = settled + request.gpu_timeout
                    look = replace(look, gpus=_read(request, machine))
                    report.held = _held_on_gpus(look, request, self._pids)
                report.after = look.as_dict(self._pids)
                if machine.clock() >= deadline and not killed and not look.unit.stopped:
                    killed = True
                    deadline = machine.clock() + KILL_GRACE
                    self._kill(look.unit)
            except SystemdError as error:
                # Its bus may be away for a moment; the stop has been ordered, and goes on.
                report.held = [str(error)]
            if not report.held or machine.clock() >= deadline:
                break
            machine.progress.detail("; ".join(report.held))
            machine.sleep(min(pause, max(0.0, deadline - machine.clock())))
            pause = min(pause * 1.5, LONGEST_PAUSE)
        report.killed += self._leftovers.killed
        _say_how_it_ended(report)

    @property
    def _pids(self) -> set[int]:
        return {pid for pid, _start in self._recorded}

    def _kill(self, unit: Unit) -> None:
        """What its unit allows (TimeoutStopSec=infinity) is longer than what the caller does."""
        systemd.order(self._machine.run, ["kill", "--signal=SIGKILL"], unit.name)
        self._report.killed.append(f"{unit.name}, by SIGKILL")
        self._report.warnings.append(
            f"{unit.name} had not stopped after {self._request.timeout:g} s and was killed, with what it was doing"
        )

    def _look_again(self) -> Look:
        request, machine = self._request, self._machine
        unit = systemd.show(machine.run, request.name)
        processes = read_processes(machine.proc)
        ours = processes_of(unit, processes, self._recorded, machine.proc)
        # What the service started since the last look belongs to the proof too.
        self._recorded |= {process.key for process in ours}
        sockets = [one for one in read_listeners(request.ports, machine.proc) if conflicts(one, request.address)]
        owned = with_owners(sockets, processes, machine.proc)
        return Look(unit, ours, tuple(one for one in owned if one.unit not in _tolerated(request)))


def _tolerated(request: Request) -> set[str]:
    return {systemd.unit_name(name) for name in request.tolerate}


def _say_how_it_ended(report: Report) -> None:
    unit = report.after.get("unit", {})
    if unit.get("active") == "failed":
        report.warnings.append(
            f"{unit['name']} ended as failed (result {unit['result']}, status {unit['exit_status']})"
        )


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
