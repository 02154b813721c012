# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs and their processes as nvidia-smi tells them. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from .command import Runner

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
REQUIRED = ("index", "uuid", "memory.total", "memory.used", "name")
# The name comes last, since it is the one field that may hold the separator.
PROCESS_FIELDS = ("pid", "gpu_uuid", "used_memory", "process_name")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')


@dataclass(frozen=True)
class Gpu:
    """One card. Memory in MiB, power in W; None (or an empty text) where nvidia-smi has no answer."""

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
        known = [str(gpu.index) for gpu in self.gpus if gpu.uuid in uuids]
        if len(known) < 2 or len(known) < len(uuids):
            return ", ".join(sorted(self.card(uuid) for uuid in uuids))
        return f"GPUs {', '.join(known)}"

    def by_cards(self, rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Rows of (UUID, words) with the cards of equal words put together: (V(GPUs 0, 1), words)."""
        groups: dict[str, set[str]] = {}
        for uuid, words in rows:
            groups.setdefault(words, set()).add(uuid)
        return [(self.cards(uuids), words) for words, uuids in groups.items()]

    def held_by(self, pids: set[int]) -> list[GpuProcess]:
        return [process for process in self.processes if process.pid in pids]


def read_gpus(run: Runner, timeout: float) -> Reading:
    """Ask nvidia-smi for cards and processes, each within `timeout` seconds.

    An old driver does not know every field and refuses the whole query: the unknown one is left out and
    the rest asked again.
    """
    fields = list(GPU_FIELDS)
    while True:
        outcome = run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], timeout)
        unknown = UNKNOWN_FIELD.search(outcome.stdout + outcome.stderr)
        if outcome.ok or not unknown or unknown[1] not in fields or unknown[1] in REQUIRED:
            break
        fields.remove(unknown[1])
    if not outcome.ok:
        status = outcome.problem if outcome.problem in ("missing", "hung") else "failed"
        return Reading(status, outcome.describe())
    apps = run(
        ["nvidia-smi", f"--query-compute-apps={','.join(PROCESS_FIELDS)}", "--format=csv,noheader,nounits"],
        timeout,
    )
    if not apps.ok:
        return Reading("hung" if apps.problem == "hung" else "failed", apps.describe())
    try:
        return Reading(
            "ok",
            gpus=tuple(parse_gpus(outcome.stdout, fields)),
            processes=tuple(parse_processes(apps.stdout)),
        )
    except ValueError as error:
        return Reading("failed", str(error))


def read_loads(run: Runner, timeout: float) -> list[Load]:
    """What each card does now; empty when nvidia-smi cannot be asked."""
    outcome = run(
        ["nvidia-smi", "--query-gpu=uuid,utilization.gpu,power.draw,power.limit", "--format=csv,noheader,nounits"],
        timeout,
    )
    rows = [[value.strip() for value in line.split(",")] for line in _lines(outcome.stdout)] if outcome.ok else []
    return [Load(row[0], *(_real(value) for value in row[1:])) for row in rows if len(row) == 4]


def parse_gpus(text: str, fields: Sequence[str] = GPU_FIELDS) -> list[Gpu]:
    """The cards in nvidia-smi's CSV for these fields; ValueError names a line that does not fit."""
    gpus = []
    for line in _lines(text):
        if line == "No devices were found":
            continue
        values = [value.strip() for value in line.split(",", len(fields) - 1)]
        row = dict(zip(fields, values))
        if len(values) != len(fields) or not row["index"].isdigit():
            raise ValueError(f"nvidia-smi --query-gpu answered a line that cannot be read: {line!r}")
        gpus.append(
            Gpu(
                index=int(row["index"]),
                uuid=row["uuid"],
                name=row["name"],
                memory_total=_whole(row["memory.total"]),
                memory_used=_whole(row["memory.used"]),
                compute_capability=_known(row.get("compute_cap", "")),
                driver=_known(row.get("driver_version", "")),
                power_limit=_real(row.get("power.limit", "")),
                persistence=_known(row.get("persistence_mode", "")),
                mig=_known(row.get("mig.mode.current", "")),
                ecc_errors=_whole(row.get("ecc.errors.uncorrected.volatile.total", "")),
                link_width=_whole(row.get("pcie.link.width.current", "")),
                link_width_max=_whole(row.get("pcie.link.width.max", "")),
                bus_id=_known(row.get("pci.bus_id", "")),
            )
        )
    return gpus


def parse_processes(text: str, fields: Sequence[str] = PROCESS_FIELDS) -> list[GpuProcess]:
    """The processes in nvidia-smi's CSV for these fields; ValueError names a line that does not fit."""
    found = []
    for line in _lines(text):
        if line.lower().startswith("no running"):
            continue
        values = [value.strip() for value in line.split(",", len(fields) - 1)]
        row = dict(zip(fields, values))
        if len(values) != len(fields) or not row["pid"].isdigit():
            raise ValueError(f"nvidia-smi --query-compute-apps answered a line that cannot be read: {line!r}")
        memory = _whole(row["used_memory"])
        found.append(GpuProcess(int(row["pid"]), row["gpu_uuid"], memory, row["process_name"]))
    return found


def unexplained(reading: Reading) -> dict[str, int]:
    """MiB in use on each card (by UUID) beyond what its listed processes hold.

    A card on which some process does not tell its share, or that does not tell its use, is left out:
    nothing can be concluded for it.
    """
    left: dict[str, int] = {}
    for gpu in reading.gpus:
        shares = [process.memory for process in reading.processes if process.uuid == gpu.uuid]
        known = [share for share in shares if share is not None]
        if gpu.memory_used is not None and len(known) == len(shares):
            left[gpu.uuid] = max(0, gpu.memory_used - sum(known))
    return left


def _lines(text: str) -> list[str]:
    return [line for line in (COLOUR.sub("", raw).strip() for raw in text.splitlines()) if line]


def _known(text: str) -> str:
    return "" if text in ("N/A", "Unknown Error") or text.startswith("[") else text


def _real(text: str) -> float | None:
    # With or without the unit: "600.00", "600.00 W".
    words = _known(text).split()
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    number = _real(text)
    return None if number is None else int(number)
