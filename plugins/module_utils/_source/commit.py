# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write all files or none, also across a kill: PRIVATE to the collection, may change at any time.

Order: journal (with the old bytes), new files beside the old ones, renames, record, end of the journal.
A journal that a run finds says that one before it was killed; `recover` finishes or undoes that one.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import glob
import json
import os
import shutil
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from .errors import SourceError
from .record import Record, digest
from .tree import Tree

Journal = dict[str, Any]
SUFFIX = ".python_source.new"


class Change(NamedTuple):
    """The bytes of a file before and after."""

    before: bytes
    after: bytes


def journal_name(tree: Tree) -> str:
    """Return the journal's file name in the tree's folder."""
    return Record.name(tree)[: -len(".json")] + ".journal.json"


@contextlib.contextmanager
def locked(tree: Tree) -> Iterator[None]:
    """Hold the tree for this process.

    :raises SourceError: another process holds it.
    """
    handle = os.open(tree.folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise SourceError(f"another run is editing {tree.folder}; wait for it and run again") from exc
        except OSError as exc:
            if exc.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise
        yield
    finally:
        os.close(handle)


def check_writable(tree: Tree, name: str) -> None:
    """Check that a file may be replaced.

    :raises SourceError: it or its folder is read-only.
    """
    path = tree.path(name)
    if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
        raise SourceError("is read-only", name)
    if not os.access(os.path.dirname(path), os.W_OK) or not os.access(tree.folder, os.W_OK):
        raise SourceError("stands in a folder that is read-only for this user", name)


def commit(tree: Tree, changes: dict[str, Change], record: Record) -> None:
    """Replace the files and write the record: all of it or, when this fails, nothing.

    :raises SourceError: a file changed meanwhile, or the file system said no.
    """
    journal: Journal = {
        "version": 1,
        "record": record.to_data(),
        "files": {
            name: {
                "before": digest(change.before),
                "after": digest(change.after),
                "old": base64.b64encode(change.before).decode(),
            }
            for name, change in changes.items()
        },
    }
    path = os.path.join(tree.folder, journal_name(tree))
    try:
        _write(path, json.dumps(journal).encode())
        try:
            for name, change in changes.items():
                _prepare(tree.path(name), change.after)
            for name, change in changes.items():
                if digest(_read(tree.path(name))) != digest(change.before):
                    raise SourceError("changed while it was being edited; run again", name)
            for name in changes:
                os.replace(tree.path(name) + SUFFIX, tree.path(name))
            for folder in {os.path.dirname(tree.path(name)) for name in changes}:
                _sync_folder(folder)
            _write_record(tree, record)
        except BaseException:
            _roll_back(tree, journal)
            raise
        with contextlib.suppress(OSError):
            # all is done; a journal that stays is removed by the next run
            os.unlink(path)
    except OSError as exc:
        raise SourceError(f"cannot write below {tree.folder}: {exc.strerror}: {exc.filename}") from exc
    for name in changes:
        _drop_stale_cache(tree.path(name))


def _load_journal(path: str) -> Journal | None:
    """Return a journal, or None where there is none.

    :raises SourceError: it is not as we write it.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            journal = json.load(stream)
        Record.from_data(journal["record"])
        for entry in journal["files"].values():
            base64.b64decode(entry["old"], validate=True)
            if not all(isinstance(entry[side], str) for side in ("before", "after")):
                raise ValueError("a digest is no text")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SourceError) as exc:
        raise SourceError(f"the journal {path} cannot be read ({exc!r}); restore or remove it") from exc
    return journal if isinstance(journal, dict) else None


def recover(tree: Tree, check: bool) -> list[str]:
    """Finish or undo a run that was killed; in check mode only as an appearance.

    :returns: one line per thing that was (or would be) done.
    :raises SourceError: it cannot be done.
    """
    path = os.path.join(tree.folder, journal_name(tree))
    for name in (path, os.path.join(tree.folder, Record.name(tree))) if not check else ():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{name}.tmp")
    journal = _load_journal(path)
    if journal is None:
        return []
    files = journal["files"]
    found = {name: _digest_or_none(tree, name) for name in files}
    if all(found[name] == files[name]["after"] for name in files):
        complete = Record.load(tree).to_data() == journal["record"]
        if not check:
            _write_record(tree, Record.from_data(journal["record"]))
            _clean(tree, journal)
        return [] if complete else ["an earlier run was killed after its last file; its record was completed"]
    lines = []
    for name, entry in files.items():
        if found[name] == entry["after"] and entry["after"] != entry["before"]:
            lines.append(f"{name}: an earlier run was killed half way; the file was restored")
            tree.overlay(name, base64.b64decode(entry["old"]))
        elif found[name] != entry["before"]:
            lines.append(f"{name}: an earlier run was killed half way, and the file changed since; left alone")
    if not check:
        _roll_back(tree, journal)
    return lines or ["an earlier run was killed before its first file; its remains were removed"]


def recovered_record(tree: Tree) -> Record | None:
    """Return the record that `recover` would complete, for check mode; None where it would not."""
    journal = _load_journal(os.path.join(tree.folder, journal_name(tree)))
    if journal is None:
        return None
    files = journal["files"]
    if all(_digest_or_none(tree, name) == entry["after"] for name, entry in files.items()):
        return Record.from_data(journal["record"])
    return None


def _digest_or_none(tree: Tree, name: str) -> str | None:
    try:
        return digest(_read(tree.path(name)))
    except (OSError, SourceError):
        return None


def _roll_back(tree: Tree, journal: Journal) -> None:
    for name, entry in journal["files"].items():
        if entry["after"] != entry["before"] and _digest_or_none(tree, name) == entry["after"]:
            path = tree.path(name)
            _prepare(path, base64.b64decode(entry["old"]))
            os.replace(path + SUFFIX, path)
            _sync_folder(os.path.dirname(path))
            _drop_stale_cache(path)
    _clean(tree, journal)


def _clean(tree: Tree, journal: Journal) -> None:
    for name in journal["files"]:
        with contextlib.suppress(OSError, SourceError):
            os.unlink(tree.path(name) + SUFFIX)
    _remove(os.path.join(tree.folder, journal_name(tree)))


def _write_record(tree: Tree, record: Record) -> None:
    path = os.path.join(tree.folder, Record.name(tree))
    if record.files:
        _write(path, record.to_bytes())
    elif os.path.exists(path):
        _remove(path)


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def _write(path: str, raw: bytes) -> None:
    """Write one of our own files, whole or not at all."""
    _write_new(path + ".tmp", raw, 0o644)
    os.replace(path + ".tmp", path)
    _sync_folder(os.path.dirname(path))


def _write_new(path: str, raw: bytes, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(handle, "wb") as stream:
        if os.geteuid() == 0:
            # root leaves nothing of its own in another user's tree
            owner = os.stat(os.path.dirname(path))
            os.fchown(stream.fileno(), owner.st_uid, owner.st_gid)
        stream.write(raw)
        stream.flush()
        os.fsync(stream.fileno())


def _prepare(path: str, raw: bytes) -> None:
    """Write the new file beside the old one, with its owner, mode and extended attributes."""
    new = path + SUFFIX
    _write_new(new, raw, 0o600)
    status = os.stat(path)
    if os.stat(new).st_uid != status.st_uid or os.stat(new).st_gid != status.st_gid:
        try:
            os.chown(new, status.st_uid, status.st_gid)
        except PermissionError:
            # the group of another user's file; Ansible's own modules go on here too
            with contextlib.suppress(PermissionError):
                os.chown(new, -1, status.st_gid)
    times = os.stat(new)
    # modes, ACLs and the SELinux context
    shutil.copystat(path, new)
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _drop_stale_cache(path: str) -> None:
    """Remove compiled files that Python would take for those of the new source."""
    folder, name = os.path.split(path)
    for cached in glob.glob(os.path.join(glob.escape(folder), "__pycache__", f"{glob.escape(name[:-3])}.*.pyc")):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            with open(cached, "rb") as stream:
                header = stream.read(16)
            if len(header) == 16:
                flags, mtime, size = struct.unpack("<4xIII", header)
                if flags or (mtime, size) == (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF):
                    os.unlink(cached)
