# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's HTTP servers share: settings read per request, files with ranges and ETags, a log line each."""

from __future__ import annotations

import json
import mimetypes
import re
import sys
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

BLOCK = 1 << 18


@dataclass
class Settings:
    """What the servers serve, kept in a JSON file so that it can change while they run.

    static: URL prefix to folder. models: repository to {folder, revision, modified}.
    """

    path: Path
    static: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, str]] = field(default_factory=dict)

    def load(self) -> Settings:
        """A copy with what the file says now."""
        try:
            data = json.loads(self.path.read_text())
        except FileNotFoundError:
            data = {}
        return Settings(self.path, data.get("static", {}), data.get("models", {}))

    def save(self) -> None:
        """Write the file, replacing it at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"static": self.static, "models": self.models}, indent=1))
        temporary.rename(self.path)

    @property
    def faults_path(self) -> Path:
        """The file with the faults that are switched on."""
        return self.path.with_name("faults.json")

    def faults(self) -> dict[str, list[str]]:
        """Faults by name: each a list of the paths (ORG/REPO/FILE) it is switched on for."""
        try:
            data = json.loads(self.faults_path.read_text())
        except FileNotFoundError:
            return {}
        return {str(name): [str(path) for path in paths] for name, paths in data.items()}


class Server(ThreadingHTTPServer):
    """A threaded server that knows the settings file."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[Handler], settings: Settings) -> None:
        super().__init__(address, handler)
        self.settings = settings


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and byte after the last one for a Range header; None if there is none that we serve.

    Raises ValueError if the range lies outside the file.
    """
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if not match or match.groups() == ("", ""):
        return None
    if match[1]:
        start, stop = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
    else:
        start, stop = max(size - int(match[2]), 0), size
    if start >= stop:
        raise ValueError("range outside the file")
    return start, stop


class Handler(BaseHTTPRequestHandler):
    """Base of the fleet's request handlers."""

    protocol_version = "HTTP/1.1"
    server: Server
    timeout = 120
    disable_nagle_algorithm = True

    @property
    def url_path(self) -> str:
        """The request's path, decoded, without its query."""
        return unquote(urlsplit(self.path).path)

    def do_HEAD(self) -> None:
        """As GET, without the body."""
        self.respond()

    def do_GET(self) -> None:
        """Answer."""
        self.respond()

    def respond(self) -> None:
        """Answer the request: each server's own."""
        raise NotImplementedError

    def send_text(
        self, status: int, text: str, headers: dict[str, str] | None = None, kind: str = "text/plain"
    ) -> None:
        """Send a short body."""
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": f"{kind}; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, data: object, headers: dict[str, str] | None = None) -> None:
        """Send data as JSON."""
        self.send_text(HTTPStatus.OK, json.dumps(data), headers, kind="application/json")

    def send_file(self, path: Path, headers: dict[str, str], etag: str | None = None, flip: bool = False) -> None:
        """Send a file or the asked range of it; `flip` turns round the bits of one byte in the middle."""
        size = path.stat().st_size
        etag = etag or f'"{path.stat().st_mtime_ns:x}-{size:x}"'
        if self.headers.get("If-None-Match") == etag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.send_header("ETag", etag)
            self.end_headers()
            return
        try:
            asked = byte_range(self.headers.get("Range"), size)
        except ValueError:
            extra = {"Content-Range": f"bytes */{size}"}
            self.send_text(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "no such range\n", extra)
            return
        start, stop = asked or (0, size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        own = {"Content-Type": kind, "Content-Length": str(stop - start), "ETag": etag, "Accept-Ranges": "bytes"}
        if asked:
            own["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        for name, value in {**own, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with path.open("rb") as handle:
                self._copy(handle, start, stop, size // 2 if flip else None)

    def _copy(self, handle: IO[bytes], start: int, stop: int, flipped: int | None) -> None:
        if flipped is None:
            self.wfile.flush()
            self.connection.sendfile(handle, start, stop - start)
            return
        handle.seek(start)
        while start < stop and (block := bytearray(handle.read(min(BLOCK, stop - start)))):
            if start <= flipped < start + len(block):
                block[flipped - start] ^= 0xFF
            self.wfile.write(block)
            start += len(block)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it)
        """One line to the log: time, server's port, client, request, status."""
        port = self.server.server_address[1]
        line = f"{time.strftime('%H:%M:%S')} {port} {self.client_address[0]} {format % args}\n"
        sys.stderr.write(line)
        sys.stderr.flush()


class StaticHandler(Handler):
    """Files of the folders named in the settings: the depot, its index, the git repository."""

    server_version = "llmfleet-depot/0.1"

    def respond(self) -> None:
        """Answer with a file, a folder's index.html, or 404."""
        for prefix, folder in self.server.settings.load().static.items():
            if self.url_path.startswith(prefix):
                path = self._inside(Path(folder), self.url_path.removeprefix(prefix))
                if path is not None:
                    # A wheel's name says what is in it: it never changes, and caches need not ask again.
                    lasting = path.suffix == ".whl" or path.name.endswith(".whl.metadata")
                    rule = "public, max-age=31536000, immutable" if lasting else "no-cache"
                    self.send_file(path, {"Cache-Control": rule})
                    return
        self.send_text(HTTPStatus.NOT_FOUND, f"nothing at {self.url_path}\n")

    @staticmethod
    def _inside(folder: Path, rest: str) -> Path | None:
        path = folder / rest.lstrip("/")
        if ".." in path.parts:
            return None
        if path.is_dir():
            path = path / "index.html"
        return path if path.is_file() else None
