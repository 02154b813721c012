# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases stay on a host, and which go. Private to the collection.

A release stays if anything names it: a unit file or a drop-in, whoever made it; a file of a host record, such as the
snapshot that a rollback goes back to (its unit files are in base64); a process, by its command line, its environment,
what it has mapped, its executable or its folder. Of the others, the newest fill up the number to keep.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import RECORD, debris, read_record

UNITS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
PROC = "/proc"
CACHES = "/var/cache"
# Far more than a unit or a snapshot has.
_LARGEST = 16 << 20

# Folders of a host record: what once answered, and what was rejected, keep no release from going.
NOT_COUNTED = ("answered", "rejected")

Text = tuple[str, bytes]


class CannotTell(RuntimeError):
    """What might name a release cannot be read, so none may be removed; the message says what."""


@dataclass(frozen=True)
class Places:
    """Where to look. state: folder of the host records; units: folders of unit files."""

    root: Path
    state: Path
    units: tuple[Path, ...] = tuple(Path(one) for one in UNITS)
    proc: Path = Path(PROC)
    caches: Path = Path(CACHES)

    @property
    def releases(self) -> Path:
        """The folder of the releases."""
        return self.root / "releases"


@dataclass
class Verdict:
    """What stays and what goes. kept: why each release stays; remove: finished releases; debris: dead builds."""

    kept: dict[str, str] = field(default_factory=dict)
    remove: list[Path] = field(default_factory=list)
    debris: list[Path] = field(default_factory=list)

    @property
    def all(self) -> list[Path]:
        """Every folder that goes."""
        return [*self.remove, *self.debris]


def judge(places: Places, keep: int, debris_age: float, now: float | None = None, deployed: str = "") -> Verdict:
    """Say what stays and what goes. Changes nothing; raises CannotTell and OSError.

    keep: how many finished releases stay at least; debris_age: seconds since a dead build was touched last, for one
    that is younger may be under way; deployed: the release that is deployed, which stays; a check run has not built it.
    """
    finished = _finished(places.releases)
    dead = [path for path in debris(places.releases) if (now or time.time()) - _touched(path) >= debris_age]
    verdict = Verdict()
    if deployed:
        verdict.kept[deployed] = "deployed"
    # Who names what matters only where something would go.
    some_go = dead or len({*verdict.kept, *(path.name for path in finished)}) > keep
    named = where_named([path.name for path in (*finished, *dead)] if some_go else [], places)
    for path in finished:
        if path.name in named:
            verdict.kept.setdefault(path.name, named[path.name])
    for path in finished:
        if path.name in verdict.kept:
            continue
        if len(verdict.kept) < keep:
            verdict.kept[path.name] = "among the newest"
        else:
            verdict.remove.append(path)
    verdict.debris += [path for path in dead if path.name not in named and path.name != deployed]
    return verdict


def remove(path: Path, caches: Path) -> None:
    """Remove a release, its compilers' caches last. Killed in the middle, it is debris. Raises OSError."""
    (path / RECORD).unlink(missing_ok=True)
    shutil.rmtree(path)
    for cache in caches.glob(f"*/{path.name}"):
        if cache.is_dir() and not cache.is_symlink():
            shutil.rmtree(cache)


def _finished(releases: Path) -> list[Path]:
    """Finished releases, the newest first."""
    if not releases.is_dir():
        return []
    found = []
    for path in releases.iterdir():
        record = read_record(path) if path.is_dir() and not path.is_symlink() else None
        if record is not None:
            found.append((str(record.get("built_at", "")), path))
    return [path for _built_at, path in sorted(found, reverse=True)]


def _touched(folder: Path) -> float:
    """When something was last made in a build's folder, or in the first two levels under it."""
    paths = [folder, *folder.glob("*"), *folder.glob("*/*")]
    times = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            times.append(path.lstat().st_mtime)
    return max(times, default=0.0)


def where_named(names: Iterable[str], places: Places) -> dict[str, str]:
    """Which of the names stand in a unit, a host record or a process, and where. Raises CannotTell."""
    wanted = {name: name.encode() for name in names}
    found: dict[str, str] = {}
    for where, text in _texts(places) if wanted else ():
        for name, needle in wanted.items():
            if name not in found and needle in text:
                found[name] = where
    return found


def _texts(places: Places) -> Iterator[Text]:
    for folder in places.units:
        for path in _files(folder):
            yield f"named in {path}", _read(path)
    for path in _files(places.state):
        if path.parent.name in NOT_COUNTED:
            continue
        content = _read(path)
        yield f"named in {path}", content
        if path.suffix == ".json":
            yield from ((f"named in {path}", text) for text in _decoded(path, content))
    yield from _processes(places.proc)


def _files(folder: Path) -> Iterator[Path]:
    for parent, _folders, names in os.walk(folder, onerror=_refuse):
        yield from (Path(parent, name) for name in sorted(names))


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise CannotTell(f"{error.filename} cannot be read ({error.strerror})") from error


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():  # a socket, a link to nothing, or /dev/null for a masked unit
            return b""
        if path.stat().st_size > _LARGEST:
            raise CannotTell(f"{path} is larger than any unit or record")
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise CannotTell(f"{path} cannot be read ({error.strerror})") from error


def _decoded(path: Path, content: bytes) -> Iterator[bytes]:
    """What a host record holds in base64. A record that is no JSON may hold anything."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise CannotTell(f"{path} is no JSON") from error
    for text in _strings(value):
        with contextlib.suppress(binascii.Error, ValueError):
            yield base64.b64decode(text, validate=True)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _processes(proc: Path) -> Iterator[Text]:
    """What processes say of themselves; one that ends meanwhile names nothing any more."""
    for folder in proc.glob("[0-9]*"):
        if folder.name == "1":  # init runs no release, and not every kernel lets even root look into it
            continue
        where = f"in use by process {folder.name}"
        for name in ("cmdline", "environ", "maps"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                try:
                    yield where, (folder / name).read_bytes()
                except PermissionError as error:
                    raise CannotTell(f"{folder / name} cannot be read: run as root") from error
        for name in ("exe", "cwd", "root"):
            with contextlib.suppress(OSError):
                yield where, os.readlink(folder / name).encode()
