# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module's arguments and result. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import os
import typing as t

from .config import Wanted
from .errors import CheckpointError
from .fetch import Hf
from .hub import Hub
from .peers import Peers
from .place import Owner, Place
from .request import Outcome, Request
from .serve import Server

PEERS: dict[str, dict[str, t.Any]] = {
    "addresses": {"type": "list", "elements": "str", "required": True},
    "port": {"type": "int", "required": True},
    "secret": {"type": "str", "required": True, "no_log": True},
    "manifest_digest": {"type": "str", "required": True},
    "bytes": {"type": "int", "default": 0},
    "timeout_stall": {"type": "int", "default": 60},
    "patience": {"type": "int", "default": 600},
}
SERVE: dict[str, dict[str, t.Any]] = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "peers": {"type": "list", "elements": "str", "required": True},
    "secret": {"type": "str", "required": True, "no_log": True},
    "seconds": {"type": "int", "default": 14400},
    "transfers": {"type": "int", "default": 1},
    "limit": {"type": "int", "default": 0},
}
ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "repository": {"type": "str", "required": True},
    "revision": {"type": "str", "required": True},
    "endpoint": {"type": "str", "default": "https://huggingface.co"},
    "path": {"type": "path", "required": True},
    "store": {"type": "path"},
    "source": {"type": "str", "choices": ["hub", "peers", "here"], "default": "hub"},
    "optional": {"type": "bool", "default": False},
    "peers": {"type": "dict", "options": PEERS},
    "serve": {"type": "dict", "options": SERVE},
    "expects": {"type": "dict", "default": {}},
    "launch_arguments": {"type": "dict", "default": {}},
    "io_class": {"type": "str", "choices": ["idle", "best-effort", "none"], "default": "none"},
    "hf": {"type": "path"},
    "workers": {"type": "int", "default": 8},
    "threads": {"type": "int", "default": 0},
    "token": {"type": "str", "no_log": True},
    "token_file": {"type": "path", "no_log": False},
    "timeout_stall": {"type": "int", "default": 300},
    "reserve": {"type": "int", "default": 1 << 30},
    "owner": {"type": "str"},
    "group": {"type": "str"},
    "verify": {"type": "str", "choices": ["stamp", "full"], "default": "stamp"},
    "progress_file": {"type": "path"},
    "environment": {"type": "dict", "default": {}, "no_log": True},
}


def read_token(arguments: dict[str, t.Any]) -> str | None:
    """The token, given directly or by a file; an empty one is none."""
    if not arguments["token_file"]:
        return arguments["token"] or None
    try:
        with open(arguments["token_file"], encoding="utf-8") as stream:
            return stream.read().strip() or None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"The token file {arguments['token_file']} cannot be read: {error}.") from error


def build_request(arguments: dict[str, t.Any], check: bool) -> Request:
    """The arguments as the logic wants them. Raises CheckpointError for what cannot be."""
    path = arguments["path"].rstrip("/")
    store = arguments["store"] or os.path.join(os.path.dirname(path), ".checkpoints")
    for option, value in (("path", path), ("store", store)):
        if not os.path.isabs(value):
            raise CheckpointError(f"{option} has to be an absolute path, and {value} is none.")
    endpoint = arguments["endpoint"].rstrip("/")
    io_class = arguments["io_class"]
    hf = Hf(
        command=arguments["hf"] or "hf",
        endpoint=endpoint,
        workers=arguments["workers"],
        timeout_stall=arguments["timeout_stall"],
        token=None if arguments["token_file"] else arguments["token"],
        token_file=arguments["token_file"],
    )
    # check mode rather says soon that it cannot know than waits for a Hub in trouble
    hub = Hub(endpoint, token=read_token(arguments), tries=2 if check else 6, timeout=10 if check else 30)
    return Request(
        place=Place(path, store, arguments["repository"], arguments["revision"]),
        hub=hub,
        hf=hf,
        owner=Owner.named(arguments["owner"], arguments["group"]),
        full=arguments["verify"] == "full",
        threads=arguments["threads"],
        reserve=arguments["reserve"],
        progress_file=arguments["progress_file"],
        wanted=Wanted(arguments["expects"], arguments["launch_arguments"]),
        peers=_peers(arguments["peers"]) if arguments["source"] == "peers" else None,
        here=arguments["source"] == "here",
        optional=arguments["optional"],
        serve=_server(arguments["serve"], io_class) if arguments["serve"] else None,
    )


def _peers(given: dict[str, t.Any]) -> Peers:
    return Peers(
        addresses=tuple(given["addresses"]),
        port=given["port"],
        secret=given["secret"],
        manifest_digest=given["manifest_digest"],
        size=given["bytes"],
        stall=given["timeout_stall"],
        patience=given["patience"],
    )


def _server(given: dict[str, t.Any], io_class: str) -> Server:
    return Server(**{**given, "peers": tuple(given["peers"])}, io_class=io_class)


def report(request: Request, outcome: Outcome) -> dict[str, t.Any]:
    """The module's result."""
    place = request.place
    return {
        "changed": outcome.changed,
        "complete": outcome.complete,
        "taken_from": outcome.taken_from,
        "path": place.path,
        "target": place.target,
        "repository": place.repository,
        "revision": place.revision,
        "files": outcome.files,
        "bytes": outcome.bytes,
        "bytes_downloaded": outcome.bytes_downloaded,
        "bytes_hashed": outcome.bytes_hashed,
        "verified_at": outcome.verified_at,
        "manifest_digest": outcome.manifest_digest,
        "fetched_again": outcome.fetched_again,
        "to_download": outcome.to_download,
        "message": outcome.message,
        "diff": {
            "before": {"target": outcome.before or ""},
            "after": {
                "target": place.target,
                **({"fetched": outcome.to_download} if outcome.to_download else {}),
            },
        },
    }
