# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host made of a folder: /proc, systemd and nvidia-smi, with a clock that only moves when somebody sleeps."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import Process

CARD = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def kernel_address(address: str) -> str:
    """An address as /proc/net/tcp prints it."""
    packed = ipaddress.ip_address(address).packed
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


class FakeHost:
    """Change it freely; `at` schedules a change for a later time of its own clock."""

    def __init__(self, root: Path, cards: int = 2) -> None:
        self.root = root
        self.proc = str(root / "proc")
        self.now = 0.0
        self.cards = cards
        self.card_total = 97887
        self.orders: list[list[str]] = []
        self.units: dict[str, dict[str, str]] = {}
        self.gpu_memory: dict[int, int] = {}
        self.gpu_cards: dict[int, tuple[int, ...]] = {}  # of a process that is not on every card
        self.stray_memory = 0
        self.gpu_problem = ""
        self.bus_problem = ""
        self.refuses = ""
        self.journal = ["loading weights", "RuntimeError: missing shard"]
        self.loads: dict[int, tuple[str, str]] = {}
        self.shm = str(root / "shm")
        self.on_stop: Callable[[], None] = lambda: None
        self.on_kill: Callable[[], None] = lambda: None
        self.signals: list[tuple[int, int]] = []
        self._events: list[tuple[float, Callable[[], None]]] = []
        self._sockets: dict[int, list[tuple[str, int]]] = {}
        self._connections: list[tuple[str, int]] = []
        (root / "proc" / "net").mkdir(parents=True)
        (root / "shm").mkdir()
        self._write_sockets()

    # processes -------------------------------------------------------------------------------------------------

    def add_process(
        self,
        pid: int,
        command: str = "python3 -m sglang.launch_server",
        unit: str = "",
        ppid: int = 1,
        start: int = 1000,
        env: dict[str, str] | None = None,
        listens: Sequence[tuple[str, int]] = (),
        gpu: int = 0,
        state: str = "S",
    ) -> None:
        folder = Path(self.proc) / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        zeros = " ".join(["0"] * 17)
        (folder / "stat").write_text(f"{pid} (python3 (x) y) {state} {ppid} {zeros} {start} 0 0\n")
        slice_of = f"/system.slice/{unit}" if unit else "/user.slice/user-1000.slice/session-1.scope"
        (folder / "cgroup").write_text(f"1:name=systemd:/\n0::{slice_of}\n")
        (folder / "environ").write_bytes(
            b"".join(f"{name}={value}".encode() + b"\0" for name, value in (env or {}).items())
        )
        for number, (_address, port) in enumerate(listens):
            (folder / "fd" / str(3 + number)).symlink_to(f"socket:[{pid * 100000 + port}]")
        self._sockets[pid] = list(listens)
        if gpu:
            self.gpu_memory[pid] = gpu
        self._write_sockets()

    def remove_process(self, pid: int) -> None:
        shutil.rmtree(Path(self.proc) / str(pid))
        self._sockets.pop(pid)
        self.gpu_memory.pop(pid, None)
        self._write_sockets()

    def _write_sockets(self) -> None:
        head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        lines: dict[int, str] = {4: head, 6: head}
        for pid, listens in self._sockets.items():
            for address, port in listens:
                version = ipaddress.ip_address(address).version
                inode = pid * 100000 + port
                lines[version] += (
                    f"   0: {kernel_address(address)}:{port:04X} 00000000:0000 0A 0:0 00:0 0 0 0 {inode} 1 0\n"
                )
        for address, port in self._connections:
            lines[4] += f"   1: {kernel_address(address)}:{port:04X} 00000000:9999 01 0:0 00:0 0 0 0 1 1 0\n"
        (Path(self.proc) / "net" / "tcp").write_text(lines[4])
        (Path(self.proc) / "net" / "tcp6").write_text(lines[6])

    def connect(self, *connections: tuple[str, int]) -> None:
        """These connections to local ports are open, and no others."""
        self._connections = list(connections)
        self._write_sockets()

    def add_segment(self, name: str, *pids: int, opened: bool = False) -> Path:
        """A file in /dev/shm that these processes map (or hold open)."""
        path = Path(self.shm) / name
        path.write_bytes(b"x" * 16)
        status = path.stat()
        for pid in pids:
            folder = Path(self.proc) / str(pid)
            device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
            if opened:
                (folder / "fd" / f"9{len(os.listdir(folder / 'fd'))}").symlink_to(path)
            else:
                with (folder / "maps").open("a") as maps:
                    maps.write(
                        f"7f142fccb000-7f142fcd0000 rw-s 00000000 {device} {status.st_ino}      /dev/shm/x (deleted)\n"
                    )
        return path

    def send(self, process: Process, number: int) -> bool:
        """Signals are obeyed at once by SIGKILL alone."""
        self.signals.append((process.pid, number))
        if number == signal.SIGKILL:
            self.remove_process(process.pid)
        return True

    # time ------------------------------------------------------------------------------------------------------

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0, "a loop that does not wait"
        self.now += seconds
        due = [event for event in self._events if event[0] <= self.now]
        self._events = [event for event in self._events if event[0] > self.now]
        for _when, change in sorted(due, key=lambda event: event[0]):
            change()

    def at(self, when: float, change: Callable[[], None]) -> None:
        self._events.append((when, change))

    # commands --------------------------------------------------------------------------------------------------

    def add_unit(self, name: str, active: str = "active", main_pid: int = 0, **properties: str) -> None:
        self.units[name] = {
            "LoadState": "loaded",
            "ActiveState": active,
            "SubState": "running" if active == "active" else "dead",
            "UnitFileState": "enabled",
            "MainPID": str(main_pid),
            "NRestarts": "0",
            "Result": "success",
            **properties,
        }

    def run(self, argv: Sequence[str], timeout: float) -> Outcome:
        key = tuple(argv)
        if argv[0] == "systemctl":
            if self.bus_problem or (self.refuses and self.refuses in argv):
                return Outcome(key, 1, "", self.bus_problem or "Access denied")
            return Outcome(key, *self._systemctl(list(argv)))
        if argv[0] == "nvidia-smi":
            return self._nvidia_smi(key)
        if argv[0] == "journalctl":
            count = next(int(word[8:]) for word in argv if word.startswith("--lines="))
            return Outcome(key, 0, "".join(f"{line}\n" for line in self.journal[-count:]))
        return Outcome(key, None, problem="missing")

    def _systemctl(self, argv: list[str]) -> tuple[int, str]:
        name = argv[-1]
        unit = self.units.get(name)
        if "show" in argv:
            shown = unit or {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead"}
            return 0, "".join(f"{key}={value}\n" for key, value in shown.items())
        if "is-active" in argv:
            return (0 if unit and unit["ActiveState"] == "active" else 3), ""
        self.orders.append([word for word in argv if word != "--no-ask-password"])
        if "stop" in argv and not unit:
            return 5, f"Failed to stop {name}: Unit {name} not loaded."
        if "stop" in argv and unit:
            unit.update(ActiveState="deactivating", SubState="stop-sigterm")
            self.on_stop()
        if "kill" in argv and unit:
            self.on_kill()
        if "reset-failed" in argv and unit and unit["ActiveState"] == "failed":
            unit["ActiveState"] = "inactive"
        if "disable" in argv and unit and (unit["UnitFileState"] == "enabled-runtime") == ("--runtime" in argv):
            unit["UnitFileState"] = "disabled"
        return 0, ""

    def _nvidia_smi(self, key: tuple[str, ...]) -> Outcome:
        if self.gpu_problem in ("missing", "hung"):
            return Outcome(key, None, problem=self.gpu_problem)
        if self.gpu_problem:
            return Outcome(key, 9, self.gpu_problem)
        if "--query" not in " ".join(key):
            return Outcome(key, 0, "CUDA Version : 13.0\n" if "--version" in key else "")
        if "--query-compute-apps" in key[1]:
            rows = [
                f"{pid}, {self.uuid(card)}, {memory}, python3, with a comma"
                for pid, memory in self.gpu_memory.items()
                for card in self.gpu_cards.get(pid, range(self.cards))
            ]
            return Outcome(key, 0, "\n".join(rows) + "\n")
        values = {"compute_cap": "12.0", "name": CARD, "memory.total": self.card_total}
        rows = []
        for card in range(self.cards):
            held = [size for pid, size in self.gpu_memory.items() if card in self.gpu_cards.get(pid, (card,))]
            values["memory.used"] = sum(held) + self.stray_memory
            row = {"index": card, "uuid": self.uuid(card), "mig.mode.current": "Disabled", **values}
            if card in self.loads:
                row |= {
                    "utilization.gpu": self.loads[card][0],
                    "power.draw": self.loads[card][1],
                    "power.limit": "600.00",
                }
            rows.append(", ".join(str(row.get(name, "[N/A]")) for name in key[1].partition("=")[2].split(",")))
        return Outcome(key, 0, "\n".join(rows) + "\n")

    @staticmethod
    def uuid(card: int) -> str:
        return f"GPU-0000-{card}"
