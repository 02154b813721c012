# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a server out of HAProxy and put it back, over the runtime API (its admin socket). Private to the collection.

HAProxy's management guide, sections 9.1 (CSV) and 9.3 (`set server`, `show servers state`): a server in drain gets no
new requests, and those under way end.
"""

from __future__ import annotations

import csv
import io
import socket
import time
from dataclasses import dataclass
from typing import Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Done, Record

# Bits of srv_admin_state: maintenance of any kind (asked for, inherited, by the configuration, unresolved), and drain.
_MAINTENANCE = 0x01 | 0x02 | 0x04 | 0x20
_DRAIN = 0x08 | 0x10
_ASK_SECONDS = 10.0
_PAUSE = 0.2


@dataclass(frozen=True)
class Server:
    """A server as HAProxy sees it. status: its word (UP, DOWN, DRAIN, MAINT …); sessions: under way and queued."""

    status: str
    sessions: int
    admin: int

    @property
    def up(self) -> bool:
        """Whether it gets requests."""
        return self.status.split(" ")[0] == "UP" or self.status == "no check"


Ask = Callable[[str], str]


def asker(where: str) -> Ask:
    """Return what sends one command to a socket and returns the answer. where: a path, or ADDRESS:PORT.

    What it returns raises BalancerError when nobody answers.
    """

    def ask(command: str) -> str:
        unix = where.startswith("/")
        address: str | tuple[str, int] = where
        if not unix:
            name, _colon, port = where.rpartition(":")
            address = (name.strip("[]"), int(port) if port.isdigit() else 0)
        try:
            family = socket.AF_UNIX if unix else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(_ASK_SECONDS)
                connection.connect(address)
                connection.sendall(f"{command}\n".encode())
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8", "replace").strip()
        except OSError as error:
            raise BalancerError(
                f"HAProxy does not answer at {where} ({error}): its configuration needs `stats socket … level admin`"
            ) from None

    return ask


def look(ask: Ask, backend: str, server: str) -> Server:
    """Return how a server is. Raises BalancerError when there is none of that name."""
    status = _rows(ask("show stat").removeprefix("# "), ",")
    states = _rows(ask(f"show servers state {backend}").partition("# ")[2], " ")
    ours = [row for row in status if (row.get("pxname"), row.get("svname")) == (backend, server)]
    admin = [row["srv_admin_state"] for row in states if row.get("srv_name") == server]
    if not ours or not admin:
        known = ", ".join(f"{row['pxname']}/{row['svname']}" for row in status if _is_server(row))
        raise BalancerError(f"HAProxy has no server {backend}/{server}. It has {known or 'none'}")
    sessions = int(ours[0]["scur"] or 0) + int(ours[0]["qcur"] or 0)
    return Server(ours[0]["status"], sessions, int(admin[0]))


def _rows(text: str, delimiter: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def _is_server(row: dict[str, str]) -> bool:
    return bool(row.get("svname")) and row["svname"] not in ("FRONTEND", "BACKEND")


@dataclass(frozen=True)
class Place:
    """One server of one HAProxy, and the record of what is out by our doing there. timeout: seconds of each wait."""

    ask: Ask
    record: Record
    backend: str
    server: str
    timeout: float

    @property
    def name(self) -> str:
        """The server's name in commands and in the record."""
        return f"{self.backend}/{self.server}"

    def look(self) -> Server:
        """How it is now."""
        return look(self.ask, self.backend, self.server)

    def set(self, state: str) -> None:
        """Tell HAProxy the server's state; it says something only when it refuses."""
        answer = self.ask(f"set server {self.name} state {state}")
        if answer:
            raise BalancerError(f"HAProxy refuses to set {self.name} to {state}: {answer}")

    def wait(self, done: Callable[[Server], bool], what: str) -> Server:
        """Look until it is so; raises BalancerError after the timeout."""
        deadline = time.monotonic() + self.timeout
        while not done(now := self.look()):
            if time.monotonic() >= deadline:
                raise BalancerError(
                    f"{self.name} {what} after {self.timeout:g} s: it is {now.status}, with {now.sessions} sessions"
                )
            time.sleep(_PAUSE)
        return now


def drain(place: Place, check: bool = False) -> Done:
    """Let a server get no new requests, and wait until it has none. What others have taken out is left alone."""
    now = place.look()
    ours = place.name in place.record.read()
    if not ours and now.admin & (_MAINTENANCE | _DRAIN):
        return Done(False, False, f"{place.name} is {now.status} by somebody else's doing, and stays so.")
    changed = not now.admin & (_MAINTENANCE | _DRAIN)
    if check:
        return Done(changed, ours, f"{place.name} would be drained.")
    place.record.note(place.name, {})
    if changed:
        place.set("drain")
    place.wait(lambda seen: seen.sessions == 0, "still has requests under way")
    return Done(changed, True, f"{place.name} is drained and has no requests under way.")


def ready(place: Place, check: bool = False) -> Done:
    """Put back a server that we have drained, and wait until it gets requests; any other is left alone."""
    if place.name not in place.record.read():
        return Done(False, False, f"{place.name} was not drained by us.")
    now = place.look()
    if now.admin & _MAINTENANCE:
        if not check:
            place.record.forget(place.name)
        return Done(False, False, f"{place.name} is {now.status} by somebody else's doing, and stays so.")
    if check:
        return Done(True, True, f"{place.name} would be put back.")
    if now.admin & _DRAIN:
        place.set("ready")
    place.wait(lambda seen: seen.up, "gets no requests yet")
    place.record.forget(place.name)
    return Done(True, False, f"{place.name} gets requests again.")
