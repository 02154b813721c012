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
import re
import typing as t

from . import manifest as records
from . import place as placing
from . import words
from .errors import CheckpointError, HubUnreachable
from .fetch import Fetch, Hf
from .hub import Hub
from .manifest import Manifest, Stamp, WantedFile
from .place import Owner, Place
from .progress import Progress
from .verify import Problem, Right, check_files, check_meaning, check_sizes

_REVISION = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked for. Sizes in bytes; `full` reads every file again although the stamp still holds."""

    place: Place
    hub: Hub
    hf: Hf
    owner: Owner = dataclasses.field(default_factory=Owner)
    full: bool = False
    threads: int = 0
    reserve: int = 1 << 30
    progress_file: str | None = None


@dataclasses.dataclass
class Outcome:
    """What was found and done; `message` says it in one sentence."""

    changed: bool = False
    message: str = ""
    files: int = 0
    bytes: int = 0
    bytes_downloaded: int = 0
    bytes_hashed: int = 0
    verified_at: str = ""
    manifest_digest: str = ""
    before: str | None = None
    fetched_again: list[dict[str, str]] = dataclasses.field(default_factory=list)
    to_download: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)


def check_names(repository: str, revision: str) -> None:
    """Refuses, with CheckpointError, a repository that is no owner/name and a revision that is no commit."""
    if not _REPOSITORY.fullmatch(repository):
        raise CheckpointError(f"The repository {repository!r} is not of the form owner/name.")
    if not _REVISION.fullmatch(revision):
        raise CheckpointError(
            f"The revision {revision!r} of {repository} is not a pin: branches and tags move. Give the commit as 40 "
            "lower-case hex digits; playbooks/pin.yml looks it up and writes it to the inventory."
        )


def ensure(request: Request, *, check: bool = False) -> Outcome:
    """Makes the checkpoint complete, right and in place; with `check` only says what that would take.

    Raises CheckpointError, after which whatever was served before still is.
    """
    place = request.place
    check_names(place.repository, place.revision)
    outcome = Outcome(before=place.linked())
    if not request.full and _unchanged(request, outcome, check):
        return outcome
    if check:
        _predict(request, outcome)
        return outcome
    with place.locked():
        # another run may have done the work while this one waited
        if request.full or not _unchanged(request, outcome, check):
            _work(request, outcome)
    return outcome


def _unchanged(request: Request, outcome: Outcome, check: bool) -> bool:
    """True if the stamp still holds; then nothing is read, and only link, modes and owner are put right."""
    place = request.place
    manifest = records.load_manifest(place.target, place.repository, place.revision)
    stamp = records.load_stamp(place.target)
    if manifest is None or stamp is None or records.changed_since(place.target, manifest, stamp):
        return False
    _describe(outcome, manifest, stamp)
    outcome.message = f"unchanged since verified on {stamp.verified_at}"
    _settle(request, outcome, manifest, check)
    return True


def _describe(outcome: Outcome, manifest: Manifest, stamp: Stamp) -> None:
    outcome.files, outcome.bytes = len(manifest.files), manifest.size
    outcome.verified_at, outcome.manifest_digest = stamp.verified_at, manifest.digest


def _settle(request: Request, outcome: Outcome, manifest: Manifest, check: bool) -> None:
    """Modes, owner and, last of all, the link."""
    place = request.place
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


def _predict(request: Request, outcome: Outcome) -> None:
    """What a real run would do, from the sizes alone."""
    place = request.place
    outcome.changed = outcome.before != place.target
    try:
        files = _wanted(request)
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
    outcome.message = (
        f"{len(missing)} of {words.number(len(files), 'file')} ({words.size(left)}) would be downloaded, "
        f"{words.size(outcome.bytes)} would be {reading}"
    )
    try:
        _check_room(request, missing)
    except CheckpointError as error:
        outcome.warnings.append(f"A real run would be refused: {error}")


def _work(request: Request, outcome: Outcome) -> None:
    place = request.place
    durations = os.path.join(place.store, "durations.json")
    progress = Progress(request.progress_file or f"{place.staging}.progress.json", durations=durations)
    placing.make_folder(place.files)
    placing.make_folder(place.home)
    os.chmod(place.staging, 0o700)
    present = os.path.isdir(place.target)
    try:
        right = _mend(request, outcome, progress) if present else _bring(request, outcome, progress)
        folder = place.target if present else place.files
        check_meaning(folder, [item.file for item in right])
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
        text += f", {words.size(outcome.bytes_downloaded)} of them downloaded"
    if outcome.fetched_again:
        text += f", fetched again: {', '.join(problem['file'] for problem in outcome.fetched_again)}"
    return text


def _wanted(request: Request) -> tuple[WantedFile, ...]:
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


def _bring(request: Request, outcome: Outcome, progress: Progress) -> list[Right]:
    """Fetches a revision that is not here yet into the staging folder; returns its files, all right."""
    place = request.place
    files = _wanted(request)
    rows = json.dumps([dataclasses.asdict(file) for file in files]).encode()
    placing.write(place.listing, rows)
    missing = [problem.file for problem in check_sizes(place.files, files)]
    fetch = _fetch(request, place.files, progress)
    fetch.clear_halves()
    if missing:
        _check_room(request, missing)
        total = sum(file.size for file in files)
        progress.start("download", total, total - sum(file.size for file in missing))
        fetch.all(files)
        outcome.bytes_downloaded += sum(file.size for file in missing)
    for path in records.strangers(place.files, files):
        os.unlink(os.path.join(place.files, path))
    right, problems = _verify(request, outcome, place.files, files, progress)
    if not problems:
        return right
    return _by_path(right + _fetch_again(request, outcome, fetch, problems, progress))


def _mend(request: Request, outcome: Outcome, progress: Progress) -> list[Right]:
    """Reads a revision that is here already, and replaces what is wrong of it, file by file."""
    place = request.place
    files = _wanted(request)
    right, problems = _verify(request, outcome, place.target, files, progress)
    if not problems:
        return right
    _check_room(request, [problem.file for problem in problems])
    fetch = _fetch(request, place.files, progress)
    fetch.clear_halves()
    mended = _fetch_again(request, outcome, fetch, problems, progress)
    for item in mended:
        goal = os.path.join(place.target, item.file.path)
        placing.make_folder(os.path.dirname(goal))
        if os.path.isdir(goal) and not os.path.islink(goal):
            raise CheckpointError(f"{goal} is a folder where a file belongs: move it away and run again.")
        os.replace(os.path.join(place.files, item.file.path), goal)
    outcome.changed = True
    return _by_path(right + mended)


def _fetch(request: Request, folder: str, progress: Progress) -> Fetch:
    place = request.place
    return Fetch(request.hf, place.repository, place.revision, folder, place.home, place.log, progress)


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
    request: Request, outcome: Outcome, fetch: Fetch, problems: list[Problem], progress: Progress
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
        raise CheckpointError(
            f"Not as {place.repository} at {place.revision} says, fetched twice from {request.hf.endpoint}: "
            f"{_named(still)}. Nothing that is served was changed. The endpoint gives wrong bytes: try another "
            "mirror, or take it up with its operator.",
            [problem.as_dict() for problem in still],
        )
    outcome.fetched_again += found
    return right


def _named(problems: t.Sequence[Problem]) -> str:
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return "; ".join(str(problem) for problem in problems[:5]) + more


def _check_room(request: Request, missing: t.Sequence[WantedFile]) -> None:
    """Refuses, with the arithmetic, a disk that cannot take the missing files and the reserve."""
    place = request.place
    folder, free = placing.free_bytes(place.store)
    need = sum(file.size for file in missing)
    if need + request.reserve > free:
        begun = [f"{path} ({words.size(held)})" for path, held in placing.left_behind(place)]
        litter = f" Begun and not ended by earlier runs: {', '.join(begun)}." if begun else ""
        raise CheckpointError(
            f"{folder} has {words.size(free)} free; {place.repository} still needs {words.size(need)} "
            f"({words.number(len(missing), 'file')}) and {words.size(request.reserve)} shall stay free: "
            f"{words.size(need + request.reserve - free)} are missing. Make room, or give another store.{litter}"
        )
