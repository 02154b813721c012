# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that loses its power (simulated): in the middle of a start, of a rollback, and while it serves."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from testinfra.host import Host

from fleet.config import OLD_SERVICE
from tests.faults.breaking import NODE, another, answers, converges, deployment, fleet, phase, starting
from tests.fleet.control import INVENTORY, Run
from tests.fleet.hosts import SERVICE, UNIT, Serving, main_pid, root, show, wait
from tests.fleet.reporting import end_connections

ARGUMENTS = yaml.safe_load((INVENTORY / "group_vars/sglang/cpu.yml").read_text())["sglang_arguments"]
# The engine's parser takes it; the engine refuses it when it has read the model's 2,048 positions.
BAD = {"sglang_arguments": {**ARGUMENTS, "context-length": 1_000_000}}


def power_comes_back(config: pytest.Config) -> None:
    """Boot the node again from its disk."""
    end_connections(config)
    fleet("power", NODE, "on")


def comes_back(host: Host, timeout: float = 240) -> Serving:
    """Wait until the wanted service answers after a boot, and see that it alone came back."""
    after = answers(host, timeout)
    units = root(host, "systemctl list-units --no-legend --plain --state=active,activating 'sglang-*'").split()
    assert [word for word in units if word.endswith(".service")] == [f"{SERVICE}.service"]
    assert show(host, OLD_SERVICE, "ActiveState", "UnitFileState") == {
        "ActiveState": "inactive",
        "UnitFileState": "disabled",
    }
    return after


def lost(run: Run) -> None:
    """The run has to say that the host is gone, and end."""
    assert run.rc != 0, run.output
    assert run.recap[NODE]["unreachable"] == 1, run.output
    assert f"{NODE}" in run.errors[-1] or "unreachable" in run.output.lower(), run.output


def unit(host: Host) -> str:
    """Digest of the unit file that is in force."""
    return root(host, f"sha256sum {UNIT}").split()[0]


def test_lost_during_a_start(node: Host, deployed: Serving, pytestconfig: pytest.Config) -> None:
    wanted: dict[str, Any] = another()
    with deployment(wanted) as run:
        starting(node, deployed.pid)
        fleet("power", NODE, "off")
        lost(run.end(timeout=240))
    power_comes_back(pytestconfig)
    after = comes_back(node)
    assert after.unit != deployed.unit  # the new one: it was decided upon before anything was stopped
    assert phase(node) == "cutover"  # and it is not concluded, until a run has proven it
    assert converges(node, wanted).pid == after.pid
    assert phase(node) == "serving"


def test_lost_during_a_rollback(node: Host, deployed: Serving, pytestconfig: pytest.Config) -> None:
    with deployment({**another(), **BAD}) as run:
        run.until("Go back to what served before] *")
        wait("the old unit", lambda: unit(node) == deployed.unit and main_pid(node) > 0, timeout=240, interval=0.1)
        fleet("power", NODE, "off")
        lost(run.end(timeout=240))
    power_comes_back(pytestconfig)
    assert comes_back(node).unit == deployed.unit
    converges(node, another())


def test_a_reboot_brings_back_what_is_wanted_and_only_that(
    node: Host, deployed: Serving, pytestconfig: pytest.Config
) -> None:
    fleet("power", NODE, "off")
    power_comes_back(pytestconfig)
    after = comes_back(node)
    assert after.unit == deployed.unit
    converges(node)
