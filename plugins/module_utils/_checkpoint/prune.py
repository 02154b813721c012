# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes revisions that nothing on the host needs. PRIVATE to the collection: it can change at any time.

Only revisions of one repository go, and of these only what was verified here: a copy that somebody put into the store
and that no run has read yet is theirs. A revision stays if a link points to it, or a unit file, a host record or a
process names it: the engine maps its weights, so that a running one is seen whatever its unit says. Of the others, the
ones verified last stay up to a number.
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
# A revision whose removal was killed; what is removed has this name first.
_GOING = re.compile(r"\.[0-9a-f]{40}\.going")


@dataclasses.dataclass(frozen=True)
class Revision:
    """A revision in the store: its folder, bytes, when it was verified ("" if never), and why it stays, if it does."""

    path: str
    bytes: int
    verified_at: str
    kept: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"path": self.path, "bytes": self.bytes, "verified_at": self.verified_at}


def judge(
    store: str, models: str, state: str, repository: str, number: int, places: keep.Places | None = None
) -> list[Revision]:
    """Every revision in the store; `kept` says why one stays. Changes nothing. Raises keep.CannotTell and OSError.

    models: the folder of the links; state: of the host records; repository: owner/name of the only one of which
    revisions go; number: how many of it stay at least, besides those in use.
    """
    store = os.path.realpath(store)
    found = _revisions(store)
    linked = _linked(models, store)
    named = keep.where_named(
        [os.path.basename(one.path) for one in found], places or keep.Places(root=Path(store), state=Path(state))
    )
    own = os.path.join(store, repository.replace("/", "--"))
    judged = []
    for one in sorted(found, key=lambda row: row.verified_at, reverse=True):
        why = linked.get(one.path) or named.get(os.path.basename(one.path), "") or _not_ours(one, own, repository)
        if not why and number > 0:
            number -= 1
            why = "among the last that were verified"
        judged.append(dataclasses.replace(one, kept=why))
    return judged + [Revision(path, held_bytes(path), "") for path in _folders(own, hidden=True)]


def _not_ours(one: Revision, own: str, repository: str) -> str:
    """Why a revision is none that may go at all; else an empty text."""
    if os.path.dirname(one.path) != own:
        return f"not of {repository}"
    return "" if one.verified_at else "never verified here: remove it yourself if nobody needs it"


def remove(revision: Revision) -> None:
    """Removes a revision; killed in the middle, the rest goes the next time. Raises OSError."""
    folder, name = os.path.split(revision.path)
    going = os.path.join(folder, name if _GOING.fullmatch(name) else f".{name}.going")
    if going != revision.path:
        os.rename(revision.path, going)
    shutil.rmtree(going)
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


def _folders(path: str, *, hidden: bool = False) -> list[str]:
    """Folders in a folder; with `hidden`, those whose removal was killed."""
    try:
        rows = sorted(os.scandir(path), key=lambda row: row.name)
    except FileNotFoundError:
        return []
    folders = [row for row in rows if row.is_dir(follow_symlinks=False)]
    if hidden:
        return [row.path for row in folders if _GOING.fullmatch(row.name)]
    return [row.path for row in folders if not row.name.startswith(".")]


def _linked(models: str, store: str) -> dict[str, str]:
    """Revisions that a link leads into: one anywhere below the folder of the models, or one beside the store.

    Raises keep.CannotTell where a folder cannot be read.
    """
    beside = os.path.dirname(store)
    paths = [os.path.join(beside, name) for name in (os.listdir(beside) if os.path.isdir(beside) else [])]
    for base, folders, names in os.walk(models, onerror=_refuse):
        paths += [os.path.join(base, name) for name in [*folders, *names]]
        folders[:] = [name for name in folders if os.path.realpath(os.path.join(base, name)) != store]
    found: dict[str, str] = {}
    for path in filter(os.path.islink, paths):
        # the revision, also where the link leads to a file in it
        inside = os.path.relpath(os.path.realpath(path), store).split(os.sep)[:2]
        found[os.path.join(store, *inside)] = f"{path} points to it"
    return found


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise keep.CannotTell(f"{error.filename} cannot be read ({error.strerror})") from error
