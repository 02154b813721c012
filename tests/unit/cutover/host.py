# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for the tests of this folder: unit files in a temporary folder, and a systemctl that only remembers."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import Unit

FOREIGN = b"[Unit]\nDescription=by hand  \r\n[Service]\nExecStart=/opt/kimi/run.sh\n"


def ours(instance: str = "qwen", state: str = "1") -> bytes:
    """The bytes of a unit of ours."""
    return f"[Unit]\nX-Llmfleet={instance}\n[Service]\nEnvironment=LLMFLEET_STATE={state}\n".encode()


class Systemd:
    """Stands in for systemctl: which services are enabled and active, and all that it was told."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.active: set[str] = set()
        self.states: dict[str, str] = {}
        self.runs: dict[str, str | None] = {}  # the state that a service's main process was started with
        self.told: list[tuple[str, ...]] = []

    def __call__(self, *words: str, must: bool = True, timeout: float = 300) -> str:
        self.told.append(words)
        verb, name = words[0], words[-1].removesuffix(".service")
        if verb == "is-enabled":
            return "enabled" if name in self.enabled else "disabled"
        if verb == "is-active":
            return self.states.get(name) or ("active" if name in self.active else "inactive")
        if verb == "enable":
            self.enabled.add(name)
        if verb == "disable":
            self.enabled.discard(name)
        if verb == "start":
            self.active.add(name)
        return ""

    def read(self, name: str) -> Unit:
        """What runs, in place of `systemctl show` and /proc."""
        runs = name in self.active
        return Unit("loaded", "active" if runs else "inactive", "", "", 100 * runs, "", "", 0, self.runs.get(name))


class Host:
    """A host on which a foreign sglang-kimi serves and comes back after a reboot."""

    def __init__(self, folder: Path, systemd: Systemd) -> None:
        self.systemd = systemd
        self.units, self.state, self.releases = folder / "units", folder / "state", folder / "releases"
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
    fake = Systemd()
    host = Host(folder, fake)
    monkeypatch.setattr(units, "systemctl", fake)
    monkeypatch.setattr(systemd, "read", fake.read)
    read, write = UnitFiles.read.__func__, UnitFiles.write  # type: ignore[attr-defined]
    monkeypatch.setattr(UnitFiles, "read", classmethod(lambda cls, name: read(cls, name, host.units)))
    monkeypatch.setattr(UnitFiles, "write", lambda self: write(self, host.units))
    return host
