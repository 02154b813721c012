# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks ahead: which files there should be, whether they fit, and whether they are what was chosen. PRIVATE to the
collection: it can change at any time.
"""

from __future__ import annotations

import json
import os
import typing as t

from . import config, words
from . import manifest as records
from . import place as placing
from .errors import CheckpointError, HubUnreachable
from .manifest import WantedFile
from .peers import Peers
from .request import Outcome, Request
from .verify import check_files, check_sizes


def listed(request: Request) -> tuple[WantedFile, ...]:
    """The revision's files: as the manifest here says, or an earlier run was told, or else the Hub."""
    place = request.place
    manifest = records.load_manifest(place.target, place.repository, place.revision)
    if manifest is not None:
        return manifest.files
    try:
        with open(place.listing, encoding="utf-8") as stream:
            rows = json.load(stream)
        return tuple(
            WantedFile.checked(row["path"], row["size"], sha256=row["sha256"], git_oid=row["git_oid"]) for row in rows
        )
    except (OSError, ValueError, KeyError, TypeError):
        return tuple(request.hub.tree(place.repository, place.revision))


def listed_anew(request: Request, files: tuple[WantedFile, ...]) -> tuple[WantedFile, ...]:
    """The revision's files as the Hub lists them now; as they were listed before where it gives no answer."""
    try:
        return tuple(request.hub.tree(request.place.repository, request.place.revision))
    except CheckpointError:
        return files


def predict(request: Request, outcome: Outcome) -> None:
    """What a real run would do, from the sizes and the configuration alone. Raises CheckpointError for a wrong one."""
    place = request.place
    outcome.changed = outcome.before != place.target
    if request.peers and records.load_manifest(place.target, place.repository, place.revision) is None:
        _predict_taken(request.peers, request, outcome)
        return
    try:
        files = listed(request)
        # what other hosts have is what was chosen, and is compared once it is here
        if not request.peers:
            check_config_before(request, outcome, files)
    except HubUnreachable as error:
        outcome.changed = True
        outcome.message = "What would be downloaded cannot be said, for the Hub cannot be reached."
        outcome.warnings.append(str(error))
        return
    outcome.files, outcome.bytes = len(files), sum(file.size for file in files)
    present = place.target if os.path.isdir(place.target) else place.files
    missing = [problem.file for problem in check_sizes(present, files)]
    outcome.to_download = [{"file": file.path, "size": file.size} for file in missing]
    left = sum(file.size for file in missing)
    if not os.path.isdir(place.target):
        outcome.changed = True
    outcome.changed = outcome.changed or bool(missing)
    reading = "read again" if request.full else "verified"
    coming = "taken from other hosts" if request.peers else "downloaded"
    outcome.message = (
        f"{len(missing)} of {words.number(len(files), 'file')} ({words.size(left)}) would be {coming}, "
        f"{words.size(outcome.bytes)} would be {reading}"
    )
    _foresee_room(request, outcome, sum(file.size for file in missing), words.number(len(missing), "file"))


def _predict_taken(peers: Peers, request: Request, outcome: Outcome) -> None:
    """The same where other hosts give everything: they say how much it is, and the Hub is not asked."""
    outcome.changed, outcome.bytes = True, peers.size
    amount = f"{words.size(peers.size)} would be" if peers.size else "The files would be"
    outcome.message = f"{amount} taken from other hosts and verified"
    place = request.place
    here = placing.held_bytes(place.target if os.path.isdir(place.target) else place.files)
    _foresee_room(request, outcome, max(0, peers.size - here), "what other hosts have")


def _foresee_room(request: Request, outcome: Outcome, need: int, what: str) -> None:
    try:
        _check_room(request, need, what)
    except CheckpointError as error:
        outcome.warnings.append(f"A real run would be refused: {error}")


def check_room(request: Request, missing: t.Sequence[WantedFile]) -> None:
    """Refuses, with the arithmetic, a disk that cannot take the missing files and the reserve."""
    _check_room(request, sum(file.size for file in missing), words.number(len(missing), "file"))


def _check_room(request: Request, need: int, what: str) -> None:
    place = request.place
    folder, free = placing.free_bytes(place.store)
    if need + request.reserve > free:
        begun = [f"{path} ({words.size(held)})" for path, held in placing.left_behind(place)]
        litter = f" Begun and not ended by earlier runs: {', '.join(begun)}." if begun else ""
        raise CheckpointError(
            f"{folder} has {words.size(free)} free; {place.repository} still needs {words.size(need)} "
            f"({what}) and {words.size(request.reserve)} shall stay free: "
            f"{words.size(need + request.reserve - free)} are missing. Make room, or give another store.{litter}"
        )


def check_config_before(request: Request, outcome: Outcome, files: t.Sequence[WantedFile]) -> None:
    """Compares the configuration before anything large is fetched: it is read from the Hub where it is not here."""
    place = request.place
    small = {file.path: file for file in files if file.path in config.FILES and file.size <= config.LARGEST}

    def read(path: str) -> bytes | None:
        if path not in small:
            return None
        for folder in (place.target, place.files):
            right, _problems = check_files(folder, [small[path]], threads=1)
            if right:
                with open(os.path.join(folder, path), "rb") as stream:
                    return stream.read()
        return request.hub.read(place.repository, place.revision, small[path])

    _check(request, outcome, read)


def check_config(request: Request, outcome: Outcome, folder: str) -> None:
    """Compares the configuration in `folder`, before the link is pointed to it."""

    def read(path: str) -> bytes | None:
        try:
            with open(os.path.join(folder, path), "rb") as stream:
                return stream.read(config.LARGEST)
        except FileNotFoundError:
            return None

    _check(request, outcome, read)


def _check(request: Request, outcome: Outcome, read: t.Callable[[str], bytes | None]) -> None:
    if not request.wanted.expects and not request.wanted.arguments:
        return
    place = request.place
    _described, warnings = config.check(read, request.wanted, place.repository, place.revision)
    outcome.warnings += [one for one in warnings if one not in outcome.warnings]
