# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs and their processes as nvidia-smi tells them. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from .._host.command import Outcome, Runner
from .text import known, lines, mask, real, whole

GPU_FIELDS = (
    "index",
    "uuid",
    "compute_cap",
    "driver_version",
    "memory.total",
    "memory.used",
    "power.limit",
    "persistence_mode",
    "mig.mode.current",
    "ecc.errors.uncorrected.volatile.total",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "pci.bus_id",
    "name",
)
# Everything that is worth knowing; those above are what a stop needs, which asks again and again.
ALL_FIELDS = (
    *GPU_FIELDS[:-1],
    "power.draw",
    "power.default_limit",
    "utilization.gpu",
    "temperature.gpu",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "clocks_event_reasons.active",
    "ecc.mode.current",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.aggregate.total",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.gen.gpumax",
    "fabric.state",
    "fabric.status",
    "name",
)
REQUIRED = ("index", "uuid", "memory.total", "memory.used", "name")
# The name comes last, since it is the one field that may hold the separator.
PROCESS_FIELDS = ("pid", "gpu_uuid", "used_memory", "process_name")
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
# Bits of clocks_event_reasons.active, as NVML names them.
SLOW_CLOCKS = {
    0x02: "application clocks",
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}


@dataclass(frozen=True)
class Gpu:
    """One card. Memory in MiB, power in W, clocks in MHz, temperature in degrees Celsius, utilisation in percent.

    None (or an empty text) where nvidia-smi has no answer or was not asked. `link_generation_max` is what card and
    slot can do together, `link_generation_card` what the card alone could.
    """

    index: int
    uuid: str
    name: str
    memory_total: int | None
    memory_used: int | None
    compute_capability: str = ""
    driver: str = ""
    power_limit: float | None = None
    persistence: str = ""
    mig: str = ""
    ecc_errors: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    bus_id: str = ""
    power_draw: float | None = None
    power_limit_default: float | None = None
    utilisation: float | None = None
    temperature: int | None = None
    clock_sm: int | None = None
    clock_sm_max: int | None = None
    clock_memory: int | None = None
    clocks_slowed_by: tuple[str, ...] = ()
    ecc: str = ""
    ecc_corrected: int | None = None
    ecc_errors_ever: int | None = None
    link_generation: int | None = None
    link_generation_max: int | None = None
    link_generation_card: int | None = None
    fabric_state: str = ""
    fabric_status: str = ""


@dataclass(frozen=True)
class GpuProcess:
    """Memory (MiB, None if not told) that one process holds on one card."""

    pid: int
    uuid: str
    memory: int | None
    name: str

    @property
    def amount(self) -> str:
        return "an unknown amount" if self.memory is None else f"{self.memory} MiB"


@dataclass(frozen=True)
class Load:
    """How much one card does: utilisation in percent, power in W; None where nvidia-smi has no answer."""

    uuid: str
    utilisation: float | None
    draw: float | None
    limit: float | None


@dataclass(frozen=True)
class Reading:
    """One look at the cards. `status`: C(ok), C(missing) (no nvidia-smi here), C(hung) or C(failed)."""

    status: str
    message: str = ""
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[GpuProcess, ...] = field(default=())

    def card(self, uuid: str) -> str:
        """How a message calls the card."""
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return f"GPU {gpu.index}"
        return uuid

    def cards(self, uuids: Collection[str]) -> str:
        """The same for several cards, in their order."""
        known_ones = [str(gpu.index) for gpu in self.gpus if gpu.uuid in uuids]
        if len(known_ones) < 2 or len(known_ones) < len(uuids):
            return ", ".join(sorted(self.card(uuid) for uuid in uuids))
        return f"GPUs {', '.join(known_ones)}"

    def by_cards(self, rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Rows of (UUID, words) with the cards of equal words put together: (V(GPUs 0, 1), words)."""
        groups: dict[str, set[str]] = {}
        for uuid, words in rows:
            groups.setdefault(words, set()).add(uuid)
        return [(self.cards(uuids), words) for words, uuids in groups.items()]

    def only(self, indexes: Collection[int]) -> Reading:
        """The same of these cards alone, where an instance has some of a host's; of all with no indexes."""
        if not indexes:
            return self
        gpus = tuple(gpu for gpu in self.gpus if gpu.index in indexes)
        uuids = {gpu.uuid for gpu in gpus}
        return replace(self, gpus=gpus, processes=tuple(one for one in self.processes if one.uuid in uuids))

    def held_by(self, pids: set[int]) -> list[GpuProcess]:
        return [process for process in self.processes if process.pid in pids]


def read_gpus(run: Runner, timeout: float, fields: Sequence[str] = GPU_FIELDS) -> Reading:
    """Ask nvidia-smi for cards and processes, one after the other, each within `timeout` seconds."""
    outcome, told = ask_gpus(run, timeout, fields)
    return reading_of(outcome, told, ask_processes(run, timeout) if outcome.ok else outcome)


def ask_gpus(run: Runner, timeout: float, fields: Sequence[str]) -> tuple[Outcome, list[str]]:
    """Query the cards; returns the answer and the fields that it has.

    An old driver does not know every field and refuses the whole query: the unknown one is left out and
    the rest asked again.
    """
    left = list(fields)
    while True:
        outcome = run(["nvidia-smi", f"--query-gpu={','.join(left)}", "--format=csv,noheader,nounits"], timeout)
        unknown = UNKNOWN_FIELD.search(outcome.stdout + outcome.stderr)
        if outcome.ok or not unknown or unknown[1] not in left or unknown[1] in REQUIRED:
            return outcome, left
        left.remove(unknown[1])


def ask_processes(run: Runner, timeout: float) -> Outcome:
    """Query the processes that hold memory of the cards."""
    query = f"--query-compute-apps={','.join(PROCESS_FIELDS)}"
    return run(["nvidia-smi", query, "--format=csv,noheader,nounits"], timeout)


def reading_of(cards: Outcome, fields: Sequence[str], processes: Outcome) -> Reading:
    """Both answers as one reading."""
    if not cards.ok:
        return Reading(cards.problem if cards.problem in ("missing", "hung") else "failed", cards.describe())
    if not processes.ok:
        return Reading("hung" if processes.problem == "hung" else "failed", processes.describe())
    try:
        gpus, apps = parse_gpus(cards.stdout, fields), parse_processes(processes.stdout)
    except ValueError as error:
        return Reading("failed", str(error))
    return Reading("ok", gpus=tuple(gpus), processes=tuple(apps))


def read_loads(run: Runner, timeout: float) -> list[Load]:
    """What each card does now; empty when nvidia-smi cannot be asked."""
    outcome = run(
        ["nvidia-smi", "--query-gpu=uuid,utilization.gpu,power.draw,power.limit", "--format=csv,noheader,nounits"],
        timeout,
    )
    rows = [[value.strip() for value in line.split(",")] for line in lines(outcome.stdout)] if outcome.ok else []
    return [Load(row[0], *(real(value) for value in row[1:])) for row in rows if len(row) == 4]


def parse_gpus(text: str, fields: Sequence[str] = GPU_FIELDS) -> list[Gpu]:
    """The cards in nvidia-smi's CSV for these fields; ValueError names a line that does not fit."""
    gpus = []
    for line in lines(text):
        if line == "No devices were found":
            continue
        values = [value.strip() for value in line.split(",", len(fields) - 1)]
        row = dict(zip(fields, values))
        if len(values) != len(fields) or not row["index"].isdigit():
            raise ValueError(f"nvidia-smi --query-gpu answered a line that cannot be read: {line!r}")
        gpus.append(_gpu(row))
    return gpus


def _gpu(row: dict[str, str]) -> Gpu:
    def text(name: str) -> str:
        return known(row.get(name, ""))

    def number(name: str) -> int | None:
        return whole(row.get(name, ""))

    reasons = mask(row.get("clocks_event_reasons.active", "")) or 0
    return Gpu(
        index=int(row["index"]),
        uuid=row["uuid"],
        name=row["name"],
        memory_total=number("memory.total"),
        memory_used=number("memory.used"),
        compute_capability=text("compute_cap"),
        driver=text("driver_version"),
        power_limit=real(row.get("power.limit", "")),
        persistence=text("persistence_mode"),
        mig=text("mig.mode.current"),
        ecc_errors=number("ecc.errors.uncorrected.volatile.total"),
        link_width=number("pcie.link.width.current"),
        link_width_max=number("pcie.link.width.max"),
        bus_id=text("pci.bus_id"),
        power_draw=real(row.get("power.draw", "")),
        power_limit_default=real(row.get("power.default_limit", "")),
        utilisation=real(row.get("utilization.gpu", "")),
        temperature=number("temperature.gpu"),
        clock_sm=number("clocks.sm"),
        clock_sm_max=number("clocks.max.sm"),
        clock_memory=number("clocks.mem"),
        clocks_slowed_by=tuple(words for bit, words in SLOW_CLOCKS.items() if reasons & bit),
        ecc=text("ecc.mode.current"),
        ecc_corrected=number("ecc.errors.corrected.volatile.total"),
        ecc_errors_ever=number("ecc.errors.uncorrected.aggregate.total"),
        link_generation=number("pcie.link.gen.current"),
        link_generation_max=number("pcie.link.gen.max"),
        link_generation_card=number("pcie.link.gen.gpumax"),
        fabric_state=text("fabric.state"),
        fabric_status=text("fabric.status"),
    )


def parse_processes(text: str, fields: Sequence[str] = PROCESS_FIELDS) -> list[GpuProcess]:
    """The processes in nvidia-smi's CSV for these fields; ValueError names a line that does not fit."""
    found = []
    for line in lines(text):
        if line.lower().startswith("no running"):
            continue
        values = [value.strip() for value in line.split(",", len(fields) - 1)]
        row = dict(zip(fields, values))
        if len(values) != len(fields) or not row["pid"].isdigit():
            raise ValueError(f"nvidia-smi --query-compute-apps answered a line that cannot be read: {line!r}")
        found.append(GpuProcess(int(row["pid"]), row["gpu_uuid"], whole(row["used_memory"]), row["process_name"]))
    return found


def unexplained(reading: Reading) -> dict[str, int]:
    """MiB in use on each card (by UUID) beyond what its listed processes hold.

    A card on which some process does not tell its share, or that does not tell its use, is left out:
    nothing can be concluded for it.
    """
    left: dict[str, int] = {}
    for gpu in reading.gpus:
        shares = [process.memory for process in reading.processes if process.uuid == gpu.uuid]
        told = [share for share in shares if share is not None]
        if gpu.memory_used is not None and len(told) == len(shares):
            left[gpu.uuid] = max(0, gpu.memory_used - sum(told))
    return left
