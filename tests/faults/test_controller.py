# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is killed with -9: before the stop, after it, after the start."""

from __future__ import annotations

from testinfra.host import Host

from tests.faults.breaking import another, answers, converges, deployment, phase, starting
from tests.fleet.hosts import Serving, main_pid, serving, wait


def test_killed_before_the_stop(node: Host, deployed: Serving) -> None:
    wanted = another()
    with deployment(wanted) as run:
        run.until("Compare what runs with what is wanted] *")
        run.kill()
    assert serving(node) == deployed
    converges(node, wanted)


def test_killed_after_the_stop(node: Host, deployed: Serving) -> None:
    wanted = another()
    with deployment(wanted) as run:
        wait("the old service to stop", lambda: main_pid(node) == 0, timeout=240, interval=0.1)
        run.kill()
    wait("the snapshot of what served", lambda: phase(node) == "cutover", timeout=20)
    assert main_pid(node) == 0
    converges(node, wanted)


def test_killed_after_the_start(node: Host, deployed: Serving) -> None:
    wanted = another()
    with deployment(wanted) as run:
        pid = starting(node, deployed.pid)
        run.kill()
    # The engine comes up without a controller; a run proves it and concludes.
    assert answers(node).pid == pid
    assert phase(node) == "cutover"
    assert converges(node, wanted).pid == pid
    assert phase(node) == "serving"
