# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes sure that a checkpoint is complete, right and in place. PRIVATE to the collection: it can change
at any time.

The order is what makes it safe: list, check the room, fetch beside, verify, then rename and flip the link.
Up to the flip nothing that a running engine reads has been touched, except that a damaged file of this very
revision is replaced, whole and in one step, by a right one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import typing as t

from . import manifest as records
from . import place as placing
from . import words
from .ahead import check_config, check_config_before, check_room, listed, listed_anew, predict
from .child import Room
from .errors import Busy, CheckpointError, FilesWrong, HubRefused, HubUnreachable
from .fetch import Fetch
from .manifest import Manifest, Stamp, WantedFile
from .peers import PeerFetch
from .progress import Progress
from .request import Outcome, Request, check_names
from .verify import Problem, Right, check_files, check_meaning, check_sizes

__all__ = ["Outcome", "Request", "check_names", "ensure"]
_Fetch = t.Union[Fetch, PeerFetch]


def ensure(request: Request, *, check: bool = False) -> Outcome:
    """Makes the checkpoint complete, right and in place; with `check` only says what that would take.

    Raises CheckpointError, after which whatever was served before still is.
    """
    place = request.place
    check_names(place.repository, place.revision)
    outcome = Outcome(before=place.linked())
    if (check or not request.full) and _unchanged(request, outcome, check):
        return _served(request, outcome, check)
    if request.here and request.optional:
        return _served(request, outcome, check) if _looked(request, outcome, check) else outcome
    if check:
        if request.here:
            outcome.message = "would be read and compared, once it is here"
        else:
            predict(request, outcome)
        return outcome
    with place.locked():
        # another run may have done the work while this one waited
        if request.full or not _unchanged(request, outcome, check):
            _work(request, outcome)
    return _served(request, outcome, check)


def _looked(request: Request, outcome: Outcome, check: bool) -> bool:
    """Whether what is here turns out to be right when it is read; nothing is fetched. In check mode the sizes tell."""
    place = request.place
    outcome.message = "not complete on this host"
    if not os.path.isdir(place.target):
        return False
    try:
        files = listed(request)
        odd = check_sizes(place.target, files)
        if odd:
            outcome.message += f": {_named(odd)}"
            return False
        if check:
            total = sum(file.size for file in files)
            outcome.files, outcome.bytes = len(files), total
            outcome.changed = outcome.before != place.target
            outcome.message = f"{words.size(total)} would be read, for it changed since it was verified, or never was"
            return True
        with place.locked():
            # another run may have done the work while this one waited
            if request.full or not _unchanged(request, outcome, check):
                _work(request, outcome)
    except (FilesWrong, Busy, HubRefused, HubUnreachable) as error:
        outcome.message += f", as far as can be told here: {error}"
        return False
    return True


def _served(request: Request, outcome: Outcome, check: bool) -> Outcome:
    """The checkpoint is here: it is given to the others, where that is asked for."""
    outcome.complete = True
    if request.serve and not check:
        try:
            request.serve.start(request.place.target)
        except CheckpointError as error:
            if not request.peers:
                raise
            # others serve, too
            outcome.warnings.append(str(error))
    return outcome


def _unchanged(request: Request, outcome: Outcome, check: bool) -> bool:
    """True if the stamp still holds; then nothing is read, and only link, modes and owner are put right."""
    place = request.place
    manifest = records.load_manifest(place.target, place.repository, place.revision)
    stamp = records.load_stamp(place.target)
    if manifest is None or stamp is None or records.changed_since(place.target, manifest, stamp):
        return False
    if request.peers and manifest.digest != request.peers.manifest_digest:
        return False
    check_config(request, outcome, place.target)
    _describe(outcome, manifest, stamp)
    outcome.message = f"unchanged since verified on {stamp.verified_at}"
    if request.full:
        outcome.message += f"; {words.size(manifest.size)} would be read again"
    _settle(request, outcome, manifest, check)
    return True


def _describe(outcome: Outcome, manifest: Manifest, stamp: Stamp) -> None:
    outcome.files, outcome.bytes = len(manifest.files), manifest.size
    outcome.verified_at, outcome.manifest_digest = stamp.verified_at, manifest.digest


def _settle(request: Request, outcome: Outcome, manifest: Manifest, check: bool) -> None:
    """What a downloader left, modes, owner and, last of all, the link."""
    place = request.place
    left = placing.leftovers(place.target)
    if left:
        outcome.changed = True
        outcome.message += f"; removed what a downloader left: {', '.join(left[:5])}"
        if not check:
            placing.drop_leftovers(place.target)
    wrong = request.owner.settle(place.target, look_only=check)
    if wrong:
        outcome.changed = True
        outcome.message += f"; owner or mode put right of {words.number(len(wrong), 'path')}"
    odd = records.strangers(place.target, manifest.files)
    if odd:
        outcome.warnings.append(
            f"{place.target} holds {words.number(len(odd), 'file')} not of this revision, which the engine may read: "
            f"{', '.join(odd[:5])}. They were left alone."
        )
    if place.linked() != place.target:
        outcome.changed = True
        outcome.message += f"; {place.path} now points to it"
        if not check:
            place.point()


def _work(request: Request, outcome: Outcome) -> None:
    place = request.place
    durations = os.path.join(place.store, "durations.json")
    progress = Progress(request.progress_file or f"{place.staging}.progress.json", durations=durations)
    present = os.path.isdir(place.target)
    if request.here and not present:
        raise CheckpointError(
            f"{place.target} is not there: nothing has brought {place.repository} at {place.revision} to this host."
        )
    placing.make_folder(place.files)
    placing.make_folder(place.home)
    os.chmod(place.staging, 0o700)
    try:
        right = _mend(request, outcome, progress) if present else _bring(request, outcome, progress)
        folder = place.target if present else place.files
        check_meaning(folder, [item.file for item in right])
        check_config(request, outcome, folder)
        _finish(request, outcome, folder, right)
        progress.keep()
    finally:
        progress.end()
        placing.drop_empty(place)


def _finish(request: Request, outcome: Outcome, folder: str, right: t.Sequence[Right]) -> None:
    """Writes down what was verified, then puts it in place."""
    place = request.place
    manifest = Manifest(place.repository, place.revision, tuple(item.file for item in right))
    stamp = Stamp(manifest.digest, words.now(), {item.file.path: item.seen for item in right})
    placing.drop_trash(folder)
    placing.write(os.path.join(folder, records.MANIFEST), manifest.encoded())
    placing.write(os.path.join(folder, records.STAMP), stamp.encoded())
    request.owner.settle(folder)
    placing.sync_folder(folder)
    if folder != place.target:
        placing.make_folder(os.path.dirname(place.target))
        os.rename(folder, place.target)
        placing.sync_folder(os.path.dirname(place.target))
        outcome.changed = True
    _describe(outcome, manifest, stamp)
    outcome.message = _summary(outcome)
    _settle(request, outcome, manifest, check=False)
    placing.remove_any(place.staging)


def _summary(outcome: Outcome) -> str:
    text = f"{words.number(outcome.files, 'file')} ({words.size(outcome.bytes)}) verified on {outcome.verified_at}"
    if outcome.bytes_downloaded:
        came = f"taken from {', '.join(outcome.taken_from)}" if outcome.taken_from else "downloaded"
        text += f", {words.size(outcome.bytes_downloaded)} of them {came}"
    if outcome.fetched_again:
        text += f", fetched again: {', '.join(problem['file'] for problem in outcome.fetched_again)}"
    return text


def _wanted(request: Request, fetch: _Fetch) -> tuple[WantedFile, ...]:
    """The revision's files, from the peers' manifest where they are whom the files come from."""
    return fetch.manifest() if isinstance(fetch, PeerFetch) else listed(request)


def _bring(request: Request, outcome: Outcome, progress: Progress) -> list[Right]:
    """Fetches a revision that is not here yet into the staging folder; returns its files, all right."""
    fetch = _fetch(request, progress)
    files = _wanted(request, fetch)
    right, problems = _gather(request, outcome, fetch, files, progress)
    if problems and isinstance(fetch, Fetch):
        # the list may be what is wrong
        fresh = listed_anew(request, files)
        if fresh != files:
            right, problems = _gather(request, outcome, fetch, fresh, progress)
    if problems:
        right = _by_path(right + _fetch_again(request, outcome, fetch, problems, progress))
    _tell_sources(outcome, fetch)
    return right


def _gather(
    request: Request, outcome: Outcome, fetch: _Fetch, files: tuple[WantedFile, ...], progress: Progress
) -> tuple[list[Right], list[Problem]]:
    """Fetches what is missing of the files into the staging folder, and compares all of them."""
    place = request.place
    missing = [problem.file for problem in check_sizes(place.files, files)]
    fetch.clear_halves()
    if missing and isinstance(fetch, Fetch):
        check_config_before(request, outcome, files)
    placing.write(place.listing, json.dumps([dataclasses.asdict(file) for file in files]).encode())
    if missing:
        check_room(request, missing)
        total = sum(file.size for file in files)
        progress.start("download", total, total - sum(file.size for file in missing))
        fetch.all(files)
        outcome.bytes_downloaded += sum(file.size for file in missing)
    for path in records.strangers(place.files, files):
        os.unlink(os.path.join(place.files, path))
    return _verify(request, outcome, place.files, files, progress)


def _mend(request: Request, outcome: Outcome, progress: Progress) -> list[Right]:
    """Reads a revision that is here already, and replaces what is wrong of it, file by file."""
    place = request.place
    fetch = _fetch(request, progress)
    files = _wanted(request, fetch)
    right, problems = _verify(request, outcome, place.target, files, progress)
    if not problems:
        return right
    # it vouches for these files no longer, whatever size and time they have
    placing.remove_any(os.path.join(place.target, records.STAMP))
    if request.here:
        raise FilesWrong(
            f"Not as {place.repository} at {place.revision} says: {_named(problems)}. Nothing that is served was "
            f"changed. Bring these files to {place.target} again.",
            [problem.as_dict() for problem in problems],
        )
    check_room(request, [problem.file for problem in problems])
    fetch.clear_halves()
    mended = _fetch_again(request, outcome, fetch, problems, progress)
    for item in mended:
        goal = os.path.join(place.target, item.file.path)
        placing.make_folder(os.path.dirname(goal))
        if os.path.isdir(goal) and not os.path.islink(goal):
            raise CheckpointError(f"{goal} is a folder where a file belongs: move it away and run again.")
        os.replace(os.path.join(place.files, item.file.path), goal)
    outcome.changed = True
    _tell_sources(outcome, fetch)
    return _by_path(right + mended)


def _fetch(request: Request, progress: Progress) -> _Fetch:
    place = request.place
    room = Room(place.store, request.reserve)
    where = (place.repository, place.revision, place.files, place.home, place.log, progress, room)
    return PeerFetch(request.peers, *where) if request.peers else Fetch(request.hf, *where)


def _tell_sources(outcome: Outcome, fetch: _Fetch) -> None:
    if isinstance(fetch, PeerFetch):
        outcome.taken_from = list(dict.fromkeys(fetch.served_by))


def _by_path(items: list[Right]) -> list[Right]:
    return sorted(items, key=lambda item: item.file.path)


def _verify(
    request: Request, outcome: Outcome, folder: str, files: t.Sequence[WantedFile], progress: Progress
) -> tuple[list[Right], list[Problem]]:
    total = sum(file.size for file in files)
    progress.start("verify", total)
    right, problems = check_files(folder, files, threads=request.threads, durable=True, read=progress.add)
    outcome.bytes_hashed += total
    return right, problems


def _fetch_again(
    request: Request, outcome: Outcome, fetch: _Fetch, problems: list[Problem], progress: Progress
) -> list[Right]:
    """Fetches the wrong files alone, once. Raises CheckpointError, naming what still is wrong."""
    place = request.place
    files = [problem.file for problem in problems]
    found = [problem.as_dict() for problem in problems]
    progress.start("download", sum(file.size for file in files))
    try:
        fetch.again(files)
    except CheckpointError as error:
        raise CheckpointError(
            f"Wrong in {place.repository} at {place.revision}: {_named(problems)}. {error} "
            "Nothing that is served was changed.",
            found,
        ) from error
    outcome.bytes_downloaded += sum(file.size for file in files)
    right, still = _verify(request, outcome, fetch.folder, files, progress)
    if still:
        # the next run asks for the list anew
        placing.remove_any(place.listing)
        source = "other hosts" if request.peers else request.hf.endpoint
        blame = (
            "A host of this site, or the way to it, spoils what it gives."
            if request.peers
            else "The endpoint gives wrong bytes: try another mirror, or take it up with its operator."
        )
        raise CheckpointError(
            f"Not as {place.repository} at {place.revision} says, fetched twice from {source}: "
            f"{_named(still)}. Nothing that is served was changed. {blame} What is right is kept in {fetch.folder}, "
            "and the next run asks for the list of files anew.",
            [problem.as_dict() for problem in still],
        )
    outcome.fetched_again += found
    return right


def _named(problems: t.Sequence[Problem]) -> str:
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return "; ".join(str(problem) for problem in problems[:5]) + more
