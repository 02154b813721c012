# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops and starts of what is not as it should be: no unit file, a trigger, folders closed to the service user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testinfra.host import Host

from tests.faults.breaking import DROP_IN, NODE, converges, deploy, refused
from tests.faults.test_models import QWEN, play
from tests.fleet.control import module
from tests.fleet.hosts import SERVICE, Serving, root, serving, show

LOST, PORT = "llmfleet-test-lost", 31002
# SIGTERM ends it; with KillMode=control-group the drain sends it, and systemd then forgets a unit without a file.
SERVER = f"/usr/bin/python3 -m http.server --bind 127.0.0.1 {PORT}"
UNIT = f"/run/systemd/system/{LOST}.service"


def stop() -> dict[str, Any]:
    """What the module service_stop answers for the throw-away service."""
    return module(NODE, "service_stop", {"name": LOST, "ports": [PORT], "drain_timeout": 5})


@pytest.fixture
def lost(node: Host) -> Iterator[None]:
    """Whatever the test starts under this name is gone afterwards."""
    yield
    root(node, f"systemctl stop {LOST}.path 2>/dev/null; systemctl kill --signal=KILL {LOST} 2>/dev/null || true")
    root(node, f"rm -f {UNIT} /run/systemd/system/{LOST}.path && systemctl daemon-reload")


def written(host: Host, start: str) -> None:
    """Write the throw-away unit and start it as said."""
    root(
        host, f"printf '[Service]\\nKillMode=control-group\\nExecStart={SERVER}\\n' > {UNIT} && systemctl daemon-reload"
    )
    root(host, start)


@pytest.mark.parametrize(
    "start",
    [
        f"systemctl start {LOST} && rm {UNIT}",
        f"systemctl start {LOST} && rm {UNIT} && systemctl daemon-reload",
        f"rm {UNIT} && systemctl daemon-reload && systemd-run --unit={LOST} -p KillMode=control-group {SERVER}",
    ],
    ids=["removed", "removed and reloaded", "transient"],
)
def test_a_service_without_a_unit_file_is_stopped_while_it_is_drained(node: Host, lost: None, start: str) -> None:
    written(node, start)
    root(node, f"for try in $(seq 50); do ss -Htln sport = :{PORT} | grep -q . && exit 0; sleep 0.2; done; exit 1")
    answer = stop()
    assert not answer.get("failed") and answer["stopped"] and answer["held"] == [], answer
    assert show(node, LOST, "ActiveState") == {"ActiveState": "inactive"}


def test_a_service_that_a_path_starts_is_left_alone_and_the_path_named(node: Host, lost: None) -> None:
    root(node, f"printf '[Path]\\nPathExists=/run\\n' > /run/systemd/system/{LOST}.path")
    written(node, f"systemctl start {LOST}.path")
    answer = stop()
    assert answer["failed"] and answer["stopped"] is False
    assert f"systemctl disable --now {LOST}.path" in answer["msg"]


@pytest.mark.parametrize("folder", ["/models", "{release}/venv"])
def test_what_the_service_user_may_not_pass_is_refused_while_the_old_one_serves(
    node: Host, deployed: Serving, folder: str
) -> None:
    python = root(node, f"tr '\\0' '\\n' < /proc/{deployed.pid}/cmdline | head -1").strip()
    path = folder.format(release=python.removesuffix("/venv/bin/python"))
    root(node, f"chmod 700 {path}")
    try:
        message = refused(deploy())
        assert f"what lies in {path}: chmod o+rx {path}" in message
        assert serving(node) == deployed
    finally:
        root(node, f"chmod 755 {path}")
    converges(node)


FAILS = """[Service]
ExecStartPre=/bin/sh -c 'echo "PermissionError: [Errno 13] Permission denied: /nowhere" >&2; exit 3'
"""


def test_a_start_that_fails_says_why_with_the_cause_first(node: Host, deployed: Serving) -> None:
    play("stop", sglang_profile=QWEN).must_pass()
    root(node, f"mkdir -p $(dirname {DROP_IN}) && printf %s > {DROP_IN} && systemctl daemon-reload", FAILS)
    message = refused(play("start", sglang_profile=QWEN))
    assert "The service user may not do what the engine needs" in message and "[permission;" in message
    assert f"journalctl --unit={SERVICE}" in message
    root(node, f"rm {DROP_IN} && systemctl daemon-reload")
    play("start", sglang_profile=QWEN).must_pass()
    assert serving(node).unit == deployed.unit


def test_a_key_that_is_refused_is_said_without_the_journal(node: Host, deployed: Serving) -> None:
    wrong = play("start", sglang_profile=QWEN, sglang_api_key="another")
    assert "The server refuses the key (401): set sglang_api_key" in refused(wrong)
    assert "INFO:" not in wrong.output
    assert serving(node) == deployed


def test_what_was_never_deployed_is_not_started(node: Host, deployed: Serving) -> None:
    message = refused(play("start", sglang_profile="glm_5_nvfp4", sglang_checkpoint_bytes=10**6))
    assert "There is no sglang-glm.service on this host, and nothing was started. Deploy it" in message
    assert serving(node) == deployed
