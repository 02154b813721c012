# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host goes back to: what it served before the last cut-over, or something that is named. Private.

A release of the instance is named by its id, which means the newest that answered from it, or by its id and the state
that was wanted then (`<id>@<12 hex digits>`). Any other service is named by its name, which means the foreign unit of
that name if there is one, and else ours as it last answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import (
    answered,
    credentials,
    links,
    snapshot,
    units,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.answered import Answered
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Service, Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd

_VISIBLE = re.compile(rb"\bCUDA_VISIBLE_DEVICES=([0-9,]+)")


@dataclass(frozen=True)
class Places:
    """Where to look. state: folder of the host records; releases: folder of the releases; instance: whose cut-over."""

    state: Path
    releases: Path
    instance: str

    @property
    def folder(self) -> Path:
        """The record of the instance."""
        return self.state / self.instance

    @property
    def snapshot(self) -> Path:
        """The snapshot's file."""
        return self.folder / "snapshot.json"


@dataclass(frozen=True)
class Goal:
    """Something to go back to: how an operator names it, what it is in words, and the unit's files.

    links: those that enable it, empty where that is not known.
    """

    name: str
    words: str
    files: UnitFiles
    links: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Aim:
    """What to go back to and what stands in its way.

    needed: whether anything is not as it shall be; stop: what runs and must not, or not as it does; untouched: what
    still runs as it did when the snapshot was taken; verify: how to ask what will serve, empty for a foreign service;
    words: what will serve.
    """

    target: Snapshot
    needed: bool
    stop: list[str]
    untouched: list[str] = field(default_factory=list)
    verify: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def goals(places: Places) -> list[Goal]:
    """Everything that can be named on this host, in the order in which it is listed to an operator."""
    kept = answered.all_of(places.state, places.releases)
    own = [one for one in kept if one.record.get("instance") == places.instance]
    found: dict[str, Goal] = {}
    for one in own:
        words = f"release of {one.service}, {_served(one)}"
        for name in (one.release, one.key):
            found.setdefault(name, Goal(name, words, one.files, links.of_install(one.files)))
    for files in _foreign(places.state):
        known = snapshot.known_links(places.state, files)
        found.setdefault(files.name, Goal(files.name, "the unit that somebody else made", files, known))
    for one in kept:
        words = f"ours as it last answered, release {one.release}, {_served(one)}"
        found.setdefault(one.service, Goal(one.service, words, one.files, links.of_install(one.files)))
    return list(found.values())


def _served(one: Answered) -> str:
    return f"served {one.record.get('served_model_name')}, answered {one.at}"


def _foreign(state: Path) -> list[UnitFiles]:
    """Foreign units by name: what lies on the disk now goes before what was kept of it."""
    files = [path for name in (snapshot.ADOPTED, snapshot.SNAPSHOT) for path in sorted(state.glob(f"*/{name}"))]
    services = [one for path in files if (kept := snapshot.load(path)) for one in kept.services]
    found: dict[str, UnitFiles] = {}
    for one in services:
        for candidate in (UnitFiles.read(one.name), one.files):
            if candidate.unit is not None and not candidate.ours:
                found.setdefault(one.name, candidate)
    return list(found.values())


def aim(places: Places, to: str = "") -> Aim:
    """Say what to go back to, without changing anything. Raises UnitError with what can be named."""
    target = _named(places, to) if to else _before(places)
    present = {one.name: UnitFiles.read(one.name) for one in target.services}
    now = {one.name: units.look(one.name) for one in target.services}
    running = {name for name, unit in now.items() if unit.up}
    untouched = [one.name for one in target.services if one.name in running and _runs_as_kept(one, now[one.name])]
    stop = [
        one.name
        for one in target.services
        if one.name in running and (not one.active or not one.files.in_force(present[one.name]))
    ]
    right = all(
        one.files.in_force(present[one.name])
        and (now[one.name].active_or_starting if one.active else one.name not in running)
        and (one.files.unit is None or units.enabled(one.name) == one.enabled)
        for one in target.services
    )
    served = [one for one in target.services if one.active]
    ours = [answered.of_unit(places.state, one.files) for one in served]
    for entry in filter(None, ours):
        if entry.missing(places.releases):
            raise UnitError(f"{entry.service} would need {entry.missing(places.releases)}, which is not there any more")
    return Aim(
        target=_with_keys(places, target),
        needed=not right,
        stop=stop,
        untouched=untouched,
        verify=ours[0].verify if ours and ours[0] else {},
        words=[f"{one.name} ({_served(entry)})" if entry else one.name for one, entry in zip(served, ours)],
    )


def _with_keys(places: Places, target: Snapshot) -> Snapshot:
    """Have the API keys come back that are gone since and without which what shall serve does not start.

    After a cut-over that failed, all is as it was before it. On demand one goes back to a release: a key that is there
    stays what it is.
    """
    gone = credentials.gone(target.services, [*_snapshots(places.state), target])
    return target if target.phase == "cutover" and target.others else replace(target, others=gone)


def _snapshots(state: Path) -> list[Snapshot]:
    return [found for path in sorted(state.glob(f"*/{snapshot.SNAPSHOT}")) if (found := snapshot.load(path))]


def _runs_as_kept(one: Service, now: systemd.Unit) -> bool:
    """Tell whether a unit's main process was started from the kept unit: a failed cut-over has not come to stop it.

    A unit of ours names the state that it was made for, and a process has it in its environment; a process of a foreign
    unit has none, and neither has the foreign unit.
    """
    content = one.files.unit.content.decode(errors="replace") if one.files.unit else ""
    kept = re.search(rf"^Environment={systemd.STATE_VARIABLE}=(\S+)$", content, re.MULTILINE)
    return one.active and now.main_pid > 0 and now.running_state == (kept.group(1) if kept else None)


def _before(places: Places) -> Snapshot:
    found = snapshot.load(places.snapshot)
    if found is None:
        raise UnitError(
            f"nothing was kept of what this host served before {places.instance}, for there is no {places.snapshot}"
            + _what_can_be_named(places)
        )
    return found


def _named(places: Places, to: str) -> Snapshot:
    """A snapshot in which the named one serves and every other service that this host knows of does not.

    An instance of ours on other cards is nobody's business but its own.
    """
    wanted = to.removesuffix(".service")
    goal = next((one for one in goals(places) if one.name == wanted), None)
    if goal is None:
        raise UnitError(f"there is nothing named '{to}' to go back to{_what_can_be_named(places)}")
    others = [UnitFiles.read(name) for name in _known(places) if name != goal.files.name]
    # How they were enabled is not forgotten: one may go back to them later.
    services = [
        Service(files, False, False, snapshot.known_links(places.state, files))
        for files in others
        if not _apart(files, goal.files)
    ]
    services.append(Service(goal.files, enabled=True, active=True, links=goal.links))
    return Snapshot(places.instance, "cutover", snapshot.now(), tuple(services))


def _apart(one: UnitFiles, other: UnitFiles) -> bool:
    """Whether two units have cards of their own each, as ours say where sglang_visible_gpus chose them."""
    cards = [_VISIBLE.search(files.unit.content) if files.ours and files.unit else None for files in (one, other)]
    first, second = (set(found[1].split(b",")) if found else set() for found in cards)
    return bool(first and second) and not first & second


def _known(places: Places) -> list[str]:
    """The names of all services that any cut-over on this host took part in."""
    names = [one.name for found in _snapshots(places.state) for one in found.services]
    names += [one.service for one in answered.all_of(places.state, places.releases)]
    return list(dict.fromkeys([f"sglang-{places.instance}", *names]))


def _what_can_be_named(places: Places) -> str:
    found = goals(places)
    # A release that answered in one state alone needs no second name.
    once = {one.name for one in found if sum(other.name.startswith(f"{one.name}@") for other in found) == 1}
    lines = [f"  {one.name}: {one.words}" for one in found if one.name.partition("@")[0] not in once - {one.name}]
    return ". What can be named on this host:\n" + "\n".join(lines) if lines else ". Nothing can be named on this host"


def begin(places: Places, target: Aim) -> bool:
    """Note on the disk what is gone back to, so that whoever comes after a power cut finds it; tell whether it was new.

    What is in force already is noted as restored.
    """
    phase = "cutover" if target.needed else "restored"
    noted = snapshot.load(places.snapshot)
    if not target.needed and noted is not None and noted.services != target.target.services:
        return False
    ended = "" if target.needed else snapshot.now()
    wanted = replace(target.target, phase=phase, concluded_at=ended)
    if noted == wanted or (noted is not None and (noted.services, noted.phase) == (wanted.services, phase)):
        return False
    snapshot.save(places.snapshot, wanted)
    return True
