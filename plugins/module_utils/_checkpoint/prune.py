# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes revisions that nothing on the host needs. PRIVATE to the collection: it can change at any time.

A revision stays if a link points to it, or a unit file, a host record or a process names it: the engine maps its
weights, so that a running one is seen whatever its unit says. Of the others, the ones verified last stay up to a
number.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import typing as t
from pathlib import Path

from .._release import keep
from . import manifest as records
from .place import held_bytes

_REVISION = re.compile(r"[0-9a-f]{40}")


@dataclasses.dataclass(frozen=True)
class Revision:
    """A revision in the store: its folder, bytes, when it was verified ("" if never), and why it stays, if it does."""

    path: str
    bytes: int
    verified_at: str
    kept: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"path": self.path, "bytes": self.bytes, "verified_at": self.verified_at}


def judge(store: str, models: str, state: str, number: int, places: keep.Places | None = None) -> list[Revision]:
    """Every revision in the store; `kept` says why one stays. Changes nothing. Raises keep.CannotTell and OSError.

    models: the folder of the links; state: of the host records; number: how many of each repository stay at least,
    besides those in use.
    """
    store = os.path.realpath(store)
    found = _revisions(store)
    linked = _linked(models, store)
    named = keep.where_named(
        [os.path.basename(one.path) for one in found], places or keep.Places(root=Path(store), state=Path(state))
    )
    judged, spare = [], dict.fromkeys((os.path.dirname(one.path) for one in found), number)
    for one in sorted(found, key=lambda row: row.verified_at, reverse=True):
        why = linked.get(one.path) or named.get(os.path.basename(one.path), "")
        if not why and one.verified_at and spare[os.path.dirname(one.path)] > 0:
            spare[os.path.dirname(one.path)] -= 1
            why = "among the last that were verified"
        judged.append(dataclasses.replace(one, kept=why))
    return judged


def remove(revision: Revision) -> None:
    """Removes a revision; killed in the middle, it is one that was never verified. Raises OSError."""
    stamp = os.path.join(revision.path, records.STAMP)
    if os.path.lexists(stamp):
        os.unlink(stamp)
    shutil.rmtree(revision.path)
    if not os.listdir(os.path.dirname(revision.path)):
        os.rmdir(os.path.dirname(revision.path))


def _revisions(store: str) -> list[Revision]:
    """What lies in the store under a revision's name, two folders deep; nothing else is looked at."""
    found = []
    for owner in _folders(store):
        for path in _folders(owner):
            if _REVISION.fullmatch(os.path.basename(path)):
                stamp = records.load_stamp(path)
                found.append(Revision(path, held_bytes(path), stamp.verified_at if stamp else ""))
    return found


def _folders(path: str) -> list[str]:
    try:
        rows = sorted(os.scandir(path), key=lambda row: row.name)
    except FileNotFoundError:
        return []
    return [row.path for row in rows if row.is_dir(follow_symlinks=False) and not row.name.startswith(".")]


def _linked(models: str, store: str) -> dict[str, str]:
    """Folders of the store that a link in the folder of the models, or beside the store, points to."""
    found = {}
    for folder in {models, os.path.dirname(store)}:
        try:
            rows = list(os.scandir(folder))
        except FileNotFoundError:
            continue
        for row in rows:
            if row.is_symlink():
                found[os.path.realpath(row.path)] = f"{row.path} points to it"
    return found
