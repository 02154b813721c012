# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A branch, a tag or a model's `main` becomes a pin: looked up once, never guessed. Private to the collection."""

from __future__ import annotations

import json
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._release import source

_HEX = re.compile(r"[0-9a-f]{40}")


class PinError(RuntimeError):
    """What was asked for cannot be looked up; the message says what to do."""


@dataclass(frozen=True)
class SourcePin:
    """A commit, the version that Git derives for it, and the name that it was looked up by."""

    commit: str
    version: str
    reference: str


def pick(listing: str, reference: str) -> str:
    """Find the commit of a branch or tag in the output of `git ls-remote`; a tag object leads to its commit.

    A branch goes before a tag of the same name. Raises PinError when there is neither.
    """
    refs = {name: commit for commit, _tab, name in (line.partition("\t") for line in listing.splitlines())}
    for name in (f"refs/heads/{reference}", f"refs/tags/{reference}^{{}}", f"refs/tags/{reference}"):
        if name in refs:
            return refs[name]
    raise PinError(f"there is no branch or tag '{reference}'")


def source_pin(repository: str, reference: str, environment: Mapping[str, str]) -> SourcePin:
    """Look a branch, tag or commit up in a repository, with its version. Raises PinError."""
    variables = dict(environment)
    try:
        commit = reference
        if not _HEX.fullmatch(reference):
            listing = source.run_git(["ls-remote", "--heads", "--tags", repository], environment=variables)
            commit = pick(listing, reference)
        with tempfile.TemporaryDirectory(prefix="llmfleet-pin-") as folder:
            history = Path(folder, "history.git")  # commits and tags alone: the version needs no file
            clone = ["clone", "--quiet", "--bare", "--filter=tree:0", repository, str(history)]
            source.run_git(clone, environment=variables)
            if not source.has_commit(history, commit):
                raise PinError(f"there is no commit {commit}")
            described = source.describe(history, commit)
    except (source.GitError, PinError) as error:
        raise PinError(f"'{reference}' cannot be looked up in {repository}: {error}") from error
    if not described:
        raise PinError(f"no version tag leads to commit {commit} of {repository}: its version is not known")
    return SourcePin(commit=commit, version=described.lstrip("v"), reference=reference)


def revision_pin(endpoint: str, repository: str, revision: str, token: str = "", timeout: float = 60) -> str:
    """Ask the Hub for the 40 hex digits behind a branch, tag or revision of a model. Raises PinError."""
    url = f"{endpoint.rstrip('/')}/api/models/{repository}/revision/{revision}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            found = str(json.load(answer)["sha"])
    except (urllib.error.URLError, OSError, ValueError, KeyError) as error:
        raise PinError(f"the Hub does not say what '{revision}' of {repository} is ({url}): {error}") from error
    if not _HEX.fullmatch(found):
        raise PinError(f"the Hub answered '{found}' for {repository}, which is no revision of 40 hex digits")
    return found


def render(values: Mapping[str, str], origins: Mapping[str, str], today: str) -> str:
    """Return the text of pins.yml: a line each, with where it came from."""
    lines = ["---", "# Written by playbooks/pin.yml: each value was looked up once. To move on, run it again."]
    for name, value in values.items():
        lines += [f"# {origins[name]}, on {today}", f'{name}: "{value}"']
    return "\n".join(lines) + "\n"


def current(text: str) -> dict[str, str]:
    """Read the values out of a pins.yml."""
    return dict(re.findall(r'^(sglang_\w+): "([^"]*)"$', text, flags=re.MULTILINE))
