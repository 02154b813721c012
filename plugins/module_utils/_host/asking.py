# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking a server over HTTP on its own host, never longer than allowed. PRIVATE to the collection."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer

LARGEST_REPLY = 1 << 20
# What these say of a request will not get better by waiting.
FINAL = {
    400: "refuses the request",
    422: "refuses the request",
}
KEY = (401, 403)
# An endpoint that is not there, or is kept from us: the server answers.
NO_SUCH_ENDPOINT = (401, 403, 404, 405)


class NotYet(Exception):
    """The server cannot answer at present; waiting may help."""


class Wrong(Exception):
    """The server answered in a way that waiting does not mend."""


class Refused(Wrong):
    """The server takes no request with this key."""


class Server:
    """One server. url: without a path; api_key: sent as bearer token, if there is one. Raises bearer.Unsendable."""

    def __init__(self, url: str, api_key: str = "") -> None:
        self.url = url
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers[bearer.NAME] = bearer.bearer(api_key, "sglang_api_key")
        # A proxy from the environment must not stand between this host and its own server.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, path: str, body: Mapping[str, Any] | None, limit: float) -> dict[str, Any]:
        """The JSON object that the server answers within `limit` seconds; NotYet or Wrong says why there is none."""
        text = self._text(path, body, limit)
        try:
            reply = json.loads(text)
        except ValueError:
            # A reply that begins as an object and has no end did not come whole.
            cut = text.lstrip().startswith(b"{") and not text.rstrip().endswith(b"}")
            what = f"a reply that was cut off after {len(text)} bytes" if cut else "something that is not JSON"
            raise Wrong(f"{self.url}{path} answered {what}: {text[:200]!r}") from None
        if not isinstance(reply, dict):
            raise Wrong(f"{self.url}{path} answered something that is no object: {text[:200]!r}")
        return reply

    def status(self, path: str, limit: float) -> int:
        """The HTTP status of a GET, whatever it is; NotYet when there is no answer at all."""
        try:
            with self._opener.open(self._order(path, None), timeout=limit) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except (OSError, http.client.HTTPException) as error:
            raise NotYet(f"{self.url}{path}: {_reason(error)}") from None

    def text(self, path: str, limit: float) -> str:
        """The text that a GET gives; NotYet or Wrong says why there is none."""
        return self._text(path, None, limit).decode("utf-8", "replace")

    def stream(self, path: str, body: Mapping[str, Any], limit: float) -> list[dict[str, Any]]:
        """The events of a stream (server-sent events), which has to end with [DONE] within `limit` seconds."""
        events: list[dict[str, Any]] = []
        for data in _events(self._text(path, body, limit)):
            if data == "[DONE]":
                return events
            try:
                event = json.loads(data)
            except ValueError:
                raise Wrong(f"{self.url}{path} streamed something that is not JSON: {data[:200]!r}") from None
            if not isinstance(event, dict) or "error" in event:
                raise Wrong(f"{self.url}{path} streamed an error: {data[:300]}")
            events.append(event)
        raise Wrong(f"{self.url}{path}: the stream ended without [DONE], after {len(events)} events")

    def _text(self, path: str, body: Mapping[str, Any] | None, limit: float) -> bytes:
        try:
            with self._opener.open(self._order(path, body), timeout=limit) as response:
                return _read(response, time.monotonic() + limit)
        except urllib.error.HTTPError as error:
            with error:
                said = " ".join(error.read(2000).decode("utf-8", "replace").split())
            if error.code in KEY:
                raise Refused(
                    f"The server refuses the key ({error.code}): set sglang_api_key to the one that it runs with. "
                    f"{self.url}{path} says: {said[:300]}"
                ) from None
            message = f"{self.url}{path} {FINAL.get(error.code, 'answers')} (HTTP {error.code}): {said[:300]}"
            raise (Wrong if error.code in FINAL else NotYet)(message) from None
        except (OSError, http.client.HTTPException) as error:
            raise NotYet(f"{self.url}{path}: {_reason(error)}") from None

    def _order(self, path: str, body: Mapping[str, Any] | None) -> urllib.request.Request:
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(self.url + path, data=data, headers=self._headers)


def _events(text: bytes) -> Iterator[str]:
    """The data of each event; lines that belong to one event are put together."""
    data: list[str] = []
    for line in [*text.decode("utf-8", "replace").splitlines(), ""]:
        if line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield "\n".join(data)
            data = []


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The whole reply; a server that lets it drip does not hold anybody longer than one that hangs."""
    text = b""
    while len(text) < LARGEST_REPLY:
        part = response.read1(65536)
        if not part:
            break
        text += part
        if time.monotonic() > deadline:
            raise TimeoutError("the answer did not end in time")
    return text


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(reason) or type(reason).__name__
