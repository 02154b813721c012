# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a host for the release that the inputs make and all that a build makes sure of; change nothing. Private."""

from __future__ import annotations

import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._release import (
    drift,
    host,
    identity,
    interpreter,
    lock,
    source,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.flags import build_flags
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs, needs_of


@dataclass(frozen=True)
class Wanted:
    """What a deployment asks for. tool: the folder of uv's own environment; device: "cpu" where no card serves."""

    root: Path
    commit: str
    version: str
    patch_sets: Sequence[Mapping[str, Any]]
    rules: Sequence[Mapping[str, Any]]
    python: str
    overrides: str
    uv_version: str
    flags: Mapping[str, Any]
    device: str
    compute_capability: str
    tool: Path
    users: Sequence[str]
    folders: Sequence[Path]
    owner: str

    @property
    def mirror(self) -> Path:
        """The bare mirror of the source."""
        return self.root / "mirror" / "sglang.git"


@dataclass
class Found:
    """What is there. missing: what a release is made from and is not there, a phrase each; lock: the lock's text.

    describe: what Git says of the commit; interpreter: what the release runs on, "" without a commit. Without a commit
    or a lock there is no identifier yet.
    """

    missing: list[str] = field(default_factory=list)
    lock: str = ""
    describe: str = ""
    interpreter: str = ""
    id: str = ""
    path: str = ""
    built: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    compilers: dict[str, str] = field(default_factory=dict)
    drift: list[dict[str, str]] = field(default_factory=list)


def look(wanted: Wanted) -> Found:
    """Look at the host. Raises OSError, ValueError, InterpreterError and GitError when it cannot be looked at."""
    found = Found(missing=_missing(wanted))
    if not source.has_commit(wanted.mirror, wanted.commit, owned=True):
        found.missing.append(f"the commit {wanted.commit} in {wanted.mirror}")
        return found
    found.describe = source.describe(wanted.mirror, wanted.commit, owned=True)
    needs = needs_of(wanted.rules, wanted.version) if wanted.rules else Needs()
    described = found.interpreter = interpreter.describe(wanted.python)
    found.lock = _lock(wanted, needs, described)
    if not found.lock:
        found.missing.append(f"a lock of its packages in {wanted.root / 'locks'}")
        return found
    flags, found.compilers = build_flags(
        needs,
        wanted.flags,
        version=wanted.version,
        commit=wanted.commit,
        describe=found.describe,
        capabilities=_capabilities(wanted),
        jobs=host.jobs(host.cores(), host.read_memory()),
    )
    found.inputs = identity.inputs(
        commit=wanted.commit,
        version=wanted.version,
        patch_sets=wanted.patch_sets,
        lock=found.lock,
        interpreter=described,
        environment=flags,
    )
    found.id = identity.release_id(wanted.version, found.inputs)
    folder = wanted.root / "releases" / found.id
    found.path = str(folder)
    record = identity.read_record(folder)
    found.built = record is not None
    if record is not None:
        try:
            found.drift = [one.as_dict() for one in drift.compare(folder, record, drift.installed)]
        except (drift.CannotCompare, source.GitError) as error:
            # It may be the one that serves, so nobody is told to remove it.
            raise ValueError(
                f"the finished release {folder} cannot be compared with its record: {error}. It may serve: see what "
                f"names it (grep -rl {found.id} /etc/systemd/system /var/lib/llmfleet); where nothing does, move it "
                "away, and the next run builds it again; else deploy another release first, one with another "
                "sglang_build_environment"
            ) from error
    return found


def _missing(wanted: Wanted) -> list[str]:
    """Which users, folders and tools are not there, or are somebody else's."""
    missing = [f"the user {name}" for name in wanted.users if _uid(name) is None]
    owner = _uid(wanted.owner)
    for folder in wanted.folders:
        if not folder.is_dir() or folder.stat().st_uid != owner:
            missing.append(f"the folder {folder} of {wanted.owner}")
    if not ((wanted.tool / ".complete").exists() and (wanted.tool / "bin" / "uv").exists()):
        missing.append(f"uv {wanted.uv_version} in {wanted.tool}")
    return missing


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _lock(wanted: Wanted, needs: Needs, described: str) -> str:
    request = lock.LockRequest(
        pyproject=source.show(wanted.mirror, wanted.commit, "python/pyproject.toml", owned=True),
        overrides=wanted.overrides,
        python=wanted.python,
        uv=str(wanted.tool / "bin" / "uv"),
        uv_version=wanted.uv_version,
        extras=needs.extras,
        prerelease=needs.prerelease,
    )
    path = wanted.root / "locks" / f"{request.key(described)}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _capabilities(wanted: Wanted) -> list[str]:
    """The cards' capabilities; without a driver to ask, what the deployment says."""
    if wanted.device == "cpu":
        return []
    return host.read_capabilities() or [wanted.compute_capability]
