# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at a host without changing anything. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .._gpu.cards import Reading
from .._gpu.look import View, look
from . import systemd
from .command import SEARCH_PATH, Outcome, Runner, run
from .proc import PROC, Process, read, read_processes
from .sockets import Listener, bind_problem, read_listeners, with_owners
from .systemd import SystemdError, Unit

SHM = "/dev/shm"
# In every unit that this collection makes.
MARKER = "X-Llmfleet="
PYTHON_PROBE = """
import json, sys
missing = []
for name in ("venv", "ensurepip", "ssl", "sqlite3"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
print(json.dumps({"version": list(sys.version_info[:3]), "missing": missing}))
"""


@dataclass(frozen=True)
class Space:
    """The file system on which `path` lies, or would lie; `parent` is what exists of it. Sizes in bytes."""

    path: str
    parent: str
    device: int
    free: int
    free_inodes: int
    read_only: bool = False
    problem: str = ""
    total: int = 0


@dataclass(frozen=True)
class Interpreter:
    """The Python that a release is to be built with. `problem` says why it could not be asked."""

    path: str
    version: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Facts:
    """What one look at a host showed; everything that the checks judge.

    releases: by commit, the CUDA of the finished release ("" if none); clock_synchronised: None if nobody says;
    model: the checkpoint's config.json, empty while it is not on the host; lost: services that run and could not be
    started again; triggers: by service, the units that start it.
    """

    os_id: str
    os_version: str
    os_name: str
    architecture: str
    kernel: str
    memory_total: int
    memory_available: int
    systemd: bool
    view: View
    gpu_owners: dict[int, Process]
    spaces: dict[str, Space]
    listeners: tuple[Listener, ...]
    bind_problem: str
    commands: dict[str, str]
    interpreter: Interpreter
    units: dict[str, Unit]
    unit_problem: str
    foreign_unit: str
    checkpoint_bytes: int
    releases: dict[str, str]
    shm: Space
    clock_synchronised: bool | None
    model: dict[str, Any]
    lost: tuple[str, ...] = ()
    triggers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def gpus(self) -> Reading:
        return self.view.reading

    def as_dict(self) -> dict[str, Any]:
        """The facts as a module returns them (keys of mappings are text)."""
        facts = asdict(self)
        del facts["view"], facts["model"]
        facts["gpus"] = self.view.as_dict()
        facts["gpu_owners"] = {str(pid): owner for pid, owner in facts["gpu_owners"].items()}
        return facts


@dataclass(frozen=True)
class Question:
    """What to look at. visible: the cards of this instance, by nvidia-smi's index; empty: all."""

    services: tuple[str, ...]
    address: str
    port: int
    paths: dict[str, str]
    commands: tuple[str, ...]
    python: str
    checkpoint_path: str = ""
    checkpoint_repository: str = ""
    checkpoint_revision: str = ""
    gpus: bool = True
    timeout: float = 20
    visible: tuple[int, ...] = ()


def collect(question: Question, runner: Runner = run, proc: str = PROC, root: str = "") -> Facts:
    """Look at the host once. `root` is put before the fixed files under /etc and /run (tests only)."""
    release = parse_os_release(read(f"{root}/etc/os-release"))
    memory = parse_meminfo(read(f"{proc}/meminfo"))
    processes = read_processes(proc)
    view = look(runner, question.timeout, proc) if question.gpus else View(Reading("not asked"))
    view = replace(view, reading=view.reading.only(question.visible))
    units, triggers, unit_problem = _units(question, runner)
    pids = {held.pid for held in view.reading.processes}
    return Facts(
        os_id=release.get("ID", ""),
        os_version=release.get("VERSION_ID", ""),
        os_name=release.get("PRETTY_NAME", ""),
        architecture=platform.machine(),
        kernel=platform.release(),
        memory_total=memory.get("MemTotal", 0),
        memory_available=memory.get("MemAvailable", 0),
        systemd=os.path.isdir(f"{root}/run/systemd/system"),
        view=view,
        gpu_owners={pid: processes[pid] for pid in sorted(pids) if pid in processes},
        spaces={name: space(path) for name, path in question.paths.items()},
        listeners=tuple(with_owners(read_listeners({question.port}, proc), processes, proc)),
        bind_problem=bind_problem(question.address),
        commands={name: find_command(name) for name in question.commands},
        interpreter=read_interpreter(question.python, runner, question.timeout),
        units=units,
        unit_problem=unit_problem,
        foreign_unit=_foreign_unit(units.get(systemd.unit_name(question.services[0]))) if question.services else "",
        checkpoint_bytes=_checkpoint_bytes(question),
        releases=finished_releases(question.paths.get("root", "")),
        shm=space(SHM),
        # In a container the clock is that of the machine below, and nothing in here can set it.
        clock_synchronised=None if in_container(root) else clock_synchronised(runner, question.timeout),
        model=_model(question),
        lost=tuple(unit.name for unit in units.values() if not unit.stopped and not unit.comes_back),
        triggers=triggers,
    )


def _units(question: Question, runner: Runner) -> tuple[dict[str, Unit], dict[str, tuple[str, ...]], str]:
    """The services, what starts them, and what systemd has against being asked."""
    found: dict[str, Unit] = {}
    triggers: dict[str, tuple[str, ...]] = {}
    try:
        for name in question.services:
            unit = systemd.show(runner, name, question.timeout)
            found[unit.name] = unit
            if unit.triggered_by:
                triggers[unit.name] = systemd.triggers(runner, unit, question.timeout)
    except SystemdError as error:
        return found, triggers, str(error)
    return found, triggers, ""


def _foreign_unit(unit: Unit | None) -> str:
    """The file of a unit that this collection did not make; "" for one of ours, or none."""
    content = read(unit.fragment) if unit and unit.fragment else ""
    return unit.fragment if unit and content and MARKER not in content else ""


def parse_os_release(text: str) -> dict[str, str]:
    """The entries of /etc/os-release, quotes taken off."""
    pairs = (line.strip().partition("=") for line in text.splitlines() if "=" in line and line[0] != "#")
    return {name: value.strip("\"'") for name, _equals, value in pairs}


def parse_meminfo(text: str) -> dict[str, int]:
    """The sizes in /proc/meminfo, in bytes."""
    sizes = {}
    for line in text.splitlines():
        name, _colon, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[0].isdigit() and words[1] == "kB":
            sizes[name] = int(words[0]) * 1024
    return sizes


def space(path: str) -> Space:
    """Free space for `path`, measured where it exists: at the path or its nearest existing parent.

    What counts is what an ordinary user may still write: blocks kept back for root are not free.
    """
    parent = os.path.abspath(path)
    while not os.path.exists(parent) and parent != "/":
        parent = os.path.dirname(parent)
    try:
        status, device = os.statvfs(parent), os.stat(parent).st_dev
    except OSError as error:
        return Space(path, parent, 0, 0, 0, problem=str(error))
    problem = "" if os.path.isdir(parent) else f"{parent} is no folder"
    return Space(
        path=path,
        parent=parent,
        device=device,
        free=status.f_bavail * status.f_frsize,
        free_inodes=status.f_favail,
        read_only=bool(status.f_flag & os.ST_RDONLY),
        problem=problem,
        total=status.f_blocks * status.f_frsize,
    )


def in_container(root: str = "") -> bool:
    """Whether systemd says that this is a container."""
    return os.path.exists(f"{root}/run/systemd/container")


def clock_synchronised(runner: Runner, timeout: float) -> bool | None:
    """Whether the kernel holds its clock for synchronised, whatever does it; None where systemd cannot say."""
    told = runner(["timedatectl", "show", "--property=NTPSynchronized", "--value"], timeout)
    return {"yes": True, "no": False}.get(told.stdout.strip()) if told.ok else None


def find_command(name: str) -> str:
    """The path of a command, looked up as root's shell would; empty if there is none."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + SEARCH_PATH) or ""


def read_interpreter(path: str, runner: Runner, timeout: float) -> Interpreter:
    """Ask a Python for its version and whether it can make virtual environments."""
    outcome: Outcome = runner([path, "-I", "-c", PYTHON_PROBE], timeout)
    if not outcome.ok:
        return Interpreter(path, problem=outcome.describe())
    try:
        told = json.loads(outcome.stdout)
        return Interpreter(path, tuple(told["version"]), tuple(told["missing"]))
    except (ValueError, KeyError, TypeError):
        return Interpreter(path, problem=f"{path} answered something unexpected: {outcome.stdout[:200]!r}")


def _checkpoint_folders(question: Question) -> list[str]:
    """Where the pinned revision lies, or would.

    As the checkpoint module keeps them: behind the served link, in the store beside it, and where a download that
    has not ended yet puts them.
    """
    if not question.checkpoint_path or not question.checkpoint_revision:
        return []
    revision = question.checkpoint_revision
    served = os.path.realpath(question.checkpoint_path)
    store = os.path.join(os.path.dirname(question.checkpoint_path), ".checkpoints")
    name = question.checkpoint_repository.replace("/", "--")
    folders = {os.path.realpath(os.path.join(store, name, revision))}
    if os.path.basename(served) == revision:
        folders.add(served)
    folders.add(os.path.join(store, ".staging", f"{name}--{revision}", "files"))
    return sorted(folders)


def _checkpoint_bytes(question: Question) -> int:
    """Bytes of the pinned revision that lie on the host already, whole files only."""
    return sum(folder_bytes(folder) for folder in _checkpoint_folders(question))


def _model(question: Question) -> dict[str, Any]:
    """The checkpoint's config.json, if it is on the host."""
    for folder in _checkpoint_folders(question):
        try:
            told = json.loads(read(os.path.join(folder, "config.json")))
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    return {}


def folder_bytes(folder: str) -> int:
    """The size of a folder's files, unfinished downloads and caches left out."""
    total = 0
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".cache"]
        for name in files:
            try:
                total += 0 if name.endswith(".incomplete") else os.lstat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total


def finished_releases(root: str) -> dict[str, str]:
    """The commits of the releases that are complete under `root`, with the CUDA that each is built with."""
    folder = os.path.join(root, "releases")
    found = {}
    for name in sorted(_names(folder)):
        try:
            told = json.loads(read(os.path.join(folder, name, "release.json")))
            found[str(told["inputs"]["commit"])] = str(told.get("cuda") or "")
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
