# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files a Python, or a service, really imports: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

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
PROBE = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
print(json.dumps({
    "origin": spec.origin if spec else None,
    "folders": list(spec.submodule_search_locations or []) if spec else [],
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


def of_service(service: str, proc: str = "/proc", systemctl: str = "systemctl") -> Runner:
    """Return how a service runs Python: its live process if there is one, what its unit says if not.

    :param service: name of a systemd unit.
    :raises SourceError: there is no such unit, or it runs no Python that could be found.
    """
    names = ("LoadState", "MainPID", "ControlGroup", "ExecStart", "Environment", "WorkingDirectory")
    text = run([systemctl, "show", f"--property={','.join(names)}", "--", service])
    unit = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if unit.get("LoadState") != "loaded":
        raise SourceError(f"there is no service {service} ({unit.get('LoadState') or 'unknown'})")
    pid = int(unit.get("MainPID") or 0)
    for candidate in [pid, *_members(unit.get("ControlGroup", ""))] if pid else []:
        runner = _of_process(candidate, proc)
        if runner:
            return runner
    return _of_unit(service, unit)


def _members(group: str) -> list[int]:
    try:
        with open(f"/sys/fs/cgroup{group}/cgroup.procs", encoding="ascii") as stream:
            return [int(line) for line in stream]
    except OSError:
        return []


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


def _of_unit(service: str, unit: Mapping[str, str]) -> Runner:
    match = re.search(r"path=(.+?) ; argv\[\]=(.*?) ;", unit.get("ExecStart", ""))
    environment = dict(item.split("=", 1) for item in shlex.split(unit.get("Environment", "")) if "=" in item)
    environment = {name: value for name, value in environment.items() if name in ENVIRONMENT}
    python = match.group(1) if match else ""
    if not PYTHON.match(os.path.basename(python)):
        python = _interpreter_line(python)
    if not python:
        raise SourceError(
            f"service {service} does not run, and its unit starts {match.group(1) if match else 'nothing'}, "
            "which is no Python; start it, or name the Python itself"
        )
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
    if not found["folders"] or not found["origin"]:
        raise SourceError(f"{runner.python} finds no package {package} with Python source")
    root = os.path.dirname(os.path.realpath(found["folders"][0]))
    return Imported(runner.python, found["version"], found["origin"], root, runner.pid)
