# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated Hub for the tests: real HTTP, the requests that `hf download` makes, faults on demand."""

from __future__ import annotations

import collections
import hashlib
import json
import threading
import time
import typing as t
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPOSITORY = "org/model"
REVISION = "0123456789abcdef0123456789abcdef01234567"


def git_blob(content: bytes) -> str:
    """A git blob's id."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def safetensors(seed: int, size: int) -> bytes:
    """A sound safetensors file with one tensor of `size` bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes((seed + i * 7) % 256 for i in range(size))


def small_model() -> dict[str, bytes]:
    """Two shards with their index, a configuration and a file in a folder."""
    shards = {f"model-0000{n}-of-00002.safetensors": safetensors(n, 40_000 * n) for n in (1, 2)}
    index = {"metadata": {}, "weight_map": {f"w{n}": name for n, name in enumerate(shards)}}
    return {
        "config.json": b'{"model_type": "qwen3"}\n',
        "model.safetensors.index.json": json.dumps(index).encode(),
        "extra/notes.txt": b"notes\n",
        **shards,
    }


class HubServer:
    """Serves `files` as one revision of one repository on two ports of 127.0.0.1 (the second is the CDN).

    `statuses` maps "tree", "head:PATH" or "get:PATH" to answers to give first; `served` maps a path to other bytes
    than the listed ones, one entry a request; `stalls` are the paths whose bytes stop at `stall_at` of the whole until
    `release`; `cuts` counts, by path, answers that end halfway; `etags` are given in place of the true ones; once
    `deleted`, the Hub knows the repository no more.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.page = 1000
        self.token = ""
        self.statuses: dict[str, list[tuple[int, dict[str, str]]]] = collections.defaultdict(list)
        self.served: dict[str, list[bytes]] = collections.defaultdict(list)
        self.stalls: set[str] = set()
        self.stall_at = 0.5
        self.cuts: collections.Counter[str] = collections.Counter()
        self.etags: dict[str, str] = {}
        self.deleted = False
        self.release = threading.Event()
        self.requests: list[str] = []
        self.tokens: list[tuple[str, str | None]] = []
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler(cdn)) for cdn in (False, True)]
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def close(self) -> None:
        """No port answers any more."""
        self.release.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def asked(self, part: str) -> int:
        """How many requests held that text."""
        return sum(part in request for request in self.requests)

    def row(self, path: str) -> dict[str, t.Any]:
        """The tree's line for a file."""
        content = self.files[path]
        row: dict[str, t.Any] = {"type": "file", "path": path, "size": len(content), "oid": git_blob(content)}
        if path.endswith(".safetensors"):
            digest = hashlib.sha256(content).hexdigest()
            row |= {"oid": "0" * 40, "lfs": {"oid": digest, "size": len(content), "pointerSize": 130}}
        return row

    def _handler(self, is_cdn: bool) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_version = "simulated-hub"

            def do_GET(self) -> None:
                hub.answer(self, is_cdn)

            def do_HEAD(self) -> None:
                hub.answer(self, is_cdn)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
                pass

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, is_cdn: bool) -> None:
        """One request."""
        url = urllib.parse.urlsplit(handler.path)
        path = urllib.parse.unquote(url.path)
        self.requests.append(f"{handler.command} {path}")
        self.tokens.append((path, handler.headers.get("Authorization")))
        if self.deleted:
            # as the real Hub does without a token: it does not tell missing from private
            self._send(handler, 401, b"no", {"X-Error-Code": "RepoNotFound"})
            return
        if path == f"/api/models/{REPOSITORY}/tree/{REVISION}":
            self._tree(handler, urllib.parse.parse_qs(url.query))
            return
        start = f"/{REPOSITORY}/resolve/{REVISION}/"
        name = path[len(start) :]
        if not path.startswith(start) or name not in self.files:
            missing = "RepoNotFound" if not path.startswith(f"/api/models/{REPOSITORY}/") else "RevisionNotFound"
            self._send(handler, 404, b"no", {"X-Error-Code": missing})
            return
        self._file(handler, name, is_cdn)

    def _tree(self, handler: BaseHTTPRequestHandler, query: dict[str, list[str]]) -> None:
        if self.statuses["tree"]:
            status, headers = self.statuses["tree"].pop(0)
            self._send(handler, status, b"later", headers)
            return
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            self._send(handler, 401, b"no", {"X-Error-Code": "GatedRepo"})
            return
        first = int(query.get("cursor", ["0"])[0])
        rows = [self.row(path) for path in sorted(self.files)]
        headers = {"Content-Type": "application/json"}
        if first + self.page < len(rows):
            next_page = f"{self.url}{handler.path.split('&cursor')[0]}&cursor={first + self.page}"
            headers["Link"] = f'<{next_page}>; rel="next"'
        self._send(handler, 200, json.dumps(rows[first : first + self.page]).encode(), headers)

    def _file(self, handler: BaseHTTPRequestHandler, name: str, is_cdn: bool) -> None:
        faults = self.statuses[f"{handler.command.lower()}:{name}"]
        if faults:
            status, headers = faults.pop(0)
            self._send(handler, status, b"later", headers)
            return
        row = self.row(name)
        etag = f'"{row["lfs"]["oid"] if "lfs" in row else row["oid"]}"'
        etag = self.etags.get(name, etag)
        if "lfs" in row and not is_cdn:
            linked = {"X-Linked-Etag": etag, "X-Linked-Size": str(row["size"]), "X-Repo-Commit": REVISION}
            self._send(handler, 302, b"", {"Location": f"{self.cdn}{handler.path}", **linked})
            return
        content = self.files[name]
        if handler.command == "GET" and self.served[name]:
            content = self.served[name].pop(0)
        if handler.command == "GET" and self.cuts[name] > 0:
            self.cuts[name] -= 1
            self._part(handler, content, 0.5)
            return
        if handler.command == "GET" and name in self.stalls:
            self._part(handler, content, self.stall_at)
            self.release.wait(60)
            return
        self._send(handler, 200, content, {"ETag": etag, "X-Repo-Commit": REVISION})

    def _part(self, handler: BaseHTTPRequestHandler, content: bytes, share: float) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: int(len(content) * share)])
        handler.wfile.flush()
        handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)


def wait_for(condition: t.Callable[[], object], seconds: float = 20.0) -> None:
    """Waits until the condition holds; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the awaited did not come about"
        time.sleep(0.02)
