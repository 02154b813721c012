# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine that dies: while it starts, in service, again and again, at once; or that is slower than it may be."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from tests.faults.breaking import (
    DROP_IN,
    NODE,
    SERVES_AGAIN,
    another,
    answers,
    converges,
    deploy,
    deployment,
    one_engine,
    refused,
    restored,
    starting,
)
from tests.fleet.hosts import SERVICE, Serving, main_pid, root, serving, show, wait

EXITS_AT_ONCE = "[Service]\nExecStart=\nExecStart=/bin/false\n"


def test_killed_while_it_starts(node: Host, deployed: Serving) -> None:
    wanted = another()
    with deployment(wanted) as run:
        root(node, f"kill -9 {starting(node, deployed.pid)}")
        message = refused(run.end())
    assert "A process of the engine was killed from outside (9/KILL)." in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    converges(node, wanted)


@pytest.mark.parametrize("times", [1, 2])
def test_killed_in_service_it_comes_back(node: Host, deployed: Serving, times: int) -> None:
    root(node, f"systemctl reset-failed {SERVICE} 2>/dev/null || true")  # starts that others took do not count
    pid = deployed.pid
    for _time in range(times):
        root(node, f"kill -9 {pid}")
        pid = starting(node, pid)
    after = answers(node)
    assert (after.pid, after.unit) == (pid, deployed.unit)
    assert one_engine(node) == pid
    assert show(node, SERVICE, "NRestarts") == {"NRestarts": str(times)}
    converges(node)


def test_killed_more_often_than_its_limit_it_stays_down_until_the_next_run(node: Host, deployed: Serving) -> None:
    root(node, f"systemctl reset-failed {SERVICE} 2>/dev/null || true")
    pid = deployed.pid
    for _start in range(3):
        root(node, f"kill -9 {pid}")
        pid = starting(node, pid)
    root(node, f"kill -9 {pid}")
    wait("systemd to give up", lambda: show(node, SERVICE, "ActiveState") == {"ActiveState": "failed"}, timeout=60)
    assert "Start request repeated too quickly" in root(node, f"journalctl --no-pager --lines=20 --unit={SERVICE}")
    assert main_pid(node) == 0
    converges(node)


@pytest.mark.usefixtures("deployed")
def test_one_that_hangs_is_restarted_by_the_next_run(node: Host) -> None:
    deploy().must_pass()
    before = serving(node)
    root(node, f"systemctl kill --kill-whom=all --signal=STOP {SERVICE}")
    run = deploy().must_pass()
    after = serving(node)
    assert f"{NODE}  new " in run.output
    assert after.pid != before.pid and after.unit == before.unit
    converges(node)


def test_a_unit_that_exits_at_once(node: Host, deployed: Serving) -> None:
    wanted = another()
    with deployment(wanted) as run:
        run.until("Stop each service and prove it gone] *")
        root(node, f"mkdir -p $(dirname {DROP_IN}) && printf %s > {DROP_IN}", EXITS_AT_ONCE)
        message = refused(run.end())
    assert f"{SERVICE}.service has failed (result exit-code, exit status 1)" in message
    assert SERVES_AGAIN in message
    assert not node.file(DROP_IN).exists  # what was not there before is not there afterwards
    restored(node, deployed)
    converges(node, wanted)


def test_a_start_that_is_slower_than_it_may_be(node: Host, deployed: Serving) -> None:
    wanted = another(sglang_ready_timeout=4)
    message = refused(deploy({**wanted, "sglang_api_key": "of-what-never-served"}))  # the old one has to come back too
    assert "raise sglang_ready_timeout" in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    converges(node, {**wanted, "sglang_ready_timeout": 300})
    assert serving(node).unit != deployed.unit
