# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkpoint from host to host, on real nodes: one fetches, hosts die, hosts come late, hosts fail.

A demo fleet has to be up (make fleet). The checkpoint goes to a folder of its own on three nodes (LLMFLEET_FAULT_NODES,
else node1,node2,node3 of the inventory), and what serves there is not touched.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleet import config
from tests.fleet.control import BIN, INVENTORY, PROJECT, Run, environment, run
from tests.fleet.hosts import wait

NODES = os.environ.get("LLMFLEET_FAULT_NODES", "node1,node2,node3").split(",")
FIRST, SECOND, THIRD = NODES
PROFILE = "qwen3_5_397b_nvfp4"
ROOT = "/srv/llmfleet-fault-checkpoint"
PLAY = PROJECT / "tests" / "faults" / "checkpoint.yml"
# The same, and a host that fails does not end the play.
EACH = PLAY.with_name("checkpoint_each.yml")
UNIT = "llmfleet-checkpoint.service"
NOWHERE = "http://127.0.0.1:9"
STAGED = f"find {ROOT}/models/.checkpoints/.staging -name '.model.safetensors.*' 2>/dev/null | head -1"


def node(name: str, script: str, timeout: float = 120) -> str:
    """What a shell script prints as root on a node; fails the test when it fails."""
    words = [str(BIN / "python"), "-m", "fleet", "ssh", name, "sudo", "bash", "-s"]
    done = subprocess.run(
        words, cwd=PROJECT, input=script, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{name}: {script!r} -> rc {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def words(*names: str, play: Path = PLAY, **variables: object) -> list[str]:
    """The command that brings the checkpoint to these nodes."""
    given = {"sglang_profile": PROFILE, "sglang_models": f"{ROOT}/models", "sglang_root": f"{ROOT}/root", **variables}
    limit = f"--limit={','.join(names)}"
    return [str(BIN / "ansible-playbook"), str(play), "-i", str(INVENTORY), limit, "-e", json.dumps(given)]


def bring(*names: str, play: Path = PLAY, **variables: object) -> Run:
    """Bring it, to the end."""
    return run(list(words(*names, play=play, **variables)), timeout=400)


def content(name: str) -> str:
    """The digests of what is behind the link on a node, our own records left out."""
    folder = f"{ROOT}/models/{PROFILE}/"
    return node(name, f"cd {folder} && find . -type f ! -name '.llmfleet-stamp.json' | sort | xargs sha256sum")


def has_it(name: str) -> bool:
    """Whether the link is there."""
    return node(name, f"test -L {ROOT}/models/{PROFILE} && echo yes || true") == "yes"


def serves(name: str) -> bool:
    """Whether the node gives its checkpoint to others."""
    return node(name, f"systemctl is-active {UNIT} || true") in ("active", "activating")


def hub_log() -> list[str]:
    """What the simulated Hub's large files were asked for, and by whom."""
    lines = (config.RUNTIME / "services.log").read_text(errors="replace").splitlines()
    return [line for line in lines if f" {config.CDN_PORT} " in line and " 200 " in line and '"GET ' in line]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Nothing of the test on the nodes, before and after; `hf` stays between tests."""
    wipe = f"mountpoint -q {ROOT}/models && umount {ROOT}/models; rm -rf {ROOT}/models; systemctl stop {UNIT} || true"
    for name in NODES:
        node(name, wipe)
    yield
    for name in NODES:
        node(name, wipe)


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    """In the end nothing stays."""
    yield
    for name in NODES:
        node(name, f"rm -rf {ROOT}")


def test_one_fetches_and_the_others_take_it_from_each_other() -> None:
    before = len(hub_log())
    bring(*NODES).must_pass()
    asked = hub_log()[before:]
    hosts = yaml.safe_load((INVENTORY / "hosts.yml").read_text())["sglang"]["hosts"]
    assert {line.split()[2] for line in asked} == {hosts[FIRST]["ansible_host"]}
    assert len({content(name) for name in NODES}) == 1
    assert not any(map(serves, NODES))
    for name in NODES:
        odd = f"find {ROOT}/models -not -type l '(' -not -user root -o -perm /022 ')' | head"
        assert node(name, odd) == ""
        assert node(name, f"ls -d {ROOT}/models/.checkpoints/*/*/.cache 2>/dev/null || true") == ""
        assert node(name, "ls -d /run/llmfleet-* 2>/dev/null || true") == ""
    assert bring(*NODES).must_pass().changed == dict.fromkeys(NODES, 0)


def test_a_host_that_comes_late_is_served_without_the_hub() -> None:
    bring(FIRST, SECOND).must_pass()
    late = {FIRST: 0, SECOND: 0, THIRD: 1}
    foreseen = run([*words(*NODES, sglang_hub_endpoint=NOWHERE), "--check"], timeout=400).must_pass()
    assert foreseen.changed == late
    assert "cannot be reached" not in foreseen.output
    # that the first two gave it is no change of theirs
    assert bring(*NODES, sglang_hub_endpoint=NOWHERE).must_pass().changed == late
    assert content(THIRD) == content(FIRST)


def test_a_copy_that_was_touched_is_read_again_without_hub_or_index() -> None:
    bring(*NODES).must_pass()
    node(THIRD, f"find -L {ROOT}/models/{PROFILE} -name '*.safetensors' -exec touch {{}} +; rm -rf {ROOT}/root/tools")
    again = bring(THIRD, sglang_hub_endpoint=NOWHERE, sglang_index_url=f"{NOWHERE}/simple").must_pass()
    assert again.changed == {THIRD: 0}


def test_a_seed_that_fails_is_replaced_by_the_next_host() -> None:
    node(FIRST, f"mkdir -p {ROOT}/models; mount -t tmpfs -o size=200k none {ROOT}/models")
    told = bring(*NODES, play=EACH)
    assert told.rc != 0
    assert [error for error in told.errors if "are missing. Make room" in error]
    assert content(SECOND) == content(THIRD)
    assert not any(map(serves, NODES))
    assert told.recap[FIRST]["failed"] == 1
    assert told.recap[SECOND]["failed"] == told.recap[THIRD]["failed"] == 0


def test_a_host_that_fails_ends_the_play_once_all_others_have_it_and_nobody_serves_on() -> None:
    node(THIRD, f"mkdir -p {ROOT}/models; mount -t tmpfs -o size=200k none {ROOT}/models")
    told = bring(*NODES)
    assert told.rc != 0
    assert has_it(FIRST) and has_it(SECOND)
    assert "TASK [Go on to what comes after]" not in told.output
    assert not any(map(serves, NODES))


def test_a_giver_that_is_killed_in_the_middle_is_replaced() -> None:
    """The third takes from the first, slowly; the first is killed, and the second has it, too."""
    bring(FIRST, SECOND).must_pass()
    command = words(*NODES, sglang_checkpoint_bytes_per_second=20_000, sglang_hub_endpoint=NOWHERE)
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as playbook:
        try:
            wait("a transfer to be under way", lambda: node(THIRD, STAGED) != "", 120)
            node(FIRST, f"systemctl kill --signal=KILL {UNIT}")
            output, _none = playbook.communicate(timeout=200)
        finally:
            playbook.kill()
    assert playbook.returncode == 0, output
    assert content(THIRD) == content(SECOND)
    assert not any(map(serves, NODES))


def test_a_playbook_that_is_killed_leaves_a_server_that_ends_by_itself_and_the_next_run_goes_on() -> None:
    bring(FIRST, SECOND).must_pass()
    command = words(*NODES, sglang_checkpoint_bytes_per_second=5_000, sglang_checkpoint_serve_seconds=60)
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as playbook:
        try:
            wait("a transfer to be under way", lambda: node(THIRD, STAGED) != "", 120)
        finally:
            playbook.kill()
    assert serves(FIRST)
    wait("the forgotten server to end", lambda: not serves(FIRST), 90)
    # the module does not know that its playbook is gone; who holds the lock stands in it and is named by the next run
    node(THIRD, f"xargs kill < {ROOT}/models/.checkpoints/.staging/*.lock")
    bring(*NODES, sglang_hub_endpoint=NOWHERE).must_pass()
    assert content(THIRD) == content(FIRST)
