# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of files that a revision holds, as the Hub gives it. PRIVATE to the collection: it can change
at any time.

Source of the format: `GET <endpoint>/api/models/<repository>/tree/<revision>?recursive=true&expand=false`,
the request that `hf download` makes. Large files carry `lfs: {oid: <sha256>, size}`, the others a git blob
id.
"""

from __future__ import annotations

import email.message
import http.client
import json
import re
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request

from .._host import bearer
from .errors import CheckpointError, HubRefused, HubUnreachable
from .manifest import WantedFile

RETRIED = (408, 425, 429, 500, 502, 503, 504)
LONGEST_PAUSE = 60.0
_NEXT = re.compile(r"<([^>]+)>\s*;[^,]*rel=\"?next\"?")


class _SameOriginRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and takes the token along only to the origin it was meant for."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: t.Any,
        code: int,
        msg: str,
        headers: email.message.Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, t.cast(t.Any, headers), newurl)
        token = req.unredirected_hdrs.get(bearer.NAME)
        if new is not None and token and _origin(newurl) == _origin(req.full_url):
            new.add_unredirected_header(bearer.NAME, token)
        return new


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


class Hub:
    """A Hugging Face Hub at `endpoint`; `tries` requests per page, `timeout` seconds each.

    Raises CheckpointError for a token that no client can send.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        token: str | None = None,
        tries: int = 6,
        timeout: float = 30.0,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        try:
            self._authorization = bearer.bearer(token, "The token of the Hub (sglang_hub_token)") if token else ""
        except bearer.Unsendable as error:
            raise CheckpointError(str(error)) from None
        self._tries = tries
        self._timeout = timeout
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_SameOriginRedirects())

    def tree(self, repository: str, revision: str) -> list[WantedFile]:
        """All files of `revision`, sorted by path.

        Raises HubUnreachable, HubRefused, or CheckpointError for an answer that makes no sense.
        """
        name = urllib.parse.quote(repository)
        url = f"{self.endpoint}/api/models/{name}/tree/{revision}?recursive=true&expand=false"
        found: list[WantedFile] = []
        while url:
            text, link = self._get(url, f"{repository} at {revision}")
            found.extend(_entries(text, url))
            following = _NEXT.search(link)
            url = urllib.parse.urljoin(url, following.group(1)) if following else ""
            if url and _origin(url) != _origin(self.endpoint):
                raise CheckpointError(f"The Hub sends the next page of its file list to another origin: {url}")
        if not found:
            raise CheckpointError(f"{self.endpoint} lists no files for {repository} at {revision}.")
        return sorted(found, key=lambda file: file.path)

    def read(self, repository: str, revision: str, file: WantedFile) -> bytes:
        """The content of a small file, which is what the file list says. Raises as `tree` does."""
        names = (urllib.parse.quote(one) for one in (repository, revision, file.path))
        url = "{}/{}/resolve/{}/{}".format(self.endpoint, *names)
        content, _link = self._get(url, f"{file.path} of {repository} at {revision}", file.size + 1)
        if not file.is_content(content):
            raise CheckpointError(
                f"{self.endpoint} gives {file.path} of {repository} at {revision} with other bytes than its own file "
                "list says. Try another mirror, or take it up with its operator."
            )
        return content

    def _get(self, url: str, what: str, most: int | None = None) -> tuple[bytes, str]:
        """One page, `most` bytes of it (None: all; Python 3.9 takes no -1), and its Link header, with back-off."""
        trouble = ""
        for attempt in range(1, self._tries + 1):
            request = urllib.request.Request(url, headers={"User-Agent": "llmfleet.sglang"})
            if self._authorization:
                request.add_unredirected_header(bearer.NAME, self._authorization)
            pause = min(2.0 ** (attempt - 1), LONGEST_PAUSE)
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    return answer.read(most), answer.headers.get("Link") or ""
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in RETRIED:
                        raise HubRefused(_refusal(error.code, self.endpoint, what)) from error
                    trouble = f"HTTP {error.code}"
                    pause = _retry_after(error.headers.get("Retry-After"), pause)
            except (OSError, http.client.HTTPException) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                trouble = str(reason) or type(error).__name__
            if attempt < self._tries:
                self._sleep(pause)
        raise HubUnreachable(
            f"{self.endpoint} gave no answer about {what} in {self._tries} tries (last: {trouble}). "
            "Check the endpoint, the proxy and the network of this host, and run again."
        )


def _retry_after(header: str | None, pause: float) -> float:
    """Seconds to wait: what the server asks for, within bounds, or else our own back-off."""
    try:
        return max(0.0, min(float(header or ""), LONGEST_PAUSE))
    except ValueError:
        return pause


def _refusal(code: int, endpoint: str, what: str) -> str:
    if code in (401, 403):
        return (
            f"{endpoint} refuses {what} (HTTP {code}): it is gated, private or does not exist. Give a token that may "
            "read it, or check the repository's name."
        )
    if code == 404:
        return f"{endpoint} has no {what} (HTTP 404): check the repository's name and the pinned revision."
    return f"{endpoint} answered HTTP {code} when asked for {what}."


def _entries(text: bytes, url: str) -> list[WantedFile]:
    try:
        rows = json.loads(text)
        return [_entry(row) for row in rows if row["type"] == "file"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"The file list at {url} is not what a Hub gives: {error!r}") from error


def _entry(row: dict[str, t.Any]) -> WantedFile:
    large = row.get("lfs")
    if large:
        return WantedFile.checked(str(row["path"]), int(large["size"]), sha256=str(large["oid"]))
    return WantedFile.checked(str(row["path"]), int(row["size"]), git_oid=str(row["oid"]))
