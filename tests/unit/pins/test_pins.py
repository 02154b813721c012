# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches, tags and a model's main become pins: looked up, never guessed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import lookup

from tests.unit.release.repository import Repository

A, B, C, D, E = (digit * 40 for digit in "abcde")
LISTING = f"""\
{A}\tHEAD
{A}\trefs/heads/main
{B}\trefs/heads/release/v0.5
{C}\trefs/tags/v0.5.23
{D}\trefs/tags/v0.5.23^{{}}
{E}\trefs/tags/v0.5.22
{B}\trefs/heads/both
{C}\trefs/tags/both
"""


@pytest.mark.parametrize(
    ("reference", "commit"),
    [
        ("main", A),
        ("release/v0.5", B),
        ("v0.5.23", D),  # an annotated tag is an object of its own; the commit is behind it
        ("v0.5.22", E),  # a light tag is the commit
        ("both", B),  # a branch goes before a tag
    ],
)
def test_a_branch_or_tag_is_found_in_what_git_lists(reference: str, commit: str) -> None:
    assert lookup.pick(LISTING, reference) == commit


@pytest.mark.parametrize("reference", ["mai", "v0.5", "v0.5.23^{}x", "refs/heads/main", "aaaaaaa", "", "HEAD"])
def test_what_is_neither_is_refused_and_not_guessed(reference: str) -> None:
    with pytest.raises(lookup.PinError, match="there is no branch or tag"):
        lookup.pick(LISTING, reference)


@pytest.fixture
def upstream(tmp_path: Path) -> Repository:
    """An upstream with two annotated tags, a light one and a commit after them."""
    repository = Repository(tmp_path / "upstream")
    repository.commit("first")
    repository.git("tag", "--annotate", "v0.5.22", "--message", "0.5.22")
    repository.commit("second")
    repository.git("tag", "--annotate", "v0.5.23", "--message", "0.5.23")
    repository.git("tag", "gateway-v0.3.1")
    repository.commit("third")
    return repository


def commit(upstream: Repository, name: str) -> str:
    """Return the commit behind a name."""
    return upstream.git("rev-parse", f"{name}^{{commit}}")


@pytest.mark.parametrize(
    ("reference", "version"), [("v0.5.22", "0.5.22"), ("v0.5.23", "0.5.23"), ("main", "0.5.23-1-g{}")]
)
def test_a_reference_of_a_real_repository(upstream: Repository, reference: str, version: str) -> None:
    expected = commit(upstream, reference)
    assert lookup.source_pin(upstream.url, reference, {}) == lookup.SourcePin(
        commit=expected, version=version.format(expected[:7]), reference=reference
    )


def test_a_commit_is_its_own_pin_if_the_repository_has_it(upstream: Repository) -> None:
    older = commit(upstream, "v0.5.22")
    assert lookup.source_pin(upstream.url, older, {}).version == "0.5.22"
    with pytest.raises(lookup.PinError, match=f"there is no commit {A}"):
        lookup.source_pin(upstream.url, A, {})


def test_a_branch_that_moved_has_another_pin(upstream: Repository) -> None:
    before = lookup.source_pin(upstream.url, "main", {})
    upstream.commit("fourth")
    after = lookup.source_pin(upstream.url, "main", {})
    assert before.commit != after.commit == commit(upstream, "main")
    assert after.version.startswith("0.5.23-2-g")


def test_a_commit_before_every_version_has_none(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "upstream")
    repository.commit("first")
    with pytest.raises(lookup.PinError, match="no version tag leads to commit"):
        lookup.source_pin(repository.url, "main", {})


def test_a_repository_that_cannot_be_asked_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(lookup.PinError, match=r"'main' cannot be looked up in file://.*/nowhere"):
        lookup.source_pin(f"file://{tmp_path}/nowhere", "main", {})
    with pytest.raises(lookup.PinError) as caught:
        lookup.source_pin("http://user:hidden-word@127.0.0.1:9/sglang.git", "main", {})
    assert "hidden-word" not in str(caught.value)


# --- the Hub ---

REVISION = "9f8e7d6c" * 5
MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"


class Hub(ThreadingHTTPServer):
    """A server that answers as it is told to, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, content: Any, status: int = 200, **headers: str) -> None:
        """Say what a path answers."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.answers[path] = (status, body, headers)


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        """Answer a request."""
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        status, body, headers = self.server.answers.get(self.path, (404, b"{}", {}))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub on this machine."""
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def path(revision: str = "main") -> str:
    """Return where the Hub keeps a revision."""
    return f"/api/models/{MODEL}/revision/{revision}"


def test_a_models_main_becomes_its_revision(hub: Hub) -> None:
    hub.answer(path(), {"sha": REVISION, "id": MODEL})
    assert lookup.revision_pin(hub.url + "/", MODEL, "main") == REVISION
    assert hub.asked == [(path(), None)]


def test_a_branch_with_slashes_is_one_part_of_the_path(hub: Hub) -> None:
    hub.answer(path("refs%2Fpr%2F1"), {"sha": REVISION})
    assert lookup.revision_pin(hub.url, MODEL, "refs/pr/1") == REVISION


def test_the_token_goes_to_the_hub_and_not_to_whom_it_redirects_to(hub: Hub) -> None:
    hub.answer(path(), {}, 302, Location="/elsewhere")
    hub.answer("/elsewhere", {"sha": REVISION})
    assert lookup.revision_pin(hub.url, MODEL, "main", token="token-1") == REVISION
    assert hub.asked == [(path(), "Bearer token-1"), ("/elsewhere", None)]


def test_the_hub_is_asked_through_the_proxy_that_is_given(hub: Hub) -> None:
    hub.answer(f"http://hub.example{path()}", {"sha": REVISION})
    for name in ("http_proxy", "HTTP_PROXY"):
        assert lookup.revision_pin("http://hub.example", MODEL, "main", environment={name: hub.url}) == REVISION


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        ({"sha": "main"}, 200, "no revision of 40 hex digits"),
        ({"sha": None}, 200, "no revision of 40 hex digits"),
        ({}, 200, "no revision of 40 hex digits"),
        ([REVISION], 200, "no revision of 40 hex digits"),
        (b"<html>", 200, "does not say what 'main' of"),
        (b"", 200, "does not say what 'main' of"),
        ({}, 404, "HTTP 404: there is no such model or revision"),
        ({}, 401, "HTTP 401: it is private, gated or not there, and sglang_hub_token is not set"),
        ({}, 503, "HTTP 503"),
    ],
)
def test_an_answer_that_holds_no_revision_is_refused(hub: Hub, content: Any, status: int, says: str) -> None:
    hub.answer(path(), content, status)
    with pytest.raises(lookup.PinError) as caught:
        lookup.revision_pin(hub.url, MODEL, "main")
    assert says in str(caught.value)
    assert hub.url in str(caught.value)


def test_a_token_that_does_not_open_the_model_is_not_told(hub: Hub) -> None:
    hub.answer(path(), {}, 403)
    with pytest.raises(lookup.PinError, match="the token does not open it") as caught:
        lookup.revision_pin(hub.url, MODEL, "main", token="token-1")
    assert "token-1" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "nowhere"])
def test_a_hub_that_cannot_be_reached_is_named(endpoint: str) -> None:
    with pytest.raises(lookup.PinError, match=endpoint):
        lookup.revision_pin(endpoint, MODEL, "main", timeout=5)
