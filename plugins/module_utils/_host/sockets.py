# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who listens on which TCP port. PRIVATE to the collection."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from .proc import PROC, Process

ESTABLISHED = "01"
LISTEN = "0A"


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket; `pid` is 0 when its owner could not be seen (another user's, without root)."""

    address: str
    port: int
    inode: int
    pid: int = 0
    command: str = ""
    unit: str = ""

    def describe(self) -> str:
        who = f"pid {self.pid} ({self.command})" if self.pid else "a process that could not be seen"
        unit = f", unit {self.unit}" if self.unit else ""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"port {self.port} on {host}: {who}{unit}"


def parse_listeners(text: str) -> list[Listener]:
    """The listening sockets in a text of /proc/net/tcp or /proc/net/tcp6."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != LISTEN:
            continue
        address, _colon, port = fields[1].partition(":")
        found.append(Listener(_address(address), int(port, 16), int(fields[9])))
    return found


def _address(text: str) -> str:
    # The kernel prints each 32-bit word of the address in its own byte order.
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(words) == 1:
        return str(ipaddress.IPv4Address(packed))
    address = ipaddress.IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def conflicts(listener: Listener, address: str) -> bool:
    """Whether a server could not bind `address` on the listener's port because of it.

    An empty `address`, or a name instead of a number, is taken to collide with every address.
    """
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError:
        return True
    held = ipaddress.ip_address(listener.address)
    if held.is_unspecified or wanted.is_unspecified:
        # A socket bound to :: takes IPv4 too unless it was told not to; 0.0.0.0 never takes IPv6.
        return held.version == wanted.version or 6 in (
            held.version if held.is_unspecified else 0,
            wanted.version if wanted.is_unspecified else 0,
        )
    return held == wanted


def read_listeners(ports: Collection[int] | None = None, proc: str = PROC) -> list[Listener]:
    """The listening sockets (of these ports only, if any are given), owners not yet looked up."""
    found = [listener for text in _tables(proc) for listener in parse_listeners(text)]
    return [listener for listener in found if ports is None or listener.port in ports]


def _tables(proc: str) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        try:
            with open(f"{proc}/net/{name}", encoding="ascii") as handle:
                yield handle.read()
        except OSError:
            continue


def parse_established(text: str) -> list[int]:
    """The local port of each established connection in a text of /proc/net/tcp or /proc/net/tcp6."""
    rows = (line.split() for line in text.splitlines()[1:])
    return [int(row[1].rpartition(":")[2], 16) for row in rows if len(row) >= 10 and row[3] == ESTABLISHED]


def count_established(ports: Collection[int], proc: str = PROC) -> int:
    """How many connections to these local ports are open now."""
    return sum(port in ports for text in _tables(proc) for port in parse_established(text))


def with_owners(listeners: Iterable[Listener], processes: dict[int, Process], proc: str = PROC) -> list[Listener]:
    """The same sockets with pid, command and unit of the processes that hold them (one entry for each)."""
    wanted = {listener.inode: listener for listener in listeners}
    if not wanted:
        return []
    owned: list[Listener] = []
    seen: set[int] = set()
    for process in processes.values():
        for inode in _socket_inodes(process.pid, proc) & set(wanted):
            one = wanted[inode]
            seen.add(inode)
            owned.append(Listener(one.address, one.port, inode, process.pid, process.command, process.unit))
    return owned + [listener for inode, listener in wanted.items() if inode not in seen]


def _socket_inodes(pid: int, proc: str) -> set[int]:
    folder = f"{proc}/{pid}/fd"
    inodes: set[int] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return inodes
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(int(target[8:-1]))
    return inodes


def bind_problem(address: str) -> str:
    """Why a server could not listen on this address at all (a free port is tried), or an empty string."""
    try:
        family, kind, proto, _name, where = socket.getaddrinfo(
            address, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, proto) as probe:
            probe.bind(where)
    except OSError as error:
        return error.strerror or str(error)
    return ""
