# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping a service and asking one note when they did so; what is noted by the others is in test_noted.py."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import completion
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.completion import Request, verify
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import Report
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.watch import Machine
from ansible_collections.llmfleet.sglang.plugins.modules import service_stop
from ansible_collections.llmfleet.sglang.tests.unit.host.engine import FRANCE, MODEL, Engine, reply
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

UNIT = {"name": "sglang-kimi.service", "active": "active", "file_state": "enabled"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "qwen").mkdir()
    return tmp_path / "qwen" / times.NAME


def steps(path: Path) -> list[dict[str, Any]]:
    return list(times.read(path).get("steps", []))


def stop(path: Path, monkeypatch: pytest.MonkeyPatch, report: Report, check: bool = False) -> None:
    monkeypatch.setattr(service_stop, "stop", lambda *_: report)
    given = {"name": "sglang-kimi", "times_file": str(path), "_ansible_check_mode": check}
    with patch_module_args(given), pytest.raises(SystemExit):
        service_stop.main()


def test_a_stop_is_noted_from_when_the_service_was_told_to_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.time()
    stop(path, monkeypatch, Report(before={"unit": UNIT}, stopped=True, drain={"seconds": 30.0}))
    [step] = steps(path)
    assert (step["step"], step["service"]) == ("stop", "sglang-kimi")
    assert 30 <= step["at"] - before + 0.01 <= 35 and step["ended"] < step["at"]


def test_what_had_come_up_by_itself_is_noted_with_since_when(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    """The run that had stopped the old service died, and another one asks, or stops, what serves since."""
    asked: list[tuple[Any, ...]] = []

    def since(*given: Any) -> float:
        asked.append(given[1:3])
        return 123.456

    monkeypatch.setattr(service_stop, "ready_since", since)
    monkeypatch.setattr(completion, "ready_since", since)
    stop(path, monkeypatch, Report(before={"unit": UNIT}, stopped=True))
    assert steps(path)[-1]["since"] == 123.46
    engine.script = lambda number, body: (200, reply("Paris."))
    host = FakeHost(tmp_path)
    host.add_unit("sglang-qwen.service", main_pid=10)
    request = Request(engine.url, (FRANCE,), MODEL, "sglang-qwen.service", timeout=20, times=path)
    verify(request, Machine(host.run, host.proc, host.clock, host.sleep))
    assert [one.get("since") for one in steps(path)[1:]] == [123.46, None]
    assert asked == [(path, "sglang-kimi.service"), (path, "sglang-qwen.service")]


def test_one_that_could_not_be_proven_gone_is_noted_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop(path, monkeypatch, Report(before={"unit": UNIT}, stopped=True, held=["pid 1"]))
    assert len(steps(path)) == 1


def test_nothing_is_noted_where_nothing_was_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop(path, monkeypatch, Report(before={"unit": UNIT}, stopped=False))
    stop(path, monkeypatch, Report(before={"unit": UNIT}, stopped=True), check=True)
    assert steps(path) == []


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("answer", "noted"), [("Paris.", ["ready", "answers"]), ("Rome.", ["failed"])])
def test_the_first_right_answer_is_noted_and_so_is_a_wrong_one(
    engine: Engine, path: Path, tmp_path: Path, answer: str, noted: list[str]
) -> None:
    engine.script = lambda number, body: (200, reply(answer))
    host = FakeHost(tmp_path)
    request = Request(engine.url, (FRANCE,), MODEL, timeout=20, times=path)
    machine = Machine(host.run, host.proc, host.clock, host.sleep)
    verify(request, machine)
    assert steps(path) == []  # it was asked at rest
    times.note(path, times.START, time.time())
    verify(request, machine)
    assert [one["step"] for one in steps(path)[1:]] == noted
    assert json.loads(path.read_text("utf-8"))["schema"] == 1
