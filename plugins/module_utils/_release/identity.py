# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes one release another: its identity and its folder. Private to the collection."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RECORD = "release.json"
SCHEMA = 1


def digest(value: Any) -> str:
    """Return the SHA-256 of a value in canonical JSON, hexadecimal."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def lock_entries(lock: str) -> list[str]:
    """Return what a lock pins, as `name==version sha256:…` lines: names, versions, markers and digests, never a URL."""
    entries: list[str] = []
    for line in re.sub(r"\\\r?\n", " ", lock).splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text or text.startswith("-"):
            continue
        hashes = sorted(re.findall(r"\s--hash[= ](\S+)", text))
        requirement = re.sub(r"\s--hash[= ]\S+", "", text)
        requirement = re.sub(r"\s*@\s*\S+", "", requirement)  # where it is had from
        entries.append(" ".join([*requirement.split(), *hashes]))
    return sorted(entries)


def inputs(
    *,
    commit: str,
    version: str,
    patch_sets: Sequence[Mapping[str, Any]],
    lock: str,
    interpreter: str,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Return all that a release is made of. Two hosts with the same inputs have the same release.

    interpreter: such as "cpython 3.11.2 x86_64"; environment: the build's own flags, without proxies and mirrors.
    """
    return {
        "schema": SCHEMA,
        "commit": commit,
        "version": version,
        "patch_sets": [_without_prose(one) for one in patch_sets],
        "lock": lock_entries(lock),
        "interpreter": interpreter,
        "environment": dict(environment),
    }


def made_from(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `inputs` returned as far as it can be told: packages by version, digests where there is much text."""
    lock = [str(line).partition(" ")[0] for line in parts.get("lock", ())]
    return {
        "interpreter": str(parts.get("interpreter", "")),
        "packages": dict(line.split("==", 1) for line in lock if "==" in line),
        "patch_sets": {str(one.get("name")): digest(one) for one in parts.get("patch_sets", ())},
        "environment": {str(name): str(value) for name, value in parts.get("environment", {}).items()},
    }


def _without_prose(patch_set: Mapping[str, Any]) -> dict[str, Any]:
    """A patch set without the words that explain it: the same edits for another reason are the same edits."""
    edits = [
        {key: value for key, value in edit.items() if key != "reason"} if isinstance(edit, Mapping) else edit
        for edit in patch_set.get("edits", ())
    ]
    return {**{key: value for key, value in patch_set.items() if key != "summary"}, "edits": edits}


def release_id(version: str, parts: Mapping[str, Any]) -> str:
    """Return the name of a release's folder: readable first, exact at the end (64 bits of SHA-256)."""
    return f"{version}-{parts['commit'][:9]}-{digest(parts)[:16]}"


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return a finished release's record; None when the folder is debris or not there.

    Raises OSError when the record is there and cannot be read, for then nothing is known and nothing may be removed.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("id") == folder.name else None


def debris(releases: Path) -> list[Path]:
    """Return the folders of `releases` that never became a release; a link to one is none."""
    if not releases.is_dir():
        return []
    folders = [path for path in releases.iterdir() if path.is_dir() and not path.is_symlink()]
    return sorted(path for path in folders if read_record(path) is None)


def remove_debris(folder: Path) -> None:
    """Remove what a build that died left at `folder`; a finished release is never touched. Raises OSError."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists() and read_record(folder) is None:
        shutil.rmtree(folder)
