# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units as `systemctl show` tells them. PRIVATE to the collection."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass

from .command import Outcome, Runner

PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "FragmentPath",
    "MainPID",
    "ControlGroup",
    "InvocationID",
    "NRestarts",
    "Result",
    "ExecMainStatus",
    "TimeoutStopUSec",
    "KillMode",
    "TriggeredBy",
    "Job",
    "InactiveExitTimestampMonotonic",
)

ENABLED = ("enabled", "enabled-runtime")
LONGEST_LINE = 2000

NAME = re.compile(r"[A-Za-z0-9:_.@\\-]+")


class SystemdError(Exception):
    """systemd could not be asked, or refused; the text is meant for the operator."""


@dataclass(frozen=True)
class Unit:
    """The state of one unit, in systemd's own words."""

    name: str
    load: str = "not-found"
    active: str = "inactive"
    sub: str = "dead"
    file_state: str = ""
    fragment: str = ""
    main_pid: int = 0
    cgroup: str = ""
    invocation: str = ""
    restarts: int = 0
    result: str = ""
    exit_status: str = ""
    stop_timeout: str = ""
    kill_mode: str = ""
    triggered_by: tuple[str, ...] = ()
    job: str = ""
    started: float = 0.0
    """When it last left the inactive state, in seconds since boot; 0 if it never did."""

    @property
    def exists(self) -> bool:
        """Whether systemd knows it: by a unit file, or because it still runs after its file was removed."""
        return self.load not in ("not-found", "") or not self.stopped

    @property
    def stopped(self) -> bool:
        return self.active in ("inactive", "failed") and not self.job

    @property
    def failed(self) -> bool:
        return self.active == "failed"

    @property
    def enabled(self) -> bool:
        return self.file_state in ENABLED

    @property
    def comes_back(self) -> bool:
        """Whether systemd could start it again once it has stopped: a transient unit ends with its process."""
        return self.load == "loaded" and self.file_state != "transient" and os.path.exists(self.fragment)


def unit_name(name: str) -> str:
    """The name with its suffix; ValueError when it cannot be a service's name."""
    full = name if name.endswith(".service") else name + ".service"
    if not NAME.fullmatch(full) or name.startswith("-"):
        raise ValueError(f"{name!r} is not the name of a systemd service")
    return full


def parse_show(name: str, text: str) -> Unit:
    """A unit from the lines of C(systemctl show); a property that is missing keeps its default."""
    values = {key: value for key, _equals, value in (line.partition("=") for line in text.splitlines())}
    return Unit(
        name=name,
        load=values.get("LoadState", "not-found"),
        active=values.get("ActiveState", "inactive"),
        sub=values.get("SubState", "dead"),
        file_state=values.get("UnitFileState", ""),
        fragment=values.get("FragmentPath", ""),
        main_pid=_number(values.get("MainPID", "")),
        cgroup=values.get("ControlGroup", ""),
        invocation=values.get("InvocationID", ""),
        restarts=_number(values.get("NRestarts", "")),
        result=values.get("Result", ""),
        exit_status=values.get("ExecMainStatus", ""),
        stop_timeout=values.get("TimeoutStopUSec", ""),
        kill_mode=values.get("KillMode", ""),
        triggered_by=tuple(values.get("TriggeredBy", "").split()),
        job="" if values.get("Job", "") in ("", "0") else values["Job"],
        started=_number(values.get("InactiveExitTimestampMonotonic", "")) / 1e6,
    )


def show(run: Runner, name: str, timeout: float = 30) -> Unit:
    """Ask systemd for a unit; a unit that it does not know is a Unit that does not exist, not an error."""
    full = unit_name(name)
    outcome = run(["systemctl", "show", "--no-pager", "--property=" + ",".join(PROPERTIES), "--", full], timeout)
    _check(outcome, f"systemd does not answer for {full}")
    return parse_show(full, outcome.stdout)


def order(run: Runner, verb: list[str], name: str, timeout: float = 60) -> None:
    """Give systemd an order (C(stop --no-block), C(disable)); SystemdError when it refuses."""
    full = unit_name(name)
    _check(
        run(["systemctl", "--no-ask-password", *verb, "--", full], timeout),
        f"systemctl {verb[0]} {full} failed",
    )


def triggers(run: Runner, unit: Unit, timeout: float = 30) -> tuple[str, ...]:
    """The units (.path, .socket, .timer) that would start it again: now, or after the next boot."""
    found = []
    for name in unit.triggered_by:
        asked = ["systemctl", "show", "--no-pager", "--property=ActiveState,UnitFileState", "--", name]
        outcome = run(asked, timeout)
        _check(outcome, f"systemd does not answer for {name}")
        trigger = parse_show(name, outcome.stdout)
        if not trigger.stopped or trigger.enabled:
            found.append(name)
    return tuple(found)


def journal(run: Runner, unit: Unit, lines: int, since: float = 0.0, timeout: float = 20) -> list[str]:
    """The last lines that the unit logged, long ones cut; empty if there are none or they cannot be read.

    since: seconds since boot before which nothing counts; 0 asks for the last lines, however old.

    Asked for by unit and not by invocation: the last words of a process that dies at once reach the journal
    without its invocation's id.
    """
    asked = ["journalctl", "--no-pager", "--quiet", "--output=cat", f"--lines={lines}"]
    if since:
        asked.append(f"--since=@{_epoch(since)}")
    outcome = run([*asked, f"--unit={unit.name}"], timeout)
    return [line[:LONGEST_LINE] for line in outcome.stdout.splitlines()] if outcome.ok else []


def _epoch(since: float) -> int:
    """Seconds since boot as seconds since 1970, rounded down, since the journal is asked by whole seconds."""
    return math.floor(time.time() - time.monotonic() + since)


def _check(outcome: Outcome, what: str) -> None:
    if not outcome.ok:
        raise SystemdError(f"{what}: {outcome.describe()}")


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
