# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint should be (manifest) and what was seen of it (stamp). PRIVATE to the collection: it can
change at any time.

The manifest says what the revision holds and is the same, byte for byte, on every host. The stamp says which
files on this host were found to match it, and when: as long as size, mtime and inode of each file stay as
they were, they need not be hashed again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import posixpath
import re
import stat
import typing as t

MANIFEST = ".llmfleet-manifest.json"
STAMP = ".llmfleet-stamp.json"
INDEX = "model.safetensors.index.json"
TRASH = ".cache"
# What `hf` keeps about a folder that it downloads to; the rest of .cache is somebody else's.
DOWNLOADS = ".cache/huggingface"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class WantedFile:
    """A file of the revision: path relative to the checkpoint, size in bytes, and one digest at least."""

    path: str
    size: int
    sha256: str = ""
    git_oid: str = ""

    @classmethod
    def checked(cls, path: str, size: int, *, sha256: str = "", git_oid: str = "") -> WantedFile:
        """Refuses, with ValueError, what could leave the checkpoint's folder or cannot be verified."""
        parts = path.split("/")
        reserved = path in (MANIFEST, STAMP) or parts[0] == TRASH
        if reserved or posixpath.isabs(path) or "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"the path {path!r} is not one that a checkpoint may have")
        if size < 0:
            raise ValueError(f"{path} has the size {size}")
        if sha256 and not _SHA256.fullmatch(sha256):
            raise ValueError(f"{path} has no SHA-256 but {sha256!r}")
        if not sha256 and not _SHA1.fullmatch(git_oid):
            raise ValueError(f"{path} has no git blob id but {git_oid!r}")
        return cls(path, size, sha256, git_oid)

    def is_content(self, content: bytes) -> bool:
        """Whether these bytes are the file's, for files that are small enough to be held."""
        if len(content) != self.size:
            return False
        if self.sha256:
            return hashlib.sha256(content).hexdigest() == self.sha256
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == self.git_oid


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The files of one revision, each with its SHA-256."""

    repository: str
    revision: str
    files: tuple[WantedFile, ...]

    def encoded(self) -> bytes:
        rows = [{"path": f.path, "size": f.size, "sha256": f.sha256} for f in self.files]
        content = {
            "format": _FORMAT,
            "repository": self.repository,
            "revision": self.revision,
            "files": sorted(rows, key=lambda row: str(row["path"])),
        }
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest's own bytes."""
        return hashlib.sha256(self.encoded()).hexdigest()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclasses.dataclass(frozen=True)
class Seen:
    """A file's identity on this host when its content was read: size, mtime in nanoseconds, inode."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Seen:
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


@dataclasses.dataclass(frozen=True)
class Stamp:
    """Which files were found to match the manifest of that digest, and when (UTC, ISO 8601)."""

    manifest_digest: str
    verified_at: str
    files: dict[str, Seen]

    def encoded(self) -> bytes:
        rows = {path: [seen.size, seen.mtime_ns, seen.inode] for path, seen in sorted(self.files.items())}
        content = {
            "format": _FORMAT,
            "manifest_digest": self.manifest_digest,
            "verified_at": self.verified_at,
            "files": rows,
        }
        return (json.dumps(content, indent=1) + "\n").encode()


def _load(path: str) -> dict[str, t.Any] | None:
    """A JSON object of our format; None if it is not there or not readable as one."""
    try:
        with open(path, "rb") as stream:
            content = json.load(stream)
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return None
    return content


def load_manifest(folder: str, repository: str, revision: str) -> Manifest | None:
    """The manifest in `folder`, if it is sound and of that repository and revision."""
    content = _load(os.path.join(folder, MANIFEST))
    if content is None:
        return None
    try:
        files = tuple(
            WantedFile.checked(str(row["path"]), int(row["size"]), sha256=str(row["sha256"]))
            for row in content["files"]
        )
    except (KeyError, TypeError, ValueError):
        return None
    manifest = Manifest(repository, revision, files)
    named = (content.get("repository"), content.get("revision"))
    return manifest if files and named == (repository, revision) else None


def load_stamp(folder: str) -> Stamp | None:
    """The stamp in `folder`, if it is sound."""
    content = _load(os.path.join(folder, STAMP))
    if content is None:
        return None
    try:
        files = {path: Seen(int(row[0]), int(row[1]), int(row[2])) for path, row in content["files"].items()}
        return Stamp(str(content["manifest_digest"]), str(content["verified_at"]), files)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def changed_since(folder: str, manifest: Manifest, stamp: Stamp) -> list[str]:
    """Paths of the manifest that are not, by size, mtime and inode, the files that the stamp vouches for."""
    if stamp.manifest_digest != manifest.digest:
        return [file.path for file in manifest.files]
    return [
        file.path
        for file in manifest.files
        if stamp.files.get(file.path) is None or look(folder, file.path) != stamp.files[file.path]
    ]


def look(folder: str, path: str) -> Seen | None:
    """What lies at `path` in `folder`: None unless it is a regular file (a link is not)."""
    try:
        status = os.lstat(os.path.join(folder, path))
    except OSError:
        return None
    return Seen.of(status) if stat.S_ISREG(status.st_mode) else None


def strangers(folder: str, files: t.Iterable[WantedFile]) -> list[str]:
    """Files in `folder` that are neither the revision's nor ours nor the downloader's, sorted."""
    known = {file.path for file in files} | {MANIFEST, STAMP}
    found = []
    for base, folders, names in os.walk(folder):
        if base == os.path.join(folder, TRASH):
            folders[:] = [name for name in folders if name != os.path.basename(DOWNLOADS)]
        found += [os.path.relpath(os.path.join(base, name), folder) for name in names]
    return sorted(path for path in found if path not in known)
