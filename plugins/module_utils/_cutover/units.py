# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit files as bytes: read, told apart, written and put back. Private to the collection."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARKER = b"X-Llmfleet="
UNITS = Path("/etc/systemd/system")


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
        """Write the file atomically, if it is not so already; tell whether it was written."""
        if File.read(path) == self:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(self.content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, self.mode)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
        return True


@dataclass(frozen=True)
class UnitFiles:
    """A unit in /etc/systemd/system with its drop-ins, by file name; `unit` is None when there is no such file."""

    name: str
    unit: File | None = None
    drop_ins: dict[str, File] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Tell whether this collection made the unit."""
        return self.unit is not None and MARKER in self.unit.content

    @classmethod
    def read(cls, name: str, units: Path = UNITS) -> UnitFiles:
        """Read a service's unit file and drop-ins."""
        folder = units / f"{name}.service.d"
        names = sorted(path.name for path in folder.glob("*.conf")) if folder.is_dir() else []
        drop_ins = {one: found for one in names if (found := File.read(folder / one))}
        return cls(name, File.read(units / f"{name}.service"), drop_ins)

    def write(self, units: Path = UNITS) -> bool:
        """Make the unit file and its drop-ins what they are here, byte for byte; tell whether anything changed."""
        path, folder = units / f"{self.name}.service", units / f"{self.name}.service.d"
        changed = False
        for extra in sorted(folder.glob("*.conf")) if folder.is_dir() else []:
            if extra.name not in self.drop_ins:
                extra.unlink()
                changed = True
        for name, file in self.drop_ins.items():
            changed |= file.write(folder / name)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        if self.unit is not None:
            changed |= self.unit.write(path)
        elif path.exists():
            path.unlink()
            changed = True
        return changed

    def as_dict(self) -> dict[str, Any]:
        """Return the unit as JSON holds it."""
        return {
            "name": self.name,
            "unit": self.unit.as_dict() if self.unit else None,
            "drop_ins": {name: file.as_dict() for name, file in self.drop_ins.items()},
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> UnitFiles:
        """Read what `as_dict` wrote."""
        unit = File.from_dict(value["unit"]) if value["unit"] else None
        return cls(value["name"], unit, {name: File.from_dict(one) for name, one in value["drop_ins"].items()})


def systemctl(*words: str, must: bool = True, timeout: float = 300) -> str:
    """Run systemctl and return what it printed. Raises UnitError when it has to succeed and does not."""
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnitError(f"`systemctl {' '.join(words)}` gave no answer in {timeout:.0f} s") from error
    if must and done.returncode:
        raise UnitError(f"`systemctl {' '.join(words)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def enabled(name: str) -> bool:
    """Tell whether the service comes back after a reboot."""
    return systemctl("is-enabled", f"{name}.service", must=False) in ("enabled", "enabled-runtime")


def active(name: str) -> bool:
    """Tell whether the service runs or is about to."""
    return systemctl("is-active", f"{name}.service", must=False) in ("active", "activating", "reloading")


def set_enabled(name: str, wanted: bool) -> bool:
    """Enable or disable a service, if it is not so already; tell whether anything changed."""
    if enabled(name) == wanted:
        return False
    systemctl("enable" if wanted else "disable", "--quiet", f"{name}.service")
    return True
