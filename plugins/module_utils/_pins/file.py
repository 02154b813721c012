# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file pins.yml of an inventory: each value with where it came from. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls

HEAD = ("---", "# Written by llmfleet.sglang.pin: each value was looked up once. To move on, run it again.")
REVISIONS = "sglang_checkpoint_revisions"
# One revision for all profiles, which an operator may still set; in this file it would hide those of the profiles.
SINGLE = "sglang_checkpoint_revision"
_SOURCE = ("sglang_commit", "sglang_version")
_TOP = re.compile(r'(sglang_\w+):\s*"?([^"\s]*)"?')
_ENTRY = re.compile(r'\s+([A-Za-z0-9][\w.-]*):\s*"?([^"\s]*)"?')


@dataclass(frozen=True)
class Pin:
    """A value and the comment that says where it came from, "" when nothing does."""

    value: str
    origin: str = ""


@dataclass(frozen=True)
class Pins:
    """Everything that the file holds: source by variable, revisions by model profile.

    single: the one revision for all profiles that the file once held; it is not written again.
    """

    source: dict[str, Pin] = field(default_factory=dict)
    revisions: dict[str, Pin] = field(default_factory=dict)
    single: str = ""

    @property
    def values(self) -> dict[str, object]:
        """The values by variable, as Ansible reads them from the file."""
        source = {name: pin.value for name, pin in self.source.items()}
        return {**source, REVISIONS: {profile: pin.value for profile, pin in self.revisions.items()}}

    def with_source(self, pins: dict[str, Pin]) -> Pins:
        """These pins with another commit and version."""
        return replace(self, source=_moved(self.source, pins))

    def with_revision(self, profile: str, pin: Pin) -> Pins:
        """These pins with one profile's revision set; those of the others stay."""
        return replace(self, revisions=_moved(self.revisions, {profile: pin}))


def _moved(before: dict[str, Pin], after: dict[str, Pin]) -> dict[str, Pin]:
    """Put `after` over `before`; a value that is the same keeps the day on which it was looked up first."""
    same = {name: before[name] for name, pin in after.items() if name in before and before[name].value == pin.value}
    return {**before, **after, **same}


def origin(words: str, today: str) -> str:
    """Say where a value came from, on one line and without a password."""
    return f"{redact_urls(' '.join(words.split()))}, on {today}"


def read(text: str) -> Pins:
    """Read a pins.yml, also one that a person has edited; what is empty is no pin."""
    pins, comment, inside = Pins({}, {}), "", False
    for line in text.splitlines():
        if line.strip().startswith("#"):
            comment = line.strip().lstrip("# ")
            continue
        entry, top = _ENTRY.fullmatch(line), _TOP.fullmatch(line)
        if top:
            inside = top[1] == REVISIONS
        if entry and inside and entry[2]:
            pins.revisions[entry[1]] = Pin(entry[2], comment)
        elif top and top[1] in _SOURCE and top[2]:
            pins.source[top[1]] = Pin(top[2], comment)
        elif top and top[1] == SINGLE:
            pins = replace(pins, single=top[2])
        comment = ""
    return pins


def moved(before: Pins, after: Pins) -> list[str]:
    """Say of each branch, tag or revision that is another one than when it was pinned by the same name."""
    pairs = [("sglang_commit", before.source.get("sglang_commit"), after.source.get("sglang_commit"))]
    pairs += [(f"{REVISIONS}.{name}", before.revisions.get(name), pin) for name, pin in after.revisions.items()]
    said = []
    for name, old, new in pairs:
        if old and new and old.value != new.value and old.origin and _name(old) == _name(new):
            since = old.origin.rpartition(", on ")[2]
            said.append(f"{_name(new)} has moved since {since}: {name} was {old.value} and is {new.value} now")
    return said


def _name(pin: Pin) -> str:
    return pin.origin.rpartition(", on ")[0]


def render(pins: Pins) -> str:
    """Return the text of pins.yml."""
    lines = [*HEAD]
    for name in _SOURCE:
        pin = pins.source.get(name, Pin(""))
        lines += [*_comment(pin, ""), f'{name}: "{pin.value}"']
    lines.append(f"{REVISIONS}:" if pins.revisions else f"{REVISIONS}: {{}}")
    for profile, pin in sorted(pins.revisions.items()):
        lines += [*_comment(pin, "  "), f'  {profile}: "{pin.value}"']
    return "\n".join(lines) + "\n"


def _comment(pin: Pin, indent: str) -> list[str]:
    return [f"{indent}# {pin.origin}"] if pin.origin else []
