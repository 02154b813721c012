# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare mirror of the source on the host, and worktrees of it. Private to the collection."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls

# Git must neither ask for a password nor read the configuration of whoever runs it.
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}


class GitError(RuntimeError):
    """Git refused; the message says what was tried and what Git said."""


def run_git(arguments: list[str], *, timeout: float = 3600, environment: dict[str, str] | None = None) -> str:
    """Run git and return its standard output. Raises GitError with Git's last words."""
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
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed on this host") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"{shown} took longer than {timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise GitError(f"{shown} failed: {_last_words(error)}") from error
    return done.stdout


def _last_words(error: subprocess.CalledProcessError) -> str:
    """What Git says is wrong: its `fatal:` or `error:` line, for advice may follow it."""
    lines = [line.strip() for line in (error.stderr or error.stdout or "").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "git:"))]
    return redact_urls((fatal or lines or [f"exit status {error.returncode}"])[-1])


def has_commit(mirror: Path, commit: str) -> bool:
    """Tell whether the mirror holds the commit."""
    if not (mirror / "HEAD").exists():
        return False
    try:
        run_git(["--git-dir", str(mirror), "cat-file", "-e", f"{commit}^{{commit}}"])
    except GitError:
        return False
    return True


def update(mirror: Path, repository: str, environment: dict[str, str] | None = None) -> None:
    """Clone or fetch the whole of `repository`: a shallow clone lacks the tags that the version comes from."""
    if (mirror / "HEAD").exists():
        git = ["--git-dir", str(mirror)]
        run_git([*git, "remote", "set-url", "origin", repository])
        run_git([*git, "fetch", "--quiet", "--prune", "--tags", "--force", "origin"], environment=environment)
        return
    mirror.parent.mkdir(parents=True, exist_ok=True)
    partial = mirror.with_name(mirror.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    run_git(["clone", "--quiet", "--mirror", repository, str(partial)], environment=environment)
    os.replace(partial, mirror)


def describe(mirror: Path, commit: str) -> str:
    """Return the version as upstream's build takes it (`git describe --tags --match v*`), or "" without a tag."""
    try:
        return run_git(["--git-dir", str(mirror), "describe", "--tags", "--match", "v*", commit]).strip()
    except GitError:
        return ""


def show(mirror: Path, commit: str, path: str) -> str:
    """Return the text of a file at a commit."""
    return run_git(["--git-dir", str(mirror), "show", f"{commit}:{path}"])


def add_worktree(mirror: Path, commit: str, path: Path) -> None:
    """Check the commit out at `path`, in place of what a run that died may have left there."""
    shutil.rmtree(path, ignore_errors=True)
    git = ["--git-dir", str(mirror)]
    run_git([*git, "worktree", "prune"])
    run_git([*git, "worktree", "add", "--quiet", "--detach", "--force", str(path), commit])
