# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host served before a cut-over, kept on the host, so that any controller can bring it back. Private.

A snapshot has a phase. `cutover`: something is under way or died under way; what served before is kept as it is,
whoever comes next. `serving`: the new service answered; the snapshot is what a rollback on demand goes back to.
`restored`: what it holds was brought back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitFiles

SCHEMA = 1
PHASES = ("cutover", "serving", "restored")


@dataclass(frozen=True)
class Service:
    """A service as it was: its files, whether it came back after a reboot, whether it ran."""

    files: UnitFiles
    enabled: bool
    active: bool

    @property
    def name(self) -> str:
        """The service's name, without `.service`."""
        return self.files.name


@dataclass(frozen=True)
class Snapshot:
    """Every service that takes part in a cut-over, as it was before; `others`: files that go with them, by place."""

    instance: str
    phase: str
    taken_at: str
    services: tuple[Service, ...]
    others: tuple[tuple[Path, File | None], ...] = ()

    @property
    def served(self) -> list[str]:
        """The names of the services that ran."""
        return [one.name for one in self.services if one.active]

    def as_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON holds it."""
        return {
            "schema": SCHEMA,
            "instance": self.instance,
            "phase": self.phase,
            "taken_at": self.taken_at,
            "services": [
                {"files": one.files.as_dict(), "enabled": one.enabled, "active": one.active} for one in self.services
            ],
            "others": [{"path": str(path), "file": file.as_dict() if file else None} for path, file in self.others],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Snapshot:
        """Read what `as_dict` wrote. Raises UnitError for another schema."""
        if value.get("schema") != SCHEMA:
            raise units.UnitError(f"the snapshot has schema {value.get('schema')}, and this collection reads {SCHEMA}")
        services = tuple(
            Service(UnitFiles.from_dict(one["files"]), bool(one["enabled"]), bool(one["active"]))
            for one in value["services"]
        )
        others = tuple(
            (Path(one["path"]), File.from_dict(one["file"]) if one["file"] else None) for one in value.get("others", [])
        )
        return cls(value["instance"], value["phase"], value["taken_at"], services, others)


def load(path: Path) -> Snapshot | None:
    """Read a snapshot; None when there is none. Raises UnitError when it cannot be read."""
    try:
        return Snapshot.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise units.UnitError(f"the snapshot {path} cannot be read: {error}") from error


def save(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot atomically; it holds whole unit files, so root alone reads it."""
    text = json.dumps(snapshot.as_dict(), indent=2) + "\n"
    File(text.encode(), 0o600).write(path)


def take(instance: str, names: list[str], others: list[Path] | None = None) -> Snapshot:
    """Look at the services, and at other files that go with them, as they are now."""
    services = tuple(Service(UnitFiles.read(name), units.enabled(name), units.active(name)) for name in names)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Snapshot(instance, "cutover", now, services, tuple((one, File.read(one)) for one in others or []))


def keep(path: Path, instance: str, names: list[str], others: list[Path] | None = None) -> Snapshot:
    """Take a snapshot, unless an earlier cut-over died under way: then what served before that one is kept."""
    before = load(path)
    if before is not None and before.phase == "cutover":
        return before
    taken = take(instance, names, others)
    _keep_adopted(path.with_name("adopted.json"), taken)
    save(path, taken)
    return taken


def _keep_adopted(path: Path, taken: Snapshot) -> None:
    """Keep a foreign unit that ours takes the name of for good: uninstalling gives it back."""
    foreign = [one for one in taken.services if one.name == f"sglang-{taken.instance}" and one.files.unit is not None]
    if foreign and not foreign[0].files.ours and not path.exists():
        save(path, Snapshot(taken.instance, "restored", taken.taken_at, tuple(foreign)))


def mark(path: Path, phase: str) -> bool:
    """Give the snapshot a phase; tell whether it had another one."""
    found = load(path)
    if found is None or found.phase == phase:
        return False
    save(path, replace(found, phase=phase))
    return True


def switch_back(snapshot: Snapshot) -> bool:
    """Let the services come back after a reboot as before; done first, so that a power cut finds the old order."""
    changed = False
    for one in sorted(snapshot.services, key=lambda service: service.enabled):
        if one.files.unit is not None or units.enabled(one.name):
            changed |= units.set_enabled(one.name, one.enabled)
    return changed


def put_back(snapshot: Snapshot) -> bool:
    """Put every unit file and drop-in back byte for byte, and let systemd read them.

    Other files come back after a cut-over that failed alone: on demand one goes back to a release, not to an old key.
    """
    changed = [one.files.write() for one in snapshot.services]
    if snapshot.phase == "cutover":
        changed += [_put(path, file) for path, file in snapshot.others]
    units.systemctl("daemon-reload")
    return any(changed)


def _put(path: Path, file: File | None) -> bool:
    if file is not None:
        return file.write(path)
    found = path.exists()
    if found:
        path.unlink()
    return found


def start_again(snapshot: Snapshot) -> list[str]:
    """Start what ran before and does not run now; return these names."""
    down = [name for name in snapshot.served if not units.active(name)]
    for name in down:
        units.systemctl("reset-failed", f"{name}.service", must=False)
        units.systemctl("start", "--no-block", f"{name}.service")
    return down


def set_aside(snapshot: Snapshot, prepared: Path, rejected: Path | None) -> str:
    """Make the instance's prepared unit the one that is in force again, or take it away if that is not ours.

    The next deployment then says what differs from what serves. `rejected`: where the prepared one is kept before, if
    it is another one. Returns that place, "" when nothing was kept.
    """
    found = File.read(prepared)
    own = next((one.files for one in snapshot.services if one.name == f"sglang-{snapshot.instance}"), None)
    wanted = own.unit if own and own.ours else None
    kept = ""
    if found is not None and rejected is not None and (wanted is None or found.content != wanted.content):
        File(found.content, 0o644).write(rejected)
        kept = str(rejected)
    if wanted is not None:
        File(wanted.content, 0o644).write(prepared)
    elif found is not None:
        prepared.unlink()
    if snapshot.phase == "cutover":
        for path, file in snapshot.others:
            _put(prepared.with_name(path.name), file)
    return kept
