# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine that calls itself well and answers wrongly: a checkpoint of the right form, with shuffled weights."""

from __future__ import annotations

import array
import hashlib
import random
import shutil
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from testinfra.host import Host

from fleet import hub
from fleet.config import HOST, REPOSITORY
from fleet.hub import CdnHandler, HubHandler
from fleet.services import settings
from fleet.web import Server, Settings
from tests.faults.breaking import (
    SERVES_AGAIN,
    another,
    converges,
    deploy,
    deployment,
    phase,
    refused,
    restored,
    starting,
)
from tests.fleet.hosts import Serving


@dataclass(frozen=True)
class Repository:
    """A checkpoint on a Hub: where, and its revision."""

    endpoint: str
    revision: str


def shuffle(weights: Path) -> str:
    """Shuffle a safetensors file's numbers (of two bytes each) over all tensors; return the file's SHA-256."""
    content = weights.read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    numbers = array.array("H", content[start:])
    random.Random(20260101).shuffle(numbers)
    weights.write_bytes(content[:start] + numbers.tobytes())
    return hashlib.sha256(weights.read_bytes()).hexdigest()


@pytest.fixture
def shuffled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """The fleet's checkpoint with shuffled weights, on a simulated Hub of its own."""
    folder = tmp_path / "model"
    shutil.copytree(settings().load().models[REPOSITORY]["folder"], folder)
    revision = shuffle(folder / "model.safetensors")[:40]
    about = {"folder": str(folder), "revision": revision, "modified": "2026-01-01T00:00:00.000Z"}
    own = Settings(tmp_path / "services.json", models={REPOSITORY: about})
    own.save()
    servers = [Server((HOST, 0), handler, own) for handler in (HubHandler, CdnHandler)]
    front, content = (f"http://{HOST}:{server.server_address[1]}" for server in servers)
    monkeypatch.setattr(hub, "CDN_URL", content)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Repository(front, revision)
    for server in servers:
        server.shutdown()
        server.server_close()


def test_wrong_answers(node: Host, deployed: Serving, shuffled: Repository) -> None:
    wrong = another(sglang_hub_endpoint=shuffled.endpoint, sglang_checkpoint_revision=shuffled.revision)
    message = refused(deploy(wrong))
    assert "gave a wrong answer" in message and "the capital of France?" in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    # The same weights are refused again; those that are pinned are served.
    assert "gave a wrong answer" in refused(deploy(wrong))
    restored(node, deployed)
    converges(node, {name: value for name, value in wrong.items() if name == "sglang_environment"})


def test_wrong_answers_of_what_a_killed_run_has_started(node: Host, deployed: Serving, shuffled: Repository) -> None:
    wrong = another(sglang_hub_endpoint=shuffled.endpoint, sglang_checkpoint_revision=shuffled.revision)
    with deployment(wrong) as run:
        starting(node, deployed.pid)
        run.kill()
    assert phase(node) == "cutover"
    # What is wanted runs already, and nobody has proven it.
    message = refused(deploy(wrong))
    assert "gave a wrong answer" in message and SERVES_AGAIN in message
    restored(node, deployed)
    converges(node, {name: value for name, value in wrong.items() if name == "sglang_environment"})
