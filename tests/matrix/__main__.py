# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the collection's checks under every Ansible and Python that it promises: python -m tests.matrix [CELL ...]."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from . import pythons, tree

CACHE = pythons.ROOT / ".cache" / "matrix"
TARGETS = ("3.9", "3.10", "3.11", "3.12", "3.13")
# Of the oldest and the newest; what lies between is left to the whole matrix.
ENDS = ("3.9", "3.13")
OLDEST_CORE = pythons.pins("ansible-core")[0]
NEWEST_CORE = "ansible-core==2.21.5"
UNITS = ("pytest", "pytest-xdist", "hypothesis", "libcst", "smg")
# Where the newest pytest and hypothesis do not run: versions that do, and PyYAML, which Ansible brings elsewhere.
OLD = {
    "3.9": ["pytest==8.4.2", "hypothesis==6.141.1", "PyYAML==6.0.3"],
    "3.10": ["pytest==9.2.0", "hypothesis==6.168.5", "PyYAML==6.0.4"],
}
# What `make` and a virtual environment set for this checkout, and must not reach the copy.
OURS = ("ANSIBLE_", "PYTHON", "VIRTUAL_ENV")
LIMIT = 3600  # seconds for one cell


@dataclass(frozen=True)
class Cell:
    """One run.

    :param core: none where Ansible is not needed.
    :param targets: the Pythons of import and compile.
    :param tests: the tests to run if the caller names none; empty: all.
    """

    name: str
    kind: str
    python: str
    core: str = ""
    targets: tuple[str, ...] = TARGETS
    tests: tuple[str, ...] = ()


QUICK = (
    Cell("quick-sanity", "sanity", "3.11", OLDEST_CORE, ENDS),
    # `make unit` runs them all; these prove that they run under ansible-test too.
    Cell("quick-units", "units", "3.11", OLDEST_CORE, tests=("tests/unit/pins/", "tests/unit/verdict/")),
)
CELLS = (
    Cell("sanity-2.19-py3.11", "sanity", "3.11", OLDEST_CORE),
    Cell("units-2.19-py3.11", "units", "3.11", OLDEST_CORE),
    Cell("sanity-2.21-py3.12", "sanity", "3.12", NEWEST_CORE),
    Cell("units-2.21-py3.12", "units", "3.12", NEWEST_CORE),
    Cell("sanity-2.21-py3.13", "sanity", "3.13", NEWEST_CORE),
    Cell("units-2.21-py3.13", "units", "3.13", NEWEST_CORE),
    *(Cell(f"target-py{version}", "target", version) for version in OLD),
)


class NotHere(Exception):
    """A Python that a cell cannot do without is not on this machine."""


def interpreter(version: str) -> Path:
    """Return the interpreter of a version.

    :raises NotHere: there is none.
    """
    found = pythons.find(version)
    if found is None:
        raise NotHere(f"Python {version} is not here; install it (uv python install {version}, or a package)")
    return found


def with_ansible(cell: Cell, python: Path) -> Path:
    """Return the bin folder of an environment with a cell's Ansible and what its tests need."""
    ours = Path(sys.prefix, "bin")
    version = ".".join(map(str, sys.version_info[:2]))
    if (cell.core, cell.python) == (OLDEST_CORE, version) and (ours / "ansible-test").exists():
        return ours  # `make setup` has installed all of it
    name = f"{cell.core.replace('==', '-')}-py{cell.python}"
    return pythons.environment(CACHE, name, python, [cell.core, *pythons.pins(*UNITS)])


def ansible_test(cell: Cell, more: list[str]) -> int:
    """Run ansible-test for a cell and return its exit status."""
    python = interpreter(cell.python)
    targets = [found for version in cell.targets if (found := pythons.find(version))]
    missing = [version for version in cell.targets if not pythons.find(version)]
    if missing and cell.kind == "sanity":
        print(f"    not here, so left out: Python {', '.join(missing)}", flush=True)
    bin_folder = with_ansible(cell, python)
    collection = tree.copy(CACHE / "tree")
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(OURS)},
        "HOME": str(tree.home(CACHE / "home", bin_folder)),
        "PATH": tree.path_of(CACHE / "bin", bin_folder, [python, *targets]),
        "LC_ALL": "C.UTF-8",
    }
    only = ["--python", cell.python] if cell.kind == "units" else []
    return subprocess.run(
        ["ansible-test", cell.kind, *only, *(more or cell.tests)], cwd=collection, env=env, check=False, timeout=LIMIT
    ).returncode


def target(cell: Cell, more: list[str]) -> int:
    """Run the tests of the target's side with an old Python and without Ansible; return the exit status."""
    requirements = [*OLD[cell.python], *pythons.pins("libcst")]
    bin_folder = pythons.environment(CACHE, cell.name, interpreter(cell.python), requirements)
    command = [
        str(bin_folder / "pytest"),
        "-p",
        "tests.matrix.target_side",
        "-p",
        "no:cacheprovider",
        "-q",
        "tests/unit",
    ]
    env = {
        **os.environ,
        "PYTHONPATH": str(pythons.ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The programs that tests start, such as hf and smg, are not what is tested on an old Python.
        "PATH": f"{os.environ.get('PATH', os.defpath)}:{Path(sys.executable).parent}",
        "LLMFLEET_TEST_HF_PYTHON": sys.executable,
    }
    return subprocess.run([*command, *more], cwd=pythons.ROOT, env=env, check=False, timeout=LIMIT).returncode


def run(cell: Cell, more: list[str]) -> tuple[str, float]:
    """Run a cell; return how it ended and after how many seconds."""
    print(f"==> {cell.name}", flush=True)
    began = time.monotonic()
    try:
        status = (target if cell.kind == "target" else ansible_test)(cell, more)
        outcome = "passed" if status == 0 else f"failed (exit {status})"
    except subprocess.TimeoutExpired as problem:
        outcome = f"failed ({Path(problem.cmd[0]).name} was still running after {problem.timeout:.0f} s)"
    except subprocess.CalledProcessError as problem:
        outcome = f"failed ({Path(problem.cmd[0]).name} ended with {problem.returncode}; what it said stands above)"
    except NotHere as problem:
        outcome = f"not run: {problem}"
    return outcome, time.monotonic() - began


def main() -> int:
    """Run the cells that are named, or all; return 0 if all passed, 1 if one failed or could not be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="any of --list; all but the quick ones if left out")
    parser.add_argument("--list", action="store_true", help="name the cells and leave")
    options, more = parser.parse_known_args()
    known = {cell.name: cell for cell in (*QUICK, *CELLS)}
    if options.list:
        print("\n".join(known))
        return 0
    if wrong := [name for name in options.cells if name not in known]:
        parser.error(f"no cell is named {', '.join(wrong)}; see --list")
    chosen = [known[name] for name in options.cells] or list(CELLS)
    results = {cell.name: run(cell, more) for cell in chosen}
    print()
    for name, (outcome, seconds) in results.items():
        print(f"  {name:<20} {seconds:7.0f} s  {outcome}")
    return 0 if all(outcome == "passed" for outcome, _seconds in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
