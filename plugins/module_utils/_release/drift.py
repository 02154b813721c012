# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a release since it was built: files edited by hand, packages changed. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import importlib.metadata
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._release import listing
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.record import file_digest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.source import owner_of, run_git

# What the build itself leaves in the tree, beside what the commit has.
_OURS = (".python_source.json", "_version.py")
_LIST = """
import importlib.metadata, json, platform
print(json.dumps({"python": platform.python_version(),
    "packages": sorted(f"{d.metadata['Name']}=={d.version}" for d in importlib.metadata.distributions())}))
"""


class CannotCompare(RuntimeError):
    """A release cannot be looked at; the message says why."""


@dataclass(frozen=True)
class Drift:
    """One thing that is not as it was built. kind: patched_file, tree, package, file (of a package) or interpreter."""

    kind: str
    name: str
    expected: str
    found: str

    def as_dict(self) -> dict[str, str]:
        """Return it as a module returns it."""
        return asdict(self)


def compare(
    folder: Path, record: Mapping[str, Any], ask: Callable[[Path], Mapping[str, Any]] | None = None
) -> list[Drift]:
    """Compare a finished release with its record. Raises CannotCompare and GitError.

    ask: what tells the interpreter's version and its packages; without it the release's own interpreter does.
    """
    digests, commit = record.get("digests", {}), str(record.get("inputs", {}).get("commit", ""))
    return [
        *patched_files(folder, digests),
        *tree_changes(git_status(folder / "src", commit), digests),
        *packages(record, (ask or ask_interpreter)(folder)),
        *package_files(folder),
    ]


def package_files(folder: Path) -> list[Drift]:
    """Compare the packages' files with those of the build, by size and time of change. Raises CannotCompare."""
    try:
        before = listing.read(folder)
    except (OSError, ValueError) as error:
        raise CannotCompare(f"the list of its packages' files cannot be read: {error}") from error
    found = listing.differences(before, listing.take(folder)) if before is not None else []
    return [Drift("file", path, "as installed", what) for path, what in found]


def patched_files(folder: Path, digests: Mapping[str, str]) -> list[Drift]:
    """Compare each patched file with its digest at the build."""
    found = []
    for name, expected in sorted(digests.items()):
        path = folder / name
        digest = file_digest(path) if path.is_file() else "missing"
        if digest != expected:
            found.append(Drift("patched_file", name, expected, digest))
    return found


def git_status(tree: Path, commit: str = "") -> list[tuple[str, str]]:
    """Return what Git sees changed in the tree: pairs of its two letters and the path.

    commit: what a tree is compared with whose link to the mirror is gone, since the mirror was made anew.
    """
    mirror = _unlinked_mirror(tree)
    if mirror is not None and commit:
        return _compare_with(mirror, commit, tree)
    command = ["-C", str(tree), "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all"]
    fields = run_git([*command, "--no-renames"], owner=owner_of(tree)).split("\0")
    return [(field[:2], field[3:]) for field in fields if field]


def _unlinked_mirror(tree: Path) -> Path | None:
    """Return the mirror that a worktree is of, if that does not know it any more; None when all is well."""
    try:
        kept = Path((tree / ".git").read_text(encoding="utf-8").partition(":")[2].strip())
    except (OSError, ValueError):
        return None
    try:
        # A worktree that was made later may have been given the name.
        if Path((kept / "gitdir").read_text(encoding="utf-8").strip()).resolve() == (tree / ".git").resolve():
            return None
    except OSError:
        pass
    return kept.parent.parent


def _compare_with(mirror: Path, commit: str, tree: Path) -> list[tuple[str, str]]:
    """Say what `git status` says, with an index made for it: the worktree has none any more. Raises GitError."""
    owner = owner_of(tree)
    git = ["-C", str(tree), "--no-optional-locks", "--git-dir", str(mirror), "--work-tree", str(tree)]
    with tempfile.TemporaryDirectory(prefix="llmfleet-index-") as scratch:
        if owner:
            os.chown(scratch, *owner)
        index = {"GIT_INDEX_FILE": os.path.join(scratch, "index")}
        run_git([*git, "read-tree", commit], owner=owner, environment=index)
        diff = [*git, "diff", "--no-ext-diff", "--no-renames", "--name-status", "-z"]
        fields = run_git(diff, owner=owner, environment=index).split("\0")
        others = run_git([*git, "ls-files", "--others", "--exclude-standard", "-z"], owner=owner, environment=index)
    changed = [(f" {letter}", path) for letter, path in zip(fields[::2], fields[1::2])]
    return [*changed, *(("??", path) for path in others.split("\0") if path)]


def tree_changes(status: Sequence[tuple[str, str]], digests: Mapping[str, str]) -> list[Drift]:
    """Say which files of the tree are neither the commit's, nor patched, nor left by the build."""
    found = []
    for letters, path in status:
        parts = Path(path).parts
        ours = parts[-1] in _OURS or any(part == "__pycache__" or part.endswith(".egg-info") for part in parts)
        if f"src/{path}" in digests or (letters == "??" and ours):
            continue
        what = {"?": "not of the commit", "D": "removed"}.get(letters.strip()[:1], "edited")
        found.append(Drift("tree", f"src/{path}", "as the commit has it", what))
    return found


def ask_interpreter(folder: Path) -> dict[str, Any]:
    """Ask the release's own interpreter which packages it has."""
    command = [str(folder / "venv" / "bin" / "python"), "-I", "-c", _LIST]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd="/")
        answer: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CannotCompare(f"the interpreter {command[0]} does not answer: {error}") from error
    return answer


def installed(folder: Path) -> dict[str, Any]:
    """Say what `ask_interpreter` says, from the files alone, which takes a tenth of the time."""
    environment = folder / "venv"
    try:
        settings = (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError as error:
        raise CannotCompare(f"there is no environment in {environment}: {error}") from error
    version = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+\.\d+)", settings, re.MULTILINE)
    paths = [str(path) for path in environment.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(path=[*paths, str(folder / "src" / "python")])
    return {
        "python": version[1] if version else "",
        "packages": sorted(f"{one.metadata['Name']}=={one.version}" for one in found),
    }


def packages(record: Mapping[str, Any], found: Mapping[str, Any]) -> list[Drift]:
    """Compare interpreter and packages with those of the build."""
    drift = []
    if record.get("python") != found["python"]:
        drift.append(Drift("interpreter", "python", str(record.get("python")), found["python"]))
    before, now = _versions(record.get("packages", [])), _versions(found["packages"])
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            drift.append(Drift("package", name, before.get(name, "not there"), now.get(name, "not there")))
    return drift


def _versions(lines: Sequence[str]) -> dict[str, str]:
    return dict(line.split("==", 1) for line in lines)
