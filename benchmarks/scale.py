# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a deployment costs the controller, on 10, 50 and 100 simulated hosts, beside `ansible -m ping` on them.

    python3 benchmarks/scale.py [--hosts 10,50,100] [--profile]      needs `make setup`

The playbooks, roles, filters and action plugins are the real ones; each host is a local connection whose Python is
benchmarks/simulated_host.py, which runs no module and answers at once. Measured: ping, the cut-over of every host,
a run that changes nothing. CPU: of ansible and all of its children, less that of the simulated hosts. Memory: the
largest sum over the processes, shared pages counted once (PSS). Bytes: what a host's Python was sent, and answered.
--profile: says of each run that changes nothing in which tasks its time went.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
PLAY = "llmfleet.sglang.deploy_qwen"
_COLUMNS = " ".join(f"{name:>8}" for name in ("CPU s", "wall s", "MB peak", "MB sent", "MB back"))
_HEAD = f"{'hosts':>5} {'run':16} {'tasks':>6} {'calls':>6} {_COLUMNS}"


@dataclass(frozen=True)
class Run:
    """One measured run. cpu: of the controller (seconds); peak, sent, back: bytes; tasks, calls: over all hosts."""

    name: str
    tasks: int
    calls: int
    cpu: float
    wall: float
    peak: int
    sent: int
    back: int
    said: str

    def row(self, hosts: int) -> str:
        """Return a line of the table; tasks and calls are a host's."""
        sizes = " ".join(f"{each / 1e6:8.1f}" for each in (self.peak, self.sent, self.back))
        counts = f"{self.tasks / hosts:6.1f} {self.calls / hosts:6.1f}"
        return f"{hosts:5} {self.name:16} {counts} {self.cpu:8.2f} {self.wall:8.2f} {sizes}"


class Fleet:
    """An inventory of simulated hosts in a folder: the demo fleet's variables, and no machine."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        inventory = folder / "inventory"
        inventory.mkdir(parents=True)
        for name in ("group_vars", "cpu-overrides.txt"):
            (inventory / name).symlink_to(ROOT / "inventories" / "demo" / name)
        hosts = {f"h{number:03}": self._host(number) for number in range(1, count + 1)}
        (inventory / "hosts.yml").write_text(yaml.safe_dump({"sglang": {"hosts": hosts}}))
        collections = folder / "ansible_collections" / "llmfleet"
        collections.mkdir(parents=True)
        (collections / "sglang").symlink_to(ROOT)

    def _host(self, number: int) -> dict[str, object]:
        name = f"h{number:03}"
        python = self.folder / "hosts" / name / "python"
        python.parent.mkdir(parents=True)
        words = f"{sys.executable} -I -S {HERE / 'simulated_host.py'} {self.folder} {name}"
        python.write_text(f"#!/bin/sh\nexec {words}\n")
        python.chmod(0o755)
        return {
            "ansible_host": f"192.0.2.{number}",
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": str(python),
            "ansible_remote_tmp": str(python.parent / "tmp"),
            "sglang_state": str(python.parent / "state"),
        }

    def measure(self, name: str, program: str, *words: str, **more: str) -> Run:
        """Run a program of Ansible on the fleet. Raises SystemExit if it fails."""
        calls = self.folder / "calls"
        calls.write_text("")
        own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(self.folder)}
        environment = {**os.environ, **own, "ANSIBLE_NOCOLOR": "1", **more}
        command = [str(Path(sys.executable).with_name(program)), *words, "-i", str(self.folder / "inventory")]
        before, began = _children(), time.monotonic()
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as run:
            memory = Memory(run.pid)
            said = run.communicate()[0]
            peak = memory.stop()
        wall, cpu = time.monotonic() - began, _children() - before
        if run.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{said[said.find('FAILED!') - 100 :][:4000]}")
        rows = [line.split() for line in calls.read_text().splitlines()]
        sent, back, hosts = (sum(float(row[at]) for row in rows) for at in (2, 3, 4))
        tasks = sum(int(line.split("ok=")[1].split()[0]) for line in said.splitlines() if ": ok=" in line)
        return Run(name, tasks or self.count, len(rows), cpu - hosts, wall, peak, int(sent), int(back), said)


class Memory:
    """Looks every half second at what a process and all below it hold, until it is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak = pid, 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Return the largest sum (bytes)."""
        self._stopped.set()
        self._thread.join()
        return self._peak

    def _look(self) -> None:
        while not self._stopped.wait(0.5):
            self._peak = max(self._peak, sum(_held(pid) for pid in (self._pid, *_below(self._pid))))


def _held(pid: int) -> int:
    """A process's proportional share of memory (bytes); 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _below(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [one for child in map(int, children) for one in (child, *_below(child))]


def _children() -> float:
    """CPU seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(count: int, profile: bool) -> None:
    """Measure one size of fleet, and print it."""
    with tempfile.TemporaryDirectory(prefix="llmfleet-scale-") as folder:
        fleet = Fleet(Path(folder), count)
        ping = fleet.measure("ping", "ansible", "sglang", "-m", "ansible.builtin.ping")
        print(ping.row(count), flush=True)
        cuts = Path(folder, "cutover")
        cuts.touch()
        _print(fleet.measure("cut-over", "ansible-playbook", PLAY), ping, count)
        cuts.unlink()
        more = {"ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks"} if profile else {}
        nothing = fleet.measure("changes nothing", "ansible-playbook", PLAY, **more)
        if nothing.said.count(" changed=0 ") != count:
            raise SystemExit(f"this run changed something, so it measures nothing:\n{nothing.said[-4000:]}")
        _print(nothing, ping, count)
        if profile:
            print(nothing.said[-4000:])


def _print(run: Run, ping: Run, count: int) -> None:
    print(f"{run.row(count)}   CPU {run.cpu / ping.cpu:.1f}, wall {run.wall / ping.wall:.1f} times ping's", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="10,50,100", help="sizes of the fleet")
    parser.add_argument("--profile", action="store_true", help="print where the time went")
    options = parser.parse_args()
    print(_HEAD)
    for count in map(int, options.hosts.split(",")):
        measure(count, options.profile)


if __name__ == "__main__":
    main()
