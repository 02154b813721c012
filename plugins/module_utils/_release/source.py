# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare mirror of the source on the host, and worktrees of it. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls

# Git must neither ask for a password nor read the configuration of whoever runs it.
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}

# Receiving objects:  45% (123/456), 12.00 MiB | 3.00 MiB/s
_COUNTED = re.compile(r"(?:remote: )?(?P<what>[A-Z][a-z ]+): +\d+% \((?P<done>\d+)/(?P<total>\d+)\)")


class GitError(RuntimeError):
    """Git refused; the message says what was tried and what Git said."""


def run_git(
    arguments: list[str],
    *,
    timeout: float = 3600,
    environment: dict[str, str] | None = None,
    owner: tuple[int, int] | None = None,
) -> str:
    """Run git and return its standard output. Raises GitError with Git's last words.

    owner: the user and group to run it as, where the caller is root and the repository is somebody else's.
    """
    command = ["git", *arguments]
    shown = redact_urls(f"`{' '.join(command)}`")
    try:
        done = subprocess.run(
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(environment or {}), **_QUIET},
            user=owner[0] if owner else None,
            group=owner[1] if owner else None,
            extra_groups=[] if owner else None,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed on this host") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"{shown} took longer than {timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise GitError(
            f"{shown} failed: {_last_words(error.stderr or error.stdout or '', error.returncode)}"
        ) from error
    return done.stdout


def _run_told(arguments: list[str], progress: Progress, environment: dict[str, str], timeout: float = 6 * 3600) -> None:
    """Run a transfer of Git's and tell how far it is. Raises GitError."""
    command = ["git", *arguments]
    shown = redact_urls(f"`{' '.join(command)}`")
    said: list[str] = []
    try:
        git = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,  # ends a line at a carriage return too, which is how Git rewrites its progress
            errors="replace",
            env={**os.environ, **environment, **_QUIET},
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed on this host") from error
    watch = threading.Timer(timeout, git.kill)
    watch.start()
    with git:
        for line in git.stderr or ():
            if not _tell(line, progress):
                said = [*said[-50:], line]
    late = not watch.is_alive()
    watch.cancel()
    if late:
        raise GitError(f"{shown} took longer than {timeout:.0f} s")
    if git.returncode:
        raise GitError(f"{shown} failed: {_last_words(''.join(said), git.returncode)}")


def _tell(line: str, progress: Progress) -> bool:
    """Tell what a line of Git's says of its progress; False when it is about something else."""
    match = _COUNTED.match(line)
    if match:
        progress.switch(f"source: {match['what'].lower()}", unit="objects")
        progress.at(int(match["done"]), int(match["total"]))
    return match is not None


def _last_words(text: str, status: int) -> str:
    """What Git says is wrong: its first `fatal:` or `error:` line, for what follows says less, or is advice."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "git:"))]
    return redact_urls([*fatal[:1], *lines[-1:], f"exit status {status}"][0])


def has_commit(mirror: Path, commit: str, *, owned: bool = False) -> bool:
    """Tell whether the mirror holds the commit. owned: Git runs as the mirror's owner, for root."""
    if not (mirror / "HEAD").exists():
        return False
    try:
        run_git(["--git-dir", str(mirror), "cat-file", "-e", f"{commit}^{{commit}}"], owner=_owner(mirror, owned))
    except GitError:
        return False
    return True


def update(
    mirror: Path,
    repository: str,
    environment: dict[str, str] | None = None,
    progress: Progress | None = None,
    bundle: Path | None = None,
) -> None:
    """Clone or fetch the whole of `repository`: a shallow clone lacks the tags that the version comes from.

    bundle: a file of `git bundle create FILE --all` to take it from; the repository is then not asked.
    """
    progress, environment = progress or Progress(None), environment or {}
    progress.phase("fetching the source")
    if (mirror / "HEAD").exists():
        git = ["--git-dir", str(mirror)]
        # Nothing is pruned after a bundle: it may hold less than the mirror.
        how = [] if bundle else ["--prune"]
        fetch = [*git, "fetch", "--progress", "--force", *how, "--", str(bundle or repository), "+refs/*:refs/*"]
        _run_told(fetch, progress, environment)
        # Only now: an address that does not answer is not kept.
        run_git([*git, "remote", "set-url", "origin", repository])
        return
    mirror.parent.mkdir(parents=True, exist_ok=True)
    partial = mirror.with_name(mirror.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    _run_told(["clone", "--progress", "--mirror", str(bundle or repository), str(partial)], progress, environment)
    if bundle:
        run_git(["--git-dir", str(partial), "remote", "set-url", "origin", repository])
    os.replace(partial, mirror)


def bundle(mirror: Path, target: Path, progress: Progress | None = None) -> None:
    """Write all that the mirror holds into one file, which `update` takes on another host. Raises GitError."""
    progress = progress or Progress(None)
    progress.phase("bundling the source")
    _run_told(["--git-dir", str(mirror), "bundle", "create", "--progress", str(target), "--all"], progress, {})


def describe(mirror: Path, commit: str, *, owned: bool = False) -> str:
    """Return the version as upstream's build takes it (`git describe --tags --match v*`), or "" without a tag."""
    asked = ["--git-dir", str(mirror), "describe", "--tags", "--match", "v*", commit]
    try:
        return run_git(asked, owner=_owner(mirror, owned)).strip()
    except GitError:
        return ""


def show(mirror: Path, commit: str, path: str, *, owned: bool = False) -> str:
    """Return the text of a file at a commit."""
    return run_git(["--git-dir", str(mirror), "show", f"{commit}:{path}"], owner=_owner(mirror, owned))


def _owner(mirror: Path, owned: bool) -> tuple[int, int] | None:
    return owner_of(mirror) if owned else None


def add_worktree(mirror: Path, commit: str, path: Path) -> None:
    """Check the commit out at `path`, in place of what a run that died may have left there."""
    shutil.rmtree(path, ignore_errors=True)
    git = ["--git-dir", str(mirror)]
    run_git([*git, "worktree", "prune"])
    # Forced twice: Git locks a worktree while it lays it out, and one killed then is "missing but locked".
    run_git([*git, "worktree", "add", "--quiet", "--detach", "--force", "--force", str(path), commit])


def owner_of(folder: Path) -> tuple[int, int] | None:
    """Return whom Git has to run as in a folder: its owner, where root asks; None where nothing has to change."""
    status = folder.stat()
    return (status.st_uid, status.st_gid) if os.geteuid() == 0 and status.st_uid != 0 else None


def prune_worktrees(mirror: Path) -> None:
    """Forget worktrees that are gone, as the mirror's owner: root does not run what a mirror's configuration names."""
    if not (mirror / "HEAD").exists():
        return
    git, owner = ["--git-dir", str(mirror), "worktree"], owner_of(mirror)
    for entry in run_git([*git, "list", "--porcelain"], owner=owner).split("\n\n"):
        lines = entry.splitlines()
        path = lines[0].partition(" ")[2] if lines else ""
        # Git locks a worktree while it lays it out; killed then, the lock stays.
        if any(line.split(" ")[0] == "locked" for line in lines) and not Path(path).exists():
            run_git([*git, "unlock", path], owner=owner)
    run_git([*git, "prune"], owner=owner)
