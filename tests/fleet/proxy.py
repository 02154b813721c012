# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A forward proxy for plain HTTP that asks for a password (RFC 9110, section 11.7), and remembers what it passed on."""

from __future__ import annotations

import base64
import contextlib
import http.client
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, urlsplit

USER = "fleet"
# Headers that concern one connection alone (RFC 9110, section 7.6.1), and the length, which is set anew.
_HOP = {"connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "transfer-encoding", "upgrade"}


@dataclass(frozen=True)
class Passed:
    """A request that came with the right password: who sent it, for what, and its Authorization header."""

    agent: str
    url: str
    authorization: str


@dataclass
class Proxy:
    """A proxy that runs: its address, with the password in it, and what it passed on."""

    url: str
    passed: list[Passed] = field(default_factory=list)


@contextlib.contextmanager
def proxy(address: str, password: str) -> Iterator[Proxy]:
    """Run a proxy on a free port of `address` until the block ends."""
    wanted = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        """One client's connection, closed after each answer."""

        def do_GET(self) -> None:
            """Pass the request on, if the password is right."""
            if self.headers.get("Proxy-Authorization") != wanted:
                self._refuse()
                return
            said = self.headers.get("User-Agent", ""), self.path, self.headers.get("Authorization", "")
            about.passed.append(Passed(*said))
            try:
                self._pass_on()
            except OSError as error:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.send_error(502, str(error))

        do_HEAD = do_POST = do_GET

        def _refuse(self) -> None:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="fleet"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _pass_on(self) -> None:
            target = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            server = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=60)
            with contextlib.closing(server):
                path = f"{target.path or '/'}?{target.query}" if target.query else target.path or "/"
                server.request(self.command, path, body, {**headers, "Connection": "close"})
                answer = server.getresponse()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                shutil.copyfileobj(answer, self.wfile)

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    about = Proxy(f"http://{USER}:{quote(password, safe='')}@{address}:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield about
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
