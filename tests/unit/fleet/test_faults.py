# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's power, strangers on the services' ports, and which tests of faults a run leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet import faults, network, nodes, services
from fleet.config import Node
from fleet.shell import FleetError
from tests.faults import passed
from tests.faults.passed import Passed

COMMIT = "0123456789" * 4


def test_a_node_that_loses_its_power_says_goodbye_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(network, "node_down", lambda node: done.append(f"link of {node.name}"))
    monkeypatch.setattr(nodes, "end", lambda pids: done.append("processes"))
    monkeypatch.setattr(nodes, "supervisors", lambda node: [])
    monkeypatch.setattr(nodes, "control_groups", lambda node: [])
    nodes.power_off(Node("node4", 4))
    assert done[:2] == ["link of node4", "processes"]


@pytest.mark.parametrize("state", ["off", "on"])
def test_a_node_without_a_disk_has_no_power(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str) -> None:
    monkeypatch.setattr(nodes, "layers_of", lambda node: [])
    with pytest.raises(FleetError, match="node4 is not of this fleet"):
        faults.power(tmp_path, Node("node4", 4), state)


@pytest.mark.parametrize("processes", [[], [4711]])
def test_a_stranger_on_the_ports_is_not_the_services(monkeypatch: pytest.MonkeyPatch, processes: list[int]) -> None:
    monkeypatch.setattr(services, "answering", lambda: True)
    monkeypatch.setattr(services, "processes", lambda: processes)
    assert services.running() is bool(processes)


class Cache(dict[str, Any]):
    """pytest's cache."""

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self[key] = value


def run(cache: Cache, monkeypatch: pytest.MonkeyPatch, failing: set[str], **given: Any) -> tuple[list[str], int]:
    """Run tests a and b at a commit, where some fail; which ran, and the exit status."""
    told = {"rev-parse": given.get("commit", COMMIT), "status": given.get("status", "")}
    monkeypatch.setattr(passed, "_git", lambda *words: told[words[0]])
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    option = SimpleNamespace(resume=given.get("resume", True))
    config = cast(pytest.Config, SimpleNamespace(cache=cache, option=option, hook=hook))
    plugin = Passed(config)
    marks = {"a": None, "b": SimpleNamespace(args=(8,))}
    items = [SimpleNamespace(nodeid=name, get_closest_marker=lambda _name, m=mark: m) for name, mark in marks.items()]
    plugin.pytest_collection_modifyitems(config, cast("list[pytest.Item]", items))
    for item in items:
        for when in ("setup", "call", "teardown"):
            ok = not (when == "call" and item.nodeid in failing)
            report = SimpleNamespace(nodeid=item.nodeid, when=when, passed=ok, duration=1.0)
            plugin.pytest_runtest_logreport(cast(pytest.TestReport, report))
    status = pytest.ExitCode.OK if items else pytest.ExitCode.NO_TESTS_COLLECTED
    session = SimpleNamespace(exitstatus=int(status))
    plugin.pytest_sessionfinish(cast(pytest.Session, session), int(status))
    said: list[str] = given.get("said", [])
    plugin.pytest_terminal_summary(cast(pytest.TerminalReporter, SimpleNamespace(write_line=said.append)))
    return [item.nodeid for item in items], int(session.exitstatus)


def test_what_has_passed_at_a_commit_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache()
    assert run(cache, monkeypatch, {"b"}) == (["a", "b"], 0)
    assert run(cache, monkeypatch, set()) == (["b"], 0)
    assert run(cache, monkeypatch, set()) == ([], 0)  # nothing is left to run, and that is no failure
    assert run(cache, monkeypatch, set(), resume=False) == (["a", "b"], 0)


def test_the_end_counts_the_faults_that_were_tried_and_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, said = Cache(), cast("list[str]", [])
    run(cache, monkeypatch, {"b"}, said=said)  # b tries eight
    run(cache, monkeypatch, set(), said=said)
    assert [line for line in said if line.startswith("faults: ")] == [
        "faults: 9 tried, 1 survived",
        "faults: 9 tried, 9 survived",
    ]


def test_another_commit_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache()
    run(cache, monkeypatch, set())
    assert run(cache, monkeypatch, set(), commit="f" * 40) == (["a", "b"], 0)


def test_nothing_is_kept_of_what_no_commit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache()
    run(cache, monkeypatch, set(), status=" M file")
    assert not cache
