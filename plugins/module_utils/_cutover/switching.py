# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What putting a unit in force comes to: its bytes, its API key, and which services a reboot starts. Private."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import links, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import settle

_A_KEY, _OTHER_KEY = "(an API key)\n", "(another API key)\n"


@dataclass(frozen=True)
class Key:
    """The API key's file. place: where the unit has systemd read it; wanted: None for a unit that asks for none."""

    place: Path
    wanted: File | None

    @property
    def changes(self) -> bool:
        """Tell whether what lies there is not what is wanted."""
        return File.read(self.place) != self.wanted

    def remove(self) -> None:
        """Take away a key that no unit asks for any more."""
        if self.wanted is None and self.place.exists():
            self.place.unlink()
            settle(self.place.parent)

    def diff(self) -> dict[str, str]:
        """Return the diff, without any key in it."""
        there = File.read(self.place) is not None
        after = "" if self.wanted is None else _OTHER_KEY if there and self.changes else _A_KEY
        return _headed(str(self.place), _A_KEY if there else "", after)


@dataclass(frozen=True)
class Switch:
    """What is to be done. staged: whether the wanted unit is prepared, as in a first check run it is not.

    others: the services that it takes the place of, and whether a reboot starts each now; key: None leaves it as it is.
    """

    before: UnitFiles
    wanted: UnitFiles
    staged: bool
    enabled: bool
    others: dict[str, bool]
    key: Key | None

    @property
    def disables(self) -> list[str]:
        """The services that a reboot starts now and shall not start any more."""
        return [name for name, enabled in self.others.items() if enabled]

    @property
    def changes(self) -> bool:
        """Tell whether anything is not as it is wanted."""
        new_key = self.key is not None and self.key.changes
        return self.wanted != self.before or not self.enabled or bool(self.disables) or new_key

    def carry_out(self) -> None:
        """Do it. Raises OSError and UnitError."""
        if self.key is not None and self.key.wanted is not None:
            self.key.wanted.write(self.key.place)
        if self.wanted.write():
            units.systemctl("daemon-reload")
        links.switch({self.wanted.name: links.of_install(self.wanted)}, self.disables)
        if self.key is not None:  # not before: the unit until now does not start without it
            self.key.remove()

    def diffs(self) -> list[dict[str, str]]:
        """Return what Ansible shows: the unit, which services a reboot starts, and the key if it changes."""
        after = _text(self.wanted) if self.staged else "(the prepared unit)\n"
        name = self.wanted.name
        boot = _boot({name: self.enabled, **self.others}), _boot({name: True, **dict.fromkeys(self.others, False)})
        found = [_headed(f"{units.UNITS / name}.service", _text(self.before), after), _headed("after a reboot", *boot)]
        return [*found, *([self.key.diff()] if self.key is not None and self.key.changes else [])]


def hindrance(name: str, adopt: bool, others: list[str]) -> str:
    """Return why a unit must not be put in force in the place of others; empty when it may."""
    before = UnitFiles.read(name)
    if before.unit is not None and not before.ours and not adopt:
        return (
            f"{before.path} was not made by this collection, so it is left alone. To take it over, "
            f"add {name} to sglang_adopt: it is kept byte for byte and comes back on rollback or uninstall."
        )
    for other in others:
        if fixed := links.fixed(other):
            return (
                f"{other}.service would start after every reboot beside {name}.service, for {fixed[0]} was "
                "made by a package or a generator and cannot be taken away. Nothing was stopped. Take the service "
                "out of what made that link (of a Podman container, its [Install] section), then deploy again."
            )
    return ""


def plan(name: str, prepared: File | None, key: Key | None, others: list[str]) -> Switch:
    """Look at what there is to do. prepared: the unit; others: the services that it takes the place of.

    Drop-ins of a foreign unit would act on ours, so they go; ours stay.
    """
    before = UnitFiles.read(name)
    unit = File(prepared.content) if prepared else None
    wanted = UnitFiles(name, unit, before.drop_ins if before.ours else {})
    enabled = {other: units.enabled(other) for other in others}
    return Switch(before, wanted, prepared is not None, units.enabled(name), enabled, key)


def _text(files: UnitFiles) -> str:
    return files.unit.content.decode(errors="replace") if files.unit else ""


def _boot(enabled: dict[str, bool]) -> str:
    return "".join(f"{name}.service: {'enabled' if on else 'not enabled'}\n" for name, on in enabled.items())


def _headed(header: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": header, "after_header": header, "before": before, "after": after}
