# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every instance of a host is found, and what is said of it is what was looked at."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.drift import CannotCompare, Drift
from ansible_collections.llmfleet.sglang.plugins.module_utils._status import instances
from ansible_collections.llmfleet.sglang.plugins.module_utils._status.engine import Answers
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

RELEASE = "0.5.23-ff542dc8f-0123456789abcdef"
ENGINE = "python -m sglang.launch_server --served-model-name qwen --host 10.0.0.1 --port 30000"


def clean(folder: Path, record: Mapping[str, Any]) -> Sequence[Drift]:
    return []


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    """A host on which our sglang-qwen runs what was recorded."""
    fake = FakeHost(tmp_path)
    record = {"service": "sglang-qwen", "served_model_name": "qwen", "release": RELEASE, "commit": "ff", "state": "s1"}
    write(tmp_path / "state" / "qwen" / "record.json", record)
    write(tmp_path / "state" / "qwen" / "snapshot.json", {"phase": "serving"})
    release = {"id": RELEASE, "patched": [{"id": "sizes", "state": "present", "file": "x.py"}]}
    write(tmp_path / "root" / "releases" / RELEASE / "release.json", release)
    fake.add_process(10, ENGINE, unit="sglang-qwen.service", env={"LLMFLEET_STATE": "s1"})
    fake.add_process(11, ENGINE, unit="sglang-qwen.service", ppid=10)  # a worker that has not renamed itself yet
    fake.add_unit("sglang-qwen.service", main_pid=10)
    return fake


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def how(host: FakeHost, **changes: Any) -> instances.Look:
    asked = Answers(ready=True, running=1, queued=0, tokens_per_second=5.0)
    known = instances.Look(
        state=host.root / "state",
        root=host.root / "root",
        proc=host.proc,
        run=host.run,
        ask=lambda url, limit: asked if url == "http://10.0.0.1:30000" else Answers(),
        drift=clean,
        now=lambda: 1_000_000.0,
        uptime=lambda: 500.0,
    )
    return replace(known, **changes)


def test_what_serves_as_recorded_has_no_problem(host: FakeHost) -> None:
    [one] = instances.look(how(host))
    assert (one.name, one.service, one.ours, one.main_pid, one.model) == ("qwen", "sglang-qwen", True, 10, "qwen")
    assert (one.ready, one.running, one.tokens_per_second) == (True, 1, 5.0)
    assert one.as_recorded is True
    assert one.patched == [{"id": "sizes", "state": "present"}]
    assert one.since == 1_000_000 - (500 - 1000 // os.sysconf("SC_CLK_TCK"))
    assert one.verdict == "the new service answered"
    assert one.problems == []


def test_another_state_than_the_recorded_one_is_said(host: FakeHost) -> None:
    write(host.root / "state" / "qwen" / "record.json", {"service": "sglang-qwen", "release": RELEASE, "state": "s2"})
    [one] = instances.look(how(host))
    assert one.as_recorded is False
    assert "not what was recorded" in one.problems[0]


def test_a_stopped_and_a_failed_instance_are_told_apart(host: FakeHost) -> None:
    host.remove_process(11)
    host.remove_process(10)
    host.add_unit("sglang-qwen.service", active="failed", Result="start-limit-hit")
    [one] = instances.look(how(host))
    assert (one.main_pid, one.since, one.ready, one.as_recorded) == (0, None, None, None)
    assert one.problems == ["the unit has failed (start-limit-hit): journalctl -u sglang-qwen.service"]


def test_a_foreign_server_behind_a_script_is_found_and_asked(host: FakeHost) -> None:
    host.add_process(20, "/bin/bash /opt/kimi/run.sh", unit="sglang-kimi.service")
    host.add_process(21, ENGINE.replace("qwen", "kimi"), unit="sglang-kimi.service", ppid=20)
    host.add_unit("sglang-kimi.service", main_pid=20)
    _ours, foreign = instances.look(how(host))
    assert (foreign.name, foreign.ours, foreign.main_pid, foreign.model) == ("sglang-kimi", False, 20, "kimi")
    assert foreign.ready is True


def test_a_server_outside_of_any_service_is_found(host: FakeHost) -> None:
    host.add_process(30, "python -m sglang.launch_server --port 31000")
    found = instances.look(how(host))[1]
    assert (found.name, found.service, found.main_pid) == ("pid 30", "", 30)


def test_drift_and_what_hinders_looking_for_it_are_said(host: FakeHost) -> None:
    def edited(folder: Path, record: Mapping[str, Any]) -> Sequence[Drift]:
        return [Drift("patched_file", "a.py", "1", "2")]

    def dumb(folder: Path, record: Mapping[str, Any]) -> Sequence[Drift]:
        raise CannotCompare("no interpreter")

    [one] = instances.look(how(host, drift=edited))
    assert one.drift[0]["name"] == "a.py"
    [one] = instances.look(how(host, drift=dumb))
    assert one.problems == ["the release cannot be compared with its record: no interpreter"]
    [one] = instances.look(how(host, drift=dumb, compare=False))
    assert one.problems == []


def test_a_release_that_went_and_a_cutover_that_did_not_end_are_said(host: FakeHost) -> None:
    (host.root / "root" / "releases" / RELEASE / "release.json").unlink()
    write(host.root / "state" / "qwen" / "snapshot.json", {"phase": "cutover"})
    [one] = instances.look(how(host))
    assert one.problems == [
        "a cut-over has begun and not ended: run the deployment or llmfleet.sglang.rollback",
        f"the release {RELEASE} is not there",
    ]


def test_a_first_cutover_that_died_is_our_instance_before_it_has_a_record(host: FakeHost) -> None:
    folder = host.root / "state" / "qwen"
    (folder / "record.json").unlink()
    write(folder / "snapshot.json", {"phase": "cutover"})
    [one] = instances.look(how(host))  # while it is starting
    assert (one.name, one.service, one.ours, one.main_pid) == ("qwen", "sglang-qwen", True, 10)
    assert (one.as_recorded, one.verdict) == (None, "a cut-over has begun and not ended")
    assert one.problems == ["a cut-over has begun and not ended: run the deployment or llmfleet.sglang.rollback"]
    host.remove_process(11)
    host.remove_process(10)
    host.add_unit("sglang-qwen.service", active="failed", Result="exit-code")
    [one] = instances.look(how(host))
    assert (one.active, one.main_pid) == ("failed", 0)
    (folder / "snapshot.json").write_text("{")
    [one] = instances.look(how(host))
    assert one.problems[0].endswith("snapshot.json cannot be read")
    # It went back, and nothing is left of it but how it ended.
    write(folder / "snapshot.json", {"phase": "restored"})
    assert instances.look(how(host)) == []


def test_a_record_that_cannot_be_read_does_not_hide_the_instance(host: FakeHost) -> None:
    (host.root / "state" / "qwen" / "record.json").write_text("{")
    [one] = instances.look(how(host))
    assert one.service == "sglang-qwen"
    assert one.problems[0].endswith("record.json cannot be read")


def test_the_cards_are_summed(host: FakeHost) -> None:
    host.gpu_memory[10] = 4000
    told = instances.cards(host.run)
    assert (told["count"], told["memory_total"], told["problem"]) == (2, 2 * 97887, "")
    assert told["memory_used"] > 0
    host.gpu_problem = "NVRM: driver mismatch"
    assert instances.cards(host.run)["count"] == 0
