# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cached artefacts: folders named by a hash of what went in, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from .config import owner
from .shell import FleetError, step


def key_of(inputs: object) -> str:
    """A short hash of JSON-like inputs."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def artefact(cache: Path, kind: str, inputs: object, build: Callable[[Path], None]) -> Path:
    """The folder `kind-HASH` of the cache, built if it is not there.

    `build` fills an empty folder beside it, which is renamed once all is in it: what has the final name
    is complete. What a killed build left under the temporary name is removed first.
    """
    final = cache / f"{kind}-{key_of(inputs)}"
    if final.is_dir():
        return final
    temporary = cache / f".{final.name}.partial"
    remove(temporary)
    temporary.mkdir(parents=True)
    with step(f"make {kind}"):
        build(temporary)
        os.sync()
        temporary.rename(final)
    return final


def remove(path: Path) -> None:
    """Remove a folder of the cache or of the runtime, unless something is mounted in it."""
    if not path.is_symlink() and not path.exists():
        return
    inside = [mount for mount in mount_points() if mount == str(path) or mount.startswith(f"{path}/")]
    if inside:
        raise FleetError(f"{inside[0]} is still mounted; `python3 -m fleet down` first")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def mount_points() -> list[str]:
    """Mount points of this mount namespace."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].replace("\\040", " ") for line in lines]


def lower_layers_in_use() -> set[str]:
    """Folders that serve as an overlay's lower layer in any process's mount namespace."""
    used: set[str] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "mountinfo").read_text()
        except OSError:
            continue
        for word in text.replace(",", " ").split():
            if word.startswith("lowerdir="):
                used.update(word.removeprefix("lowerdir=").split(":"))
    return used


def prune(cache: Path, keep: Iterable[Path]) -> None:
    """Remove older artefacts of the kinds in `keep`, and partial ones, but none that a node stands on."""
    kept = list(keep)
    kinds = {path.name.rsplit("-", 1)[0] for path in kept}
    used = lower_layers_in_use()
    for path in cache.iterdir():
        old = path.name.rsplit("-", 1)[0] in kinds and path not in kept
        if (old or path.name.endswith(".partial")) and str(path) not in used:
            remove(path)


def hand_over(path: Path) -> None:
    """Give a file or folder of the cache to the user who invoked through sudo."""
    user = owner()
    for entry in [path, *(path.rglob("*") if path.is_dir() else [])]:
        os.chown(entry, user.pw_uid, user.pw_gid, follow_symlinks=False)
