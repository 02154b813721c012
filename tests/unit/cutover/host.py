# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for the tests of this folder: unit files and links in a temporary folder, and a systemctl that reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import links, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import Unit

INSTALL = "[Install]\nWantedBy=multi-user.target\n"
FOREIGN = b"[Unit]\nDescription=by hand  \r\n[Service]\nExecStart=/opt/kimi/run.sh\n" + INSTALL.encode()


def ours(instance: str = "qwen", state: str = "1") -> bytes:
    """The bytes of a unit of ours."""
    return f"[Unit]\nX-Llmfleet={instance}\n[Service]\nEnvironment=LLMFLEET_STATE={state}\n{INSTALL}".encode()


class Systemd:
    """Stands in for systemctl: which services are enabled, by links on the disk, and active, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.active: set[str] = set()
        self.states: dict[str, str] = {}
        self.waiting: set[str] = set()  # failed, and to be started again after a while
        self.runs: dict[str, str | None] = {}  # the state that a service's main process was started with
        self.told: list[tuple[str, ...]] = []

    @property
    def enabled(self) -> set[str]:
        """The services that some target wants."""
        return {path.stem for path in self.folder.glob("*.wants/*.service")}

    @enabled.setter
    def enabled(self, names: Iterable[str]) -> None:
        for path in self.folder.glob("*.wants/*.service"):
            path.unlink()
        for name in names:
            self.want(name)

    def want(self, name: str, target: str = "multi-user.target", leads: str = "") -> Path:
        """Enable a service as `systemctl enable` or `ln -s` does."""
        path = self.folder / f"{target}.wants" / f"{name}.service"
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(leads or self.folder / path.name)
        return path

    def __call__(self, *words: str, must: bool = True, timeout: float = 300) -> str:
        self.told.append(words)
        verb, name = words[0], words[-1].removesuffix(".service")
        unit = UnitFiles.read(name).unit
        if verb == "is-enabled":
            return "enabled" if name in self.enabled else "disabled" if unit else "not-found"
        if verb == "is-active":
            return self.states.get(name) or ("active" if name in self.active else "inactive")
        if verb == "show":
            return "loaded" if unit else "not-found"
        if verb in ("enable", "start", "restart") and unit is None:
            raise UnitError(f"Unit file {name}.service does not exist")
        if verb == "enable" and unit is not None and INSTALL.encode() in unit.content:
            self.want(name)
        if verb in ("start", "restart"):
            self.active.add(name)
            self.waiting.discard(name)
        return ""

    def read(self, name: str) -> Unit:
        """What runs, in place of `systemctl show` and /proc."""
        runs, waits = name in self.active, name in self.waiting
        active = "activating" if waits else self.states.get(name) or ("active" if runs else "inactive")
        sub = "auto-restart" if waits else ""
        return Unit("loaded", active, sub, "", 100 * runs, "", "", 0, self.runs.get(name))


class Host:
    """A host on which a foreign sglang-kimi serves and comes back after a reboot."""

    def __init__(self, folder: Path, systemd: Systemd) -> None:
        self.systemd = systemd
        self.units, self.state, self.releases = folder / "units", folder / "state", folder / "releases"
        self.elsewhere = folder / "lib"
        self.units.mkdir()
        self.put("sglang-kimi", FOREIGN)
        (self.units / "sglang-kimi.service.d").mkdir()
        (self.units / "sglang-kimi.service.d" / "10-limits.conf").write_bytes(b"[Service]\nLimitNOFILE=4096\n")
        self.serves("sglang-kimi")

    def put(self, name: str, content: bytes) -> None:
        """Write a unit file."""
        (self.units / f"{name}.service").write_bytes(content)

    def unit(self, name: str) -> bytes | None:
        """Read a unit file."""
        path = self.units / f"{name}.service"
        return path.read_bytes() if path.exists() else None

    def serves(self, *names: str) -> None:
        """Let these services be the only ones that run and are enabled."""
        self.systemd.enabled, self.systemd.active = set(names), set(names)

    def build(self, *releases: str) -> None:
        """Finish releases."""
        for release in releases:
            (self.releases / release).mkdir(parents=True, exist_ok=True)
            (self.releases / release / "release.json").write_text("{}")


def make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Put the host in the place of the real one."""
    fake = Systemd(folder / "units")
    host = Host(folder, fake)
    monkeypatch.setattr(units, "systemctl", fake)
    monkeypatch.setattr(units, "UNITS", host.units)
    monkeypatch.setattr(units, "ELSEWHERE", (host.elsewhere,))
    monkeypatch.setattr(links, "RUNTIME", folder / "run")
    monkeypatch.setattr(systemd, "read", fake.read)
    read, write = UnitFiles.read.__func__, UnitFiles.write  # type: ignore[attr-defined]
    monkeypatch.setattr(UnitFiles, "read", classmethod(lambda cls, name: read(cls, name, host.units)))
    monkeypatch.setattr(UnitFiles, "write", lambda self: write(self, host.units))
    return host
