# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP services, asked over real sockets: ranges, ETags, and what `hf download` asks a Hub for."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleet.hub import CdnHandler, HubHandler, git_blob, lfs_pointer
from fleet.web import Handler, Server, Settings, StaticHandler, byte_range

REVISION = "0123456789" * 4
REPO = "org/model"
WEIGHTS = bytes(range(256)) * 40
CONFIG = b'{"a": 1}\n'


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Asks one server."""

    def __init__(self, server: Server) -> None:
        self.port = server.server_address[1]

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            reply = connection.getresponse()
            return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def json(self, path: str) -> object:
        return json.loads(self.ask(path).body)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(WEIGHTS)
    (model / "config.json").write_bytes(CONFIG)
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text("page")
    (static / "a-1-py3-none-any.whl").write_bytes(b"0123456789")
    (tmp_path / "secret").write_text("not for clients")
    about = {"folder": str(model), "revision": REVISION, "modified": "2026-01-01T00:00:00.000Z"}
    result = Settings(tmp_path / "services.json", {"/depot/": str(static)}, {REPO: about})
    result.save()
    return result


def serve(handler: type[Handler], settings: Settings) -> Iterator[Client]:
    server = Server(("127.0.0.1", 0), handler, settings)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield Client(server)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def static(settings: Settings) -> Iterator[Client]:
    yield from serve(StaticHandler, settings)


@pytest.fixture
def hub(settings: Settings) -> Iterator[Client]:
    yield from serve(HubHandler, settings)


@pytest.fixture
def cdn(settings: Settings) -> Iterator[Client]:
    yield from serve(CdnHandler, settings)


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, None),
        ("bytes=0-3", (0, 4)),
        ("bytes=4-", (4, 10)),
        ("bytes=-2", (8, 10)),
        ("bytes=-20", (0, 10)),
        ("bytes=8-99", (8, 10)),
        ("bytes=-", None),
        ("lines=1-2", None),
        ("bytes=0-1,3-4", None),
    ],
)
def test_ranges(header: str | None, wanted: tuple[int, int] | None) -> None:
    assert byte_range(header, 10) == wanted


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=5-4", "bytes=-0"])
def test_ranges_outside_the_file(header: str) -> None:
    with pytest.raises(ValueError, match="outside"):
        byte_range(header, 10)


def test_static_serves_files_ranges_and_folders(static: Client) -> None:
    path = "/depot/a-1-py3-none-any.whl"
    whole = static.ask(path)
    assert (whole.status, whole.body) == (200, b"0123456789")
    assert "immutable" in whole.headers["cache-control"]
    part = static.ask(path, Range="bytes=3-5")
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"345", "bytes 3-5/10")
    assert static.ask(path, Range="bytes=10-").status == 416
    assert static.ask(path, If_None_Match=whole.headers["etag"]).status == 304
    head = static.ask(path, method="HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "10")
    page = static.ask("/depot/")
    assert (page.body, page.headers["cache-control"]) == (b"page", "no-cache")


@pytest.mark.parametrize("path", ["/depot/../secret", "/depot/%2e%2e/secret", "/depot/nothing", "/", "/secret"])
def test_static_serves_nothing_else(static: Client, path: str) -> None:
    answer = static.ask(path)
    assert answer.status == 404
    assert b"not for clients" not in answer.body


def test_settings_change_while_a_server_runs(static: Client, settings: Settings) -> None:
    settings.static = {}
    settings.save()
    assert static.ask("/depot/").status == 404


def test_hub_describes_a_model_as_the_real_one_does(hub: Client) -> None:
    for path in (f"/api/models/{REPO}", f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/{REVISION}"):
        about = hub.json(path)
        assert isinstance(about, dict)
        assert (about["sha"], about["id"], about["private"]) == (REVISION, REPO, False)
        assert about["lastModified"] == "2026-01-01T00:00:00.000Z"
        assert [entry["rfilename"] for entry in about["siblings"]] == ["config.json", "model.safetensors"]


def test_hub_lists_small_files_by_blob_and_weights_by_sha256(hub: Client) -> None:
    listing = hub.json(f"/api/models/{REPO}/tree/{REVISION}?recursive=true&expand=false")
    assert isinstance(listing, list)
    small, large = listing
    assert small == {"type": "file", "oid": git_blob(CONFIG), "size": len(CONFIG), "path": "config.json"}
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    pointer = lfs_pointer(sha256, len(WEIGHTS))
    assert large["lfs"] == {"oid": sha256, "size": len(WEIGHTS), "pointerSize": len(pointer)}
    assert (large["size"], large["oid"]) == (len(WEIGHTS), git_blob(pointer))


def test_blob_ids_are_git_s(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CONFIG)
    said = subprocess.run(
        ["git", "hash-object", "--no-filters", "f"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == git_blob(CONFIG)


def test_hub_serves_small_files_itself(hub: Client) -> None:
    answer = hub.ask(f"/{REPO}/resolve/{REVISION}/config.json")
    assert (answer.status, answer.body) == (200, CONFIG)
    assert answer.headers["x-repo-commit"] == REVISION
    assert answer.headers["etag"] == f'"{git_blob(CONFIG)}"'


def test_hub_redirects_weights_to_another_origin(hub: Client) -> None:
    answer = hub.ask(f"/{REPO}/resolve/main/model.safetensors", method="HEAD")
    assert answer.status == 302
    assert answer.headers["x-linked-size"] == str(len(WEIGHTS))
    assert answer.headers["x-linked-etag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'
    assert answer.headers["location"] == f"http://10.77.0.1:8083/{REPO}/model.safetensors"
    assert answer.headers["x-repo-commit"] == REVISION


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/models/org/other", 401, "RepoNotFound"),
        (f"/api/models/{REPO}/revision/{'f' * 40}", 404, "RevisionNotFound"),
        (f"/{REPO}/resolve/{'f' * 40}/config.json", 404, "RevisionNotFound"),
        (f"/{REPO}/resolve/main/none.json", 404, "EntryNotFound"),
        (f"/{REPO}/resolve/main/../services.json", 404, "EntryNotFound"),
    ],
)
def test_hub_refuses_with_the_real_one_s_codes(hub: Client, path: str, status: int, code: str) -> None:
    answer = hub.ask(path)
    assert (answer.status, answer.headers["x-error-code"]) == (status, code)


def test_hub_says_that_it_is_simulated(hub: Client, cdn: Client) -> None:
    assert "simulated" in hub.ask("/api/agent-harnesses").headers["server"]
    assert "simulated" in cdn.ask("/").headers["server"]


def test_cdn_serves_weights_and_nothing_else(cdn: Client) -> None:
    answer = cdn.ask(f"/{REPO}/model.safetensors")
    assert (answer.status, answer.body) == (200, WEIGHTS)
    assert answer.headers["etag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'
    assert cdn.ask(f"/{REPO}/model.safetensors", Range="bytes=100-").body == WEIGHTS[100:]
    assert cdn.ask(f"/{REPO}/config.json").status == 404


@pytest.mark.parametrize("spans", [["bytes=0-"], ["bytes=0-4999", "bytes=5000-"]])
def test_wrong_bytes_flip_one_byte_and_keep_the_rest(cdn: Client, settings: Settings, spans: list[str]) -> None:
    settings.faults_path.write_text(json.dumps({"wrong_bytes": [f"{REPO}/model.safetensors"]}))
    body = b"".join(cdn.ask(f"/{REPO}/model.safetensors", Range=span).body for span in spans)
    different = [index for index, pair in enumerate(zip(body, WEIGHTS, strict=True)) if pair[0] != pair[1]]
    assert different == [len(WEIGHTS) // 2]
    settings.faults_path.unlink()
    assert cdn.ask(f"/{REPO}/model.safetensors").body == WEIGHTS


def test_wrong_bytes_of_a_small_file(hub: Client, settings: Settings) -> None:
    settings.faults_path.write_text(json.dumps({"wrong_bytes": [f"{REPO}/config.json"]}))
    answer = hub.ask(f"/{REPO}/resolve/main/config.json")
    assert len(answer.body) == len(CONFIG)
    assert answer.body != CONFIG
    assert answer.headers["etag"] == f'"{git_blob(CONFIG)}"'
