# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files a Python, or a service, really imports: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import SourceError

PYTHON = re.compile(r"^(python|pypy)[\d.]*$")
# what decides on imports; the rest of a service's environment is none of our business
ENVIRONMENT = ("PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "VIRTUAL_ENV")
# where a folder of the same name is all that the path holds, a finder that an editable installation added may know
# the package itself; its modules are looked up one by one, as an import would. That runs no code of the package.
PROBE = """
import importlib.machinery, importlib.util, json, os, pkgutil, sys
name = sys.argv[1]
spec = importlib.util.find_spec(name)
strays = []
if spec and not spec.origin:
    for finder in sys.meta_path:
        if finder is importlib.machinery.PathFinder or not hasattr(finder, "find_spec"):
            continue
        other = finder.find_spec(name, None)
        if not other or not other.origin or not other.submodule_search_locations:
            continue
        folders = list(other.submodule_search_locations)
        for module in pkgutil.iter_modules(folders):
            child = importlib.util.find_spec(name + "." + module.name)
            if not child or not child.origin or not child.origin.startswith(tuple(f + os.sep for f in folders)):
                strays.append(name + "." + module.name)
        spec = other
        break
print(json.dumps({
    "origin": spec.origin if spec else None,
    "folders": list(spec.submodule_search_locations or []) if spec else [],
    "strays": strays,
    "version": ".".join(map(str, sys.version_info[:3])),
}))
"""


@dataclass
class Runner:
    """How a package is imported: interpreter, folder that it runs in, environment."""

    python: str
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    pid: int = 0


@dataclass
class Imported:
    """Where a package comes from. `root` is the folder that holds the package."""

    python: str
    python_version: str
    origin: str
    root: str
    pid: int


def run(command: Sequence[str], folder: str = "/", environment: Mapping[str, str] | None = None) -> str:
    """Return the standard output of a command.

    :raises SourceError: it failed, with what it said.
    """
    try:
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise SourceError(f"cannot run {shlex.join(command[:2])}: {exc}") from exc
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines()
        raise SourceError(f"{shlex.join(command[:2])} failed: {said[-1] if said else result.returncode}")
    return result.stdout


def of_service(service: str, proc: str = "/proc", systemctl: str = "systemctl", package: str = "sglang") -> Runner:
    """Return how a service runs Python: its live process if there is one, what its unit says if not.

    :param service: name of a systemd unit.
    :param package: where several processes run Python, one whose command names this counts.
    :raises SourceError: there is no such unit, or it runs no Python that could be found.
    """
    names = ("LoadState", "ActiveState", "MainPID", "ControlGroup", "ExecStart", "Environment", "WorkingDirectory")
    text = run([systemctl, "show", f"--property={','.join(names)}", "--", service])
    unit = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if unit.get("LoadState") != "loaded":
        raise SourceError(f"there is no service {service} ({unit.get('LoadState') or 'unknown'})")
    pids = _members(unit.get("ControlGroup", ""), proc)
    pids = [pid for pid in dict.fromkeys([int(unit.get("MainPID") or 0), *pids]) if pid]
    pairs = [(pid, runner) for pid in pids for runner in [_of_process(pid, proc)] if runner]
    pairs.sort(key=lambda pair: package not in _command(pair[0], proc))
    return pairs[0][1] if pairs else _of_unit(service, unit, pids)


def _members(group: str, proc: str) -> list[int]:
    """Return the processes in a control group and those below it, as /proc shows them.

    Where the cgroup file systems are mounted differs (one, several, both kinds); /proc does not.
    """
    found = []
    for name in os.listdir(proc) if group.strip("/") else ():
        try:
            with open(f"{proc}/{name}/cgroup", encoding="utf-8", errors="replace") as stream:
                lines = [line.rstrip("\n").split(":", 2) for line in stream]
        except OSError:
            continue
        paths = [line[2] for line in lines if len(line) == 3 and (line[0] == "0" or line[1] == "name=systemd")]
        if name.isdigit() and any(f"{path}/".startswith(f"{group}/") for path in paths):
            found.append(int(name))
    return sorted(found)


def _command(pid: int, proc: str) -> str:
    try:
        with open(f"{proc}/{pid}/cmdline", "rb") as stream:
            return os.fsdecode(stream.read()).replace("\0", " ")
    except OSError:
        return ""


def _of_process(pid: int, proc: str) -> Runner | None:
    try:
        with open(f"{proc}/{pid}/cmdline", "rb") as stream:
            command = [os.fsdecode(part) for part in stream.read().split(b"\0")]
        with open(f"{proc}/{pid}/environ", "rb") as stream:
            pairs = [os.fsdecode(part).partition("=") for part in stream.read().split(b"\0")]
        folder = os.readlink(f"{proc}/{pid}/cwd")
    except PermissionError as exc:
        raise SourceError(f"process {pid} belongs to another user; become root") from exc
    except OSError:
        return None
    environment = {name: value for name, _equals, value in pairs if name in ENVIRONMENT}
    if not PYTHON.match(os.path.basename(command[0])):
        return None
    python = command[0]
    if "/" not in python:
        python = shutil.which(python, path=environment.get("PATH")) or os.readlink(f"{proc}/{pid}/exe")
    return Runner(os.path.join(folder, python), folder if "-m" in command[1:4] else "/", environment, pid)


def _of_unit(service: str, unit: Mapping[str, str], pids: Sequence[int]) -> Runner:
    match = re.search(r"path=(.+?) ; argv\[\]=(.*?) ;", unit.get("ExecStart", ""))
    environment = dict(item.split("=", 1) for item in shlex.split(unit.get("Environment", "")) if "=" in item)
    environment = {name: value for name, value in environment.items() if name in ENVIRONMENT}
    python = match.group(1) if match else ""
    if not PYTHON.match(os.path.basename(python)):
        python = _interpreter_line(python)
    if not python:
        starts = f"its unit starts {match.group(1) if match else 'nothing'}, which is no Python"
        if pids or unit.get("ActiveState") == "active":
            looked = f" ({', '.join(map(str, pids))})" if pids else ""
            raise SourceError(
                f"service {service} runs, but none of its processes{looked} is a Python, and {starts}; "
                "name the Python itself"
            )
        raise SourceError(f"service {service} does not run, and {starts}; start it, or name the Python itself")
    module = bool(match and re.search(r"\s-m\s", match.group(2)))
    folder = unit.get("WorkingDirectory", "").lstrip("-!") or "/"
    return Runner(python, folder if module and os.path.isdir(folder) else "/", environment)


def _interpreter_line(path: str) -> str:
    """Return the Python of a script's first line, or nothing."""
    try:
        with open(path, "rb") as stream:
            line = stream.readline(512)
    except OSError:
        return ""
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    return words[0] if words and PYTHON.match(os.path.basename(words[0])) else ""


def imported(runner: Runner, package: str) -> Imported:
    """Return where a Python finds a package. The package itself is not run.

    :raises SourceError: that Python has no such package, or it is no folder with Python source.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), **runner.environment}
    found = json.loads(run([runner.python, "-c", PROBE, package], runner.folder, environment))
    if found["strays"]:
        names = ", ".join(found["strays"][:3]) + (" and more" if len(found["strays"]) > 3 else "")
        raise SourceError(
            f"{runner.python}, run in {runner.folder}, would import {package} from {found['origin']}, but not {names}: "
            f"a folder {package} in its path stands before it"
        )
    if found["folders"] and not found["origin"]:
        raise SourceError(
            f"{runner.python}, run in {runner.folder}, takes {found['folders'][0]} for the package {package}, "
            "which is a folder without an __init__.py"
        )
    if not found["folders"]:
        raise SourceError(f"{runner.python} finds no package {package} with Python source")
    root = os.path.dirname(os.path.realpath(found["folders"][0]))
    return Imported(runner.python, found["version"], found["origin"], root, runner.pid)
