# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a worker out of SMG (Shepherd Model Gateway) and put it back, over its own HTTP API. Private to the collection.

As smg 1.13.0 does it: DELETE /workers/ID lets a worker get no new requests at once, and takes it off its list after a
fixed time (5 s); requests under way go on to their end all the same. POST /workers puts one on the list, and it gets
requests once it answers.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Done, Record
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer

# What an operator may have set for a worker, and smg tells.
_KEPT = ("priority", "cost")
_KEY = "The key of the gateway (sglang_smg_api_key, else sglang_api_key)"
_ASK_SECONDS = 10.0
_PAUSE = 0.2

Ask = Callable[[str, str, "Mapping[str, Any] | None"], Any]


def asker(url: str, key: str = "") -> Ask:
    """Return what asks a gateway (method, path, body) and returns its JSON. key: of its control plane, if it has one.

    What it returns raises BalancerError when nobody answers, the gateway refuses, or no client can send the key.
    """
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{url.rstrip('/')}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            if key:
                request.add_header(bearer.NAME, bearer.bearer(key, _KEY))
            with direct.open(request, timeout=_ASK_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")[:300]
            raise BalancerError(f"{url} refuses {method} {path}: {error.code} {said}") from None
        except bearer.Unsendable as error:
            raise BalancerError(str(error).rstrip(".")) from None
        except (OSError, ValueError) as error:
            raise BalancerError(f"{url} does not answer {method} {path} as smg does: {error}") from None

    return ask


@dataclass(frozen=True)
class Place:
    """One worker of one gateway, and the record of what is out by our doing there.

    key: what the engine asks for, which the gateway has to know; timeout: seconds of each wait.
    """

    ask: Ask
    record: Record
    worker: str
    key: str
    timeout: float

    def look(self) -> dict[str, Any] | None:
        """The worker as the gateway has it; None when it is not on its list."""
        told = self.ask("GET", "/workers", None)
        if not isinstance(told, dict) or not isinstance(told.get("workers"), list):
            raise BalancerError("the answer to GET /workers is not one of smg's")
        same = [one for one in told["workers"] if str(one.get("url", "")).rstrip("/") == self.worker.rstrip("/")]
        return same[0] if same else None

    def wait(self, done: Callable[[dict[str, Any] | None], bool], what: str) -> None:
        """Look until it is so; raises BalancerError after the timeout."""
        deadline = time.monotonic() + self.timeout
        while not done(now := self.look()):
            if time.monotonic() >= deadline:
                word = f"it is {now.get('status')}" if now else "it is not on the gateway's list"
                raise BalancerError(f"{self.worker} {what} after {self.timeout:g} s: {word}")
            time.sleep(_PAUSE)


def drain(place: Place, check: bool = False) -> Done:
    """Let a worker get no new requests, and wait until it is off the gateway's list; what is not on it stays so."""
    now = place.look()
    if now is None:
        ours = place.worker in place.record.read()
        return Done(False, ours, f"{place.worker} is not on the gateway's list.")
    if check:
        return Done(True, False, f"{place.worker} would be taken off the gateway's list.")
    place.record.note(place.worker, {name: now[name] for name in _KEPT if now.get(name) is not None})
    if now.get("status") != "draining":
        place.ask("DELETE", f"/workers/{now['id']}", None)
    place.wait(lambda seen: seen is None, "is still on the gateway's list")
    return Done(True, True, f"{place.worker} is off the gateway's list.")


def ready(place: Place, check: bool = False) -> Done:
    """Put back a worker that we have taken off, and wait until it gets requests; any other is left alone."""
    entries = place.record.read()
    if place.worker not in entries:
        return Done(False, False, f"{place.worker} was not taken off by us.")
    if check:
        return Done(True, True, f"{place.worker} would be put back.")
    now = place.look()
    if now is not None and now.get("status") == "draining":
        place.wait(lambda seen: seen is None, "is still on the gateway's list")
        now = None
    if now is None:
        key = {"api_key": place.key} if place.key else {}
        place.ask("POST", "/workers", {"url": place.worker, **entries[place.worker], **key})
    place.wait(lambda seen: bool(seen and seen.get("is_healthy") and seen.get("status") == "ready"), "is not ready")
    place.record.forget(place.worker)
    return Done(True, False, f"{place.worker} gets requests again.")
