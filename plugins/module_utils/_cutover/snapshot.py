# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host served before a cut-over, kept on the host, so that any controller can bring it back. Private.

A snapshot has a phase. `cutover`: something is under way or died under way; what served before is kept as it is,
whoever comes next, unless the host has got something else since. `serving`: the new service answered; the snapshot is
what a rollback on demand goes back to. `restored`: what it holds was brought back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import links, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitFiles

SCHEMA = 1
SNAPSHOT, ADOPTED = KEPT = ("snapshot.json", "adopted.json")


@dataclass(frozen=True)
class Service:
    """A service as it was: its files, whether it came back after a reboot, whether it ran.

    links: those that enable it, or that did when it was last enabled; empty where that is not known.
    """

    files: UnitFiles
    enabled: bool
    active: bool
    links: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The service's name, without `.service`."""
        return self.files.name

    def as_dict(self) -> dict[str, Any]:
        """Return the service as JSON holds it."""
        return {
            "files": self.files.as_dict(),
            "enabled": self.enabled,
            "active": self.active,
            "links": self.links,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Service:
        """Read what `as_dict` wrote, now or before it kept links."""
        files = UnitFiles.from_dict(value["files"])
        return cls(files, bool(value["enabled"]), bool(value["active"]), dict(value.get("links") or {}))


@dataclass(frozen=True)
class Snapshot:
    """Every service that takes part in a cut-over, as it was before.

    others: files that go with them, by place; concluded_at: when it last came to an end, in UTC, "" if it did not.
    """

    instance: str
    phase: str
    taken_at: str
    services: tuple[Service, ...]
    others: tuple[tuple[Path, File | None], ...] = ()
    concluded_at: str = ""

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
            "concluded_at": self.concluded_at,
            "services": [one.as_dict() for one in self.services],
            "others": [{"path": str(path), "file": file.as_dict() if file else None} for path, file in self.others],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Snapshot:
        """Read what `as_dict` wrote. Raises UnitError for another schema."""
        if value.get("schema") != SCHEMA:
            raise units.UnitError(f"the snapshot has schema {value.get('schema')}, and this collection reads {SCHEMA}")
        services = tuple(Service.from_dict(one) for one in value["services"])
        others = tuple(
            (Path(one["path"]), File.from_dict(one["file"]) if one["file"] else None) for one in value.get("others", [])
        )
        concluded = str(value.get("concluded_at", ""))
        return cls(value["instance"], value["phase"], value["taken_at"], services, others, concluded)


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


def take(instance: str, names: list[str], others: list[Path] | None = None, state: Path | None = None) -> Snapshot:
    """Look at the services, and at other files that go with them, as they are now. state: folder of the host records.

    How a service that is disabled now was once enabled is taken over from the snapshots that are there.
    """
    services = []
    for name in names:
        files, enabled = UnitFiles.read(name), units.enabled(name)
        known = links.of(name) if enabled else known_links(state, files) if state else {}
        services.append(Service(files, enabled, units.active(name), known))
    kept = tuple((one, File.read(one)) for one in others or [])
    return Snapshot(instance, "cutover", now(), tuple(services), kept)


def known_links(state: Path, files: UnitFiles) -> dict[str, str]:
    """Return the links that enabled a unit with these bytes when it was last kept; empty if none is known."""
    found = [kept for path in state.glob("*/*.json") if path.name in KEPT and (kept := load(path))]
    services = [one for kept in sorted(found, key=lambda one: one.taken_at) for one in kept.services]
    same = [one.links for one in services if one.links and one.files == files]
    return same[-1] if same else {}


def now() -> str:
    """The time as a snapshot notes it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def under_way(path: Path) -> Snapshot | None:
    """Return the snapshot of a cut-over that is under way or died under way; None if there is none.

    Nor is it one any more once something else was put in force for good: another instance that takes part was
    concluded later, or one of the services was changed, or started, by hand.
    """
    found = load(path)
    if found is None or found.phase != "cutover" or _superseded(path, found):
        return None
    return found


def _superseded(path: Path, found: Snapshot) -> bool:
    names = {one.name for one in found.services}
    for other in sorted(path.parent.parent.glob(f"*/{path.name}")):
        later = load(other) if other != path else None
        if later and later.concluded_at > found.taken_at and names & {one.name for one in later.services}:
            return True
    return any(_other_runs(found.instance, one) for one in found.services)


def _other_runs(instance: str, one: Service) -> bool:
    """Whether a service runs something that neither served before nor is what the cut-over itself puts in force."""
    present = UnitFiles.read(one.name)
    made_by_us = present.ours or present.unit is None
    if (one.name == f"sglang-{instance}" and made_by_us) or not units.active(one.name):
        return False
    return not (one.active and one.files.in_force(present))


def keep(path: Path, instance: str, names: list[str], others: list[Path] | None = None) -> Snapshot:
    """Take a snapshot, unless an earlier cut-over died under way: then what served before that one is kept."""
    before = under_way(path)
    if before is not None:
        return before
    taken = take(instance, names, others, path.parent.parent)
    _keep_adopted(path.with_name(ADOPTED), taken)
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
    save(path, replace(found, phase=phase, concluded_at="" if phase == "cutover" else now()))
    return True


def switch_back(snapshot: Snapshot) -> bool:
    """Let the services come back after a reboot as before; done first, so that a power cut finds the old order.

    A unit that is not there any more comes back before. Raises UnitError, before anything is disabled, if one that
    served cannot be loaded.
    """
    gone = [one for one in snapshot.services if one.files.unit and (one.enabled or one.active) and _is_gone(one)]
    changed = [one.files.write() for one in gone]
    if any(changed):
        units.systemctl("daemon-reload")
    for name in snapshot.served:
        state = units.systemctl("show", "--property=LoadState", "--value", f"{name}.service", must=False)
        if state in ("not-found", "error", "bad-setting", "masked"):
            raise units.UnitError(
                f"{name}.service cannot come back, for systemd says '{state}' of it; nothing was disabled or stopped"
            )
    on = {one.name: one.links for one in snapshot.services if one.enabled}
    return links.switch(on, [one.name for one in snapshot.services if not one.enabled]) or any(changed)


def _is_gone(one: Service) -> bool:
    return UnitFiles.read(one.name).unit is None


def put_back(snapshot: Snapshot) -> bool:
    """Put every unit file and drop-in back byte for byte, and let systemd read them.

    Other files come back before the units that need them, and go after those that do.
    """
    others = snapshot.others if snapshot.phase == "cutover" else ()
    changed = [_put(path, file) for path, file in others if file is not None]
    changed += [one.files.write() for one in snapshot.services]
    units.systemctl("daemon-reload")
    changed += [_put(path, None) for path, file in others if file is None]
    return any(changed)


def _put(path: Path, file: File | None) -> bool:
    if file is not None:
        return file.write(path)
    found = path.exists()
    if found:
        path.unlink()
    return found


def start_again(snapshot: Snapshot) -> list[str]:
    """Start what ran before and does not run now, or waits to be started again; return these names."""
    down = [name for name in snapshot.served if not units.look(name).active_or_starting]
    for name in down:
        # A plain start would wait for the restart that is due; this one does not, and starts what does not run.
        units.systemctl("reset-failed", f"{name}.service", must=False)
        units.systemctl("restart", "--no-block", f"{name}.service")
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
    for path, file in snapshot.others if snapshot.phase == "cutover" else ():
        if path.parent == prepared.parent.parent:  # of this instance
            _put(prepared.with_name(path.name), file)
    return kept
