# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and what its main process was started with. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

STATE_VARIABLE = "LLMFLEET_STATE"
_UP = ("active", "activating", "reloading")
_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "UnitFileState",
    "FragmentPath",
    "NRestarts",
)


@dataclass(frozen=True)
class Unit:
    """A unit as `systemctl show` reports it; `running_state` is None unless its main process carries one of ours."""

    load: str
    active: str
    sub: str
    result: str
    main_pid: int
    file_state: str
    fragment: str
    restarts: int
    running_state: str | None

    @property
    def exists(self) -> bool:
        """Tell whether systemd knows a unit file for it."""
        return self.load not in ("not-found", "")

    @property
    def up(self) -> bool:
        """Tell whether it runs, is about to, or waits to be started again after a failure."""
        return self.active in _UP

    @property
    def active_or_starting(self) -> bool:
        """Tell whether it runs, or is about to; not while systemd only waits to start it again after a failure."""
        return self.up and not self.sub.startswith("auto-restart")

    @property
    def enabled(self) -> bool:
        """Tell whether it comes back after a reboot."""
        return self.file_state in ("enabled", "enabled-runtime")


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0  # "[not set]" for a unit that was never loaded


def parse_show(text: str, running_state: str | None = None) -> Unit:
    """Read the output of `systemctl show` (KEY=VALUE lines)."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return Unit(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        main_pid=_number(values.get("MainPID", "")),
        file_state=values.get("UnitFileState", ""),
        fragment=values.get("FragmentPath", ""),
        restarts=_number(values.get("NRestarts", "")),
        running_state=running_state,
    )


def environment_value(environ: bytes, name: str) -> str | None:
    """Find a variable in the bytes of /proc/PID/environ."""
    prefix = name.encode() + b"="
    for entry in environ.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode(errors="replace")
    return None


def read(name: str, proc: str = "/proc") -> Unit:
    """Ask systemd about `name`.service. Raises subprocess.CalledProcessError when systemd cannot be asked."""
    command = ["systemctl", "show", *(f"--property={one}" for one in _PROPERTIES), f"{name}.service"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    unit = parse_show(shown)
    if unit.main_pid == 0:
        return unit
    try:
        with open(os.path.join(proc, str(unit.main_pid), "environ"), "rb") as file:
            state = environment_value(file.read(), STATE_VARIABLE)
    except (FileNotFoundError, ProcessLookupError):  # it ended in between
        state = None
    return parse_show(shown, state)


def why_restart(unit: Unit, wanted: str) -> str:
    """Say why the unit has to be (re)started to run `wanted`; "" when it runs that already."""
    if not unit.exists:
        return "the unit is not there yet"
    if not unit.active_or_starting:
        return why_start(unit)
    if unit.running_state != wanted:
        return f"it runs state {(unit.running_state or 'none of ours')[:12]}, and {wanted[:12]} is wanted"
    return ""


def why_not_start(name: str, unit: Unit, others: Mapping[str, Unit]) -> str:
    """Say what stands against starting a service as it was last deployed, and the next step; "" when nothing does.

    others: by name, the services that it would have to share cards and port with.
    """
    if not unit.exists:
        return (
            f"There is no {name}.service on this host, and nothing was started. Deploy it: "
            "ansible-playbook llmfleet.sglang.deploy."
        )
    running = [other for other, seen in others.items() if other != name and seen.up]
    if running:
        return (
            f"{', '.join(running)} serves on this host, and nothing was started. Stop it with llmfleet.sglang.stop and "
            f"its own profile, or have {name} take its place: llmfleet.sglang.deploy."
        )
    return ""


def why_start(unit: Unit) -> str:
    """Say why a service has to be started to run as it was last deployed; "" when it runs."""
    if unit.active_or_starting:
        return ""
    return f"the unit is {unit.active or 'unknown'}" + (f" ({unit.sub})" if unit.active == "activating" else "")
