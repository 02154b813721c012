# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit files as bytes: read, told apart, written and put back. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import base64
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put, settle
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd

MARKER = b"X-Llmfleet="
UNITS = Path("/etc/systemd/system")
ENABLED = ("enabled", "enabled-runtime")
# Where else systemd finds units, by precedence (systemd.unit(5)): what others made, so never written to.
ELSEWHERE = tuple(
    Path(one)
    for one in (
        "/run/systemd/transient",
        "/run/systemd/system",
        "/run/systemd/generator",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
        "/run/systemd/generator.late",
    )
)


class UnitError(RuntimeError):
    """systemd refused, or a unit is not ours to touch; the message says which."""


@dataclass(frozen=True)
class File:
    """A file's bytes and mode (the permission bits)."""

    content: bytes
    mode: int = 0o644

    def as_dict(self) -> dict[str, Any]:
        """Return the file as JSON holds it."""
        return {"content": base64.b64encode(self.content).decode("ascii"), "mode": self.mode}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> File:
        """Read what `as_dict` wrote."""
        return cls(base64.b64decode(value["content"]), int(value["mode"]))

    @classmethod
    def read(cls, path: Path) -> File | None:
        """Read a file; None when there is none."""
        try:
            return cls(path.read_bytes(), path.stat().st_mode & 0o7777)
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> bool:
        """Write the file atomically, also in the place of a link, if it is not so already; tell whether it was."""
        if File.read(path) == self and not path.is_symlink():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, self.content, self.mode)
        settle(path.parent)
        return True


def link(path: Path, target: str) -> bool:
    """Make a symbolic link atomically, if it is not so already; tell whether it was made. `settle` its folder then."""
    if path.is_symlink() and os.readlink(path) == target:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    os.symlink(target, temporary)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    return True


@dataclass(frozen=True)
class UnitFiles:
    """A unit with its drop-ins in /etc/systemd/system, by file name; `unit` is None when there is no such file.

    link: where /etc/systemd/system/<name>.service leads to, if it is a symbolic link (`systemctl enable /a/path` makes
    one); place: where the unit lies, if that is not /etc/systemd/system. Two with the same bytes are equal even so.
    """

    name: str
    unit: File | None = None
    drop_ins: dict[str, File] = field(default_factory=dict)
    link: str = field(default="", compare=False)
    place: str = field(default="", compare=False)

    @property
    def ours(self) -> bool:
        """Tell whether this collection made the unit."""
        return self.unit is not None and MARKER in self.unit.content

    @property
    def path(self) -> str:
        """The unit's file."""
        return self.place or str(UNITS / f"{self.name}.service")

    @classmethod
    def read(cls, name: str, units: Path = UNITS) -> UnitFiles:
        """Read a service's unit file, wherever systemd finds it, and its drop-ins."""
        folder, path = units / f"{name}.service.d", units / f"{name}.service"
        names = sorted(one.name for one in folder.glob("*.conf")) if folder.is_dir() else []
        drop_ins = {one: found for one in names if (found := File.read(folder / one))}
        link_to = os.readlink(path) if path.is_symlink() else ""
        unit = File.read(path)
        if unit is not None:
            return cls(name, unit, drop_ins, link_to)
        for other in (one / path.name for one in ELSEWHERE):
            if (unit := File.read(other)) is not None:
                return cls(name, unit, drop_ins, link_to, str(other))
        return cls(name, None, drop_ins, link_to)

    def in_force(self, present: UnitFiles) -> bool:
        """Tell whether `present` is this. What lies elsewhere is what its owner, a package say, makes of it."""
        same_place = self.unit is not None and present.unit is not None and self.place == present.place != ""
        return self == present or (same_place and self.drop_ins == present.drop_ins)

    def write(self, units: Path = UNITS) -> bool:
        """Make the unit file and its drop-ins what they are here, byte for byte; tell whether anything changed."""
        folder = units / f"{self.name}.service.d"
        changed = False
        for extra in sorted(folder.glob("*.conf")) if folder.is_dir() else []:
            if extra.name not in self.drop_ins:
                extra.unlink()
                changed = True
        for name, file in self.drop_ins.items():
            changed |= file.write(folder / name)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        return self._write_unit(units / f"{self.name}.service") or changed

    def _write_unit(self, path: Path) -> bool:
        """A link comes back as a link while it leads to the same bytes, and what lay elsewhere by making way for it."""
        kept_elsewhere = bool(self.place) and File.read(Path(self.place)) is not None
        if self.unit is not None and not kept_elsewhere and not self._leads(path):
            return self.unit.write(path)
        changed = os.path.lexists(path)
        if self.link:
            changed = link(path, self.link)
        elif changed:
            path.unlink()
        if changed:
            settle(path.parent)
        return changed

    def _leads(self, path: Path) -> bool:
        found = File.read(path.parent / self.link) if self.link else None
        return found is not None and self.unit is not None and found.content == self.unit.content

    def as_dict(self) -> dict[str, Any]:
        """Return the unit as JSON holds it."""
        return {
            "name": self.name,
            "unit": self.unit.as_dict() if self.unit else None,
            "drop_ins": {name: file.as_dict() for name, file in self.drop_ins.items()},
            "link": self.link,
            "place": self.place,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> UnitFiles:
        """Read what `as_dict` wrote, now or before it kept links and places."""
        unit = File.from_dict(value["unit"]) if value["unit"] else None
        drop_ins = {name: File.from_dict(one) for name, one in value["drop_ins"].items()}
        return cls(value["name"], unit, drop_ins, str(value.get("link", "")), str(value.get("place", "")))


def systemctl(*words: str, must: bool = True, timeout: float = 300) -> str:
    """Run systemctl and return what it printed. Raises UnitError when it has to succeed and does not.

    timeout: seconds. It raises UnitError too when systemctl gives no answer, whether it has to succeed or not.
    """
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=timeout, check=must)
    except (OSError, subprocess.SubprocessError) as error:
        raise _refused(words, error) from error
    return done.stdout.strip()


def look(name: str) -> systemd.Unit:
    """Return what systemd says of a service. Raises UnitError when it says nothing."""
    try:
        return systemd.read(name)
    except (OSError, subprocess.SubprocessError) as error:
        raise _refused(("show", f"{name}.service"), error) from error


def _refused(words: tuple[str, ...], error: OSError | subprocess.SubprocessError) -> UnitError:
    asked = f"`systemctl {' '.join(words)}`"
    if isinstance(error, subprocess.TimeoutExpired):
        return UnitError(f"{asked} gave no answer in {error.timeout:.0f} s")
    if isinstance(error, subprocess.CalledProcessError):
        return UnitError(f"{asked} failed: {(error.stderr or error.stdout or '').strip()}")
    return UnitError(f"{asked} gave no answer: {error}")


def enabled(name: str) -> bool:
    """Tell whether the service comes back after a reboot."""
    return systemctl("is-enabled", f"{name}.service", must=False) in ENABLED


def active(name: str) -> bool:
    """Tell whether the service runs, is about to, or waits to be started again after a failure."""
    return look(name).up
