# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file list over real HTTP: pages, back-off, refusals, redirects, hostile answers."""

from __future__ import annotations

import hashlib
import threading
import typing as t
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import (
    CheckpointError,
    HubRefused,
    HubUnreachable,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.hub import Hub

from tests.unit.checkpoint.hub_server import REPOSITORY, REVISION, HubServer, git_blob


def test_large_files_have_a_sha256_and_small_ones_a_git_blob(hub: HubServer) -> None:
    files = {file.path: file for file in Hub(hub.url).tree(REPOSITORY, REVISION)}
    assert sorted(files) == sorted(hub.files)
    for path, content in hub.files.items():
        assert files[path].size == len(content)
        if path.endswith(".safetensors"):
            assert files[path].sha256 == hashlib.sha256(content).hexdigest()
        else:
            assert (files[path].sha256, files[path].git_oid) == ("", git_blob(content))


def test_pages_are_followed(hub: HubServer) -> None:
    hub.page = 2
    assert len(Hub(hub.url).tree(REPOSITORY, REVISION)) == 5
    assert hub.asked("/tree/") == 3


def test_back_off_is_the_servers_where_it_says_and_doubles_where_not(hub: HubServer) -> None:
    hub.statuses["tree"] = [(429, {"Retry-After": "7"}), (503, {}), (500, {}), (429, {"Retry-After": "9999"})]
    pauses: list[float] = []
    assert Hub(hub.url, sleep=pauses.append).tree(REPOSITORY, REVISION)
    assert pauses == [7.0, 2.0, 4.0, 60.0]


def test_trouble_that_lasts_ends(hub: HubServer) -> None:
    hub.statuses["tree"] = [(503, {})] * 9
    pauses: list[float] = []
    with pytest.raises(HubUnreachable, match=r"in 3 tries \(last: HTTP 503\)"):
        Hub(hub.url, tries=3, sleep=pauses.append).tree(REPOSITORY, REVISION)
    assert len(pauses) == 2


def test_a_closed_port_is_tried_again(hub: HubServer) -> None:
    hub.close()
    with pytest.raises(HubUnreachable, match=r"in 2 tries \(last: .*refused"):
        Hub(hub.url, tries=2, sleep=lambda seconds: None).tree(REPOSITORY, REVISION)


def test_a_refusal_is_not_tried_again(hub: HubServer) -> None:
    with pytest.raises(HubRefused, match="has no other/model at"):
        Hub(hub.url).tree("other/model", REVISION)
    assert hub.asked("other") == 1


def test_an_empty_revision_is_refused(hub: HubServer) -> None:
    hub.files.clear()
    with pytest.raises(CheckpointError, match="lists no files"):
        Hub(hub.url).tree(REPOSITORY, REVISION)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a//b", ".cache/x", ".llmfleet-stamp.json"])
def test_a_path_that_leaves_the_folder_is_refused(hub: HubServer, path: str) -> None:
    hub.files[path] = b"x"
    with pytest.raises(CheckpointError, match=r"not what a Hub gives.*not one that a checkpoint may have"):
        Hub(hub.url).tree(REPOSITORY, REVISION)


class Redirector:
    """Answers everything with a redirect to `goal`, or with an empty list if there is none."""

    def __init__(self) -> None:
        self.goal = ""
        self.tokens: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.tokens.append(self.headers.get("Authorization"))
                goal = outer.goal if "moved" not in self.path else ""
                self.send_response(307 if goal else 200)
                if goal:
                    self.send_header("Location", goal)
                self.end_headers()
                if not goal:
                    self.wfile.write(b"[]")

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def redirector() -> t.Iterator[Redirector]:
    server = Redirector()
    yield server
    server.close()


def test_the_token_follows_a_redirect_within_the_hub(redirector: Redirector) -> None:
    redirector.goal = f"{redirector.url}/moved"
    with pytest.raises(CheckpointError, match="lists no files"):
        Hub(redirector.url, token="secret").tree(REPOSITORY, REVISION)
    assert redirector.tokens == ["Bearer secret", "Bearer secret"]


def test_the_token_does_not_follow_a_redirect_elsewhere(redirector: Redirector, hub: HubServer) -> None:
    redirector.goal = f"{hub.url}/api/models/{REPOSITORY}/tree/{REVISION}"
    assert Hub(redirector.url, token="secret").tree(REPOSITORY, REVISION)
    assert hub.tokens[-1][1] is None
