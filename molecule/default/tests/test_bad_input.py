# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bad input gets: one clear message, nothing changed, and what serves goes on serving, by the same process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testinfra.host import Host

from fleet import faults
from fleet.config import GIT_URL, HOST, HUB_URL, REPOSITORY
from tests.fleet.control import playbook
from tests.fleet.hosts import address, limit, nothing_changes, root, wait

UNKNOWN_COMMIT = "0123456789" * 4
MIRROR = "/opt/sglang/mirror/sglang.git"
# What git itself notes about a fetch, whatever came of it.
FETCH_NOTES = (f"{MIRROR}/config", f"{MIRROR}/FETCH_HEAD")


def refused(host: Host, variables: dict[str, Any], book: str = "deploy_qwen") -> str:
    """The one message with which a deployment with these variables fails."""
    run = playbook(f"playbooks/{book}.yml", limit([host]), variables=variables)
    assert run.rc != 0, run.output
    # The message, and at the end which host it was; or the message alone, before any host was touched.
    message, *end = run.errors
    assert [line for line in end if "not prepared, for the reason in the recap above." not in line] == []
    assert set(run.changed.values()) <= {0}, run.output
    assert "Traceback" not in run.output
    return message


def test_a_commit_that_the_mirror_lacks(node: Host) -> None:
    with nothing_changes(node, *FETCH_NOTES):
        message = refused(node, {"sglang_commit": UNKNOWN_COMMIT})
    assert f"{GIT_URL} has no commit {UNKNOWN_COMMIT}" in message
    assert "Pin one that it has: ansible-playbook llmfleet.sglang.pin -i INVENTORY." in message


def test_a_mirror_that_cannot_be_reached(node: Host) -> None:
    gone = f"http://{HOST}:9/git/sglang.git"
    with nothing_changes(node, f"{MIRROR}/FETCH_HEAD"):
        message = refused(node, {"sglang_commit": UNKNOWN_COMMIT, "sglang_repository": gone})
    assert f"The source {gone} cannot be had" in message
    assert f"Failed to connect to {HOST} port 9" in message


def test_an_unknown_profile(node: Host) -> None:
    with nothing_changes(node):
        message = refused(node, {"sglang_profile": "nope"}, book="deploy")
    assert "sglang_profile is 'nope', and there is no such model profile. Known: " in message
    assert "qwen3_5_397b_nvfp4" in message


def test_a_required_value_that_is_missing(node: Host) -> None:
    pin = "run `ansible-playbook llmfleet.sglang.pin -i INVENTORY`"
    wanted = {"commit": pin, "listen_host": "set the address"}
    with nothing_changes(node):
        for name, how in wanted.items():
            assert f"sglang_{name} is not set: {how}" in refused(node, {f"sglang_{name}": ""})
        message = refused(node, {"sglang_checkpoint_revisions": {}})
    assert "sglang_checkpoint_revisions has no entry 'qwen3_5_397b_nvfp4': run `ansible-playbook" in message


def test_too_little_disk(node: Host) -> None:
    with nothing_changes(node):
        message = refused(node, {"sglang_checkpoint_bytes": 9 * 10**12})
    assert "Too little disk at /" in message
    assert "needed" in message and "free" in message and "short of" in message


@pytest.fixture
def port_holder(node: Host) -> Iterator[int]:
    """A port of the node's address that a stranger listens on."""
    unit, port = "llmfleet-test-stranger", 31000
    bind = f"/usr/bin/python3 -m http.server --directory /mnt --bind {address(node)} {port}"
    root(node, f"systemd-run --quiet --collect --unit={unit} {bind}")
    try:
        wait("the stranger to listen", lambda: node.socket(f"tcp://{address(node)}:{port}").is_listening, timeout=20)
        yield port
    finally:
        root(node, f"systemctl stop {unit}")


def test_a_port_that_someone_else_holds(node: Host, port_holder: int) -> None:
    with nothing_changes(node):
        message = refused(node, {"sglang_port": port_holder})
    assert f"Somebody else holds port {port_holder} on {address(node)}: pid " in message
    assert "llmfleet-test-stranger.service" in message
    assert "set another sglang_port" in message


@pytest.fixture
def seed(nodes: list[Host]) -> Host:
    """The node that fetched the checkpoint for the site, so that it has `hf` already."""
    return nodes[0]


@pytest.fixture
def empty_models(seed: Host) -> Iterator[str]:
    """A folder for checkpoints which holds none yet, and a Hub that gives wrong bytes for the weights."""
    folder = "/models-test"
    faults.switch("wrong_bytes", [f"{REPOSITORY}/model.safetensors"])
    try:
        yield folder
    finally:
        faults.switch("clear", [])
        root(seed, f"rm -rf {folder}")


def test_a_checkpoint_file_that_does_not_match_its_digest(seed: Host, empty_models: str) -> None:
    with nothing_changes(seed, f"{empty_models}.*"):
        message = refused(seed, {"sglang_models": empty_models})
    assert f"Not as {REPOSITORY} at " in message
    assert "model.safetensors: expected sha256 " in message
    assert "The endpoint gives wrong bytes" in message and HUB_URL in message
    assert "Nothing that is served was changed." in message
    assert not root(seed, f"find {empty_models} -maxdepth 1 -type l").strip()
