# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A branch, a tag or a model's `main` becomes a pin: looked up once, never guessed. Private to the collection."""

from __future__ import annotations

import http.client
import json
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import source
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls

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
            listing = source.run_git(["ls-remote", "--heads", "--tags", "--", repository], environment=variables)
            commit = pick(listing, reference)
        with tempfile.TemporaryDirectory(prefix="llmfleet-pin-") as folder:
            history = Path(folder, "history.git")  # commits and tags alone: the version needs no file
            clone = ["clone", "--quiet", "--bare", "--filter=tree:0", "--", repository, str(history)]
            source.run_git(clone, environment=variables)
            if not source.has_commit(history, commit):
                raise PinError(f"there is no commit {commit}")
            described = source.describe(history, commit)
    except (source.GitError, PinError) as error:
        raise PinError(f"'{reference}' cannot be looked up in {redact_urls(repository)}: {error}") from error
    if not described:
        where = redact_urls(repository)
        raise PinError(f"no version tag leads to commit {commit} of {where}: its version is not known")
    return SourcePin(commit=commit, version=described.lstrip("v"), reference=reference)


def revision_pin(
    endpoint: str,
    repository: str,
    revision: str,
    token: str = "",
    timeout: float = 60,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Ask the Hub for the 40 hex digits behind a branch, tag or revision of a model. Raises PinError.

    timeout: seconds; environment: may hold a proxy, as http_proxy, https_proxy or in capitals.
    """
    quoted = urllib.parse.quote(revision, safe="")  # refs/pr/1 is one part of the path
    url = f"{endpoint.rstrip('/')}/api/models/{urllib.parse.quote(repository)}/revision/{quoted}"
    asked = f"what '{revision}' of {repository} is ({redact_urls(url)})"
    try:
        request = urllib.request.Request(url)
        if token:  # not for whom the Hub redirects to
            request.add_unredirected_header(bearer.NAME, bearer.bearer(token, "sglang_hub_token"))
        with _opener(environment or {}).open(request, timeout=timeout) as answer:
            content = json.load(answer)
    except urllib.error.HTTPError as error:
        raise PinError(f"the Hub does not say {asked}: {_why(error.code, bool(token))}") from error
    except bearer.Unsendable as error:
        raise PinError(str(error)) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PinError(f"the Hub does not say {asked}: {error}") from error
    found = str(content.get("sha")) if isinstance(content, dict) else ""
    if not _HEX.fullmatch(found):
        raise PinError(f"the Hub does not say {asked}: its answer holds no revision of 40 hex digits")
    return found


def _why(status: int, with_token: bool) -> str:
    if status in (401, 403):
        token = "and the token does not open it" if with_token else "and sglang_hub_token is not set"
        return f"HTTP {status}: it is private, gated or not there, {token}"
    return f"HTTP {status}" + (": there is no such model or revision" if status == 404 else "")


def _opener(environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """Open URLs through the proxies of `environment`, or of this process where it names none."""
    names = {name.lower(): str(value) for name, value in environment.items()}
    proxies = {scheme: names[f"{scheme}_proxy"] for scheme in ("http", "https") if names.get(f"{scheme}_proxy")}
    return urllib.request.build_opener(urllib.request.ProxyHandler(proxies or None))
