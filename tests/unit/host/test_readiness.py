# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one right answer does not show: readiness, the same prompt again, two at once, a stream, tools, port, log."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import read
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.completion import CHECKS, Report, Request, verify
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.judge import ToolCall, assemble, judge_call
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.watch import Machine
from ansible_collections.llmfleet.sglang.tests.unit.host.engine import FRANCE, JAPAN, MODEL, SERVICE, Engine, reply
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

CAUSES = read(
    [
        {
            "id": "weights_not_loaded",
            "patterns": ["not found in params_dict"],
            "message": "Weights found no place.",
            "advice": "Use another checkpoint.",
            "source": "test",
            "fatal": True,
        },
        {
            "id": "shard",
            "patterns": ["missing shard"],
            "message": "A shard is missing.",
            "advice": "Fetch it.",
            "source": "test",
        },
    ]
)


@pytest.fixture
def unit(host: FakeHost) -> FakeHost:
    host.add_unit(SERVICE, main_pid=10, InvocationID="abc")
    host.journal = ["loading weights"]
    return host


def ask(host: FakeHost, url: str, **changes: Any) -> Report:
    request = Request(url, (FRANCE, JAPAN), MODEL, SERVICE, timeout=20, checks=CHECKS, causes=CAUSES)
    return verify(replace(request, **changes), Machine(host.run, host.proc, host.clock, host.sleep))


def events(*parts: str, end: bool = True) -> bytes:
    rows = [json.dumps({"choices": [{"delta": {"content": part}, "finish_reason": None}]}) for part in parts]
    rows.append(json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    return "".join(f"data: {row}\n\n" for row in [*rows, *(["[DONE]"] if end else [])]).encode()


def right(number: int, body: dict[str, Any]) -> tuple[int, Any]:
    city = "Paris." if "France" in str(body) else "Tokyo."
    return 200, events(city[:2], city[2:]) if body.get("stream") else reply(city)


def test_everything_is_asked_for_and_kept(engine: Engine, unit: FakeHost) -> None:
    engine.script = right
    report = ask(unit, engine.url)
    assert report.problem == ""
    assert [one.check for one in report.answers] == ["prompt", "prompt", "repeat", "together", "together", "stream"]
    assert {one.answer for one in report.answers} == {"Paris.", "Tokyo."}
    assert report.answers[-1].finish_reason == "stop"


def test_two_are_really_asked_at_once(engine: Engine, unit: FakeHost) -> None:
    both = threading.Barrier(2, timeout=5)

    def meet(number: int, body: dict[str, Any]) -> tuple[int, Any]:
        if number > 3 and not body.get("stream"):
            both.wait()
        return right(number, body)

    engine.script = meet
    assert ask(unit, engine.url).problem == ""


READY = [
    ({"/ready": 200}, ["/ready"]),
    ({"/health": 200}, ["/ready", "/health"]),
    ({}, ["/ready", "/health"]),
    ({"/ready": 401}, ["/ready", "/health"]),
]


@pytest.mark.parametrize(("gets", "asked"), READY, ids=["ready", "health", "neither", "key"])
def test_the_engine_s_own_readiness_comes_first(
    engine: Engine, unit: FakeHost, gets: dict[str, int], asked: list[str]
) -> None:
    engine.script, engine.gets = right, gets
    assert ask(unit, engine.url).problem == ""
    assert engine.got == [*asked, "/v1/models"] and unit.now == 0


def test_nothing_is_asked_of_an_engine_that_is_not_ready(engine: Engine, unit: FakeHost) -> None:
    engine.script, engine.gets = right, {"/ready": 503}
    unit.at(3, lambda: engine.gets.update({"/ready": 200}))
    report = ask(unit, engine.url)
    assert report.problem == "" and report.ready_seconds == pytest.approx(3)
    engine.gets, engine.asked, unit.now = {"/ready": 503}, [], 0
    report = ask(unit, engine.url)
    assert "/ready answers (HTTP 503): it is not ready" in report.problem and engine.asked == []


LATER = [
    ("repeat", 3, reply(""), "(to the same prompt again): asked 'What is the capital of France?', it said nothing"),
    ("together", 5, reply("!!!!!!"), "(to one of two prompts at once): asked"),
    ("stream", 6, events("Ber", "lin"), "(as a stream): asked 'What is the capital of France?', expected 'Paris'"),
    ("cut", 6, events("Paris", end=False), "the stream ended without [DONE], after 2 events"),
    ("error", 6, b'data: {"error": {"message": "boom"}}\n\n', "streamed an error"),
    ("broken", 6, b"data: {\n\n", "streamed something that is not JSON"),
]


@pytest.mark.parametrize(("name", "at", "body", "words"), LATER, ids=[row[0] for row in LATER])
def test_a_later_answer_that_is_wrong(
    engine: Engine, unit: FakeHost, name: str, at: int, body: Any, words: str
) -> None:
    engine.script = lambda number, asked: (200, body) if number == at else right(number, asked)
    report = ask(unit, engine.url)
    assert words in report.problem and unit.now == 0


def test_b09_an_engine_that_dies_of_the_same_prompt(engine: Engine, unit: FakeHost) -> None:
    def die(number: int, body: dict[str, Any]) -> tuple[int, Any]:
        if number < 3:
            return right(number, body)
        unit.units[SERVICE].update(ActiveState="failed", Result="exit-code", ExecMainStatus="1")
        return 500, {}

    engine.script = die
    report = ask(unit, engine.url)
    assert report.dead and "has failed (result exit-code" in report.problem


def test_an_engine_that_no_longer_answers_is_not_waited_for_to_the_end(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (500, {}) if number >= 3 else right(number, body)
    report = ask(unit, engine.url, timeout=900, request_timeout=10)
    assert "stopped answering after 2 right answers; the last try said: " in report.problem
    assert "HTTP 500" in report.problem and report.dead and unit.now == pytest.approx(20)


# the tool call ---------------------------------------------------------------------------------------------------

WEATHER = ToolCall(
    ({"role": "user", "content": "Weather in Paris?"},),
    ({"type": "function", "function": {"name": "get_weather", "parameters": {}}},),
    "get_weather",
    {"city": "Paris"},
)


def call(name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return reply(None, "tool_calls", tool_calls=[{"type": "function", "function": function}])


def test_a_tool_call_is_asked_for(engine: Engine, unit: FakeHost) -> None:
    rightly = call("get_weather", '{"city": " paris"}')
    engine.script = lambda number, body: (200, rightly) if "tools" in body else right(number, body)
    report = ask(unit, engine.url, tool_call=WEATHER)
    assert report.problem == "" and report.answers[-1].check == "tool_call"
    assert engine.asked[-1]["tools"] == list(WEATHER.tools) and engine.asked[-1]["max_tokens"] == 256


CALLS = [
    (reply('<tool_call>{"name": "get_weather"}</tool_call>'), "it wrote the tool call as text"),
    (reply("<function=get_weather><parameter=city>Paris</parameter>"), "it wrote the tool call as text"),
    (reply("It is sunny."), "it called no tool but said 'It is sunny.'"),
    (call("get_time", "{}"), "it called 'get_time'"),
    (call("get_weather", '{"city": "Paris"'), "its arguments are not JSON"),
    (call("get_weather", '["Paris"]'), "its arguments are no object"),
    (call("get_weather", '{"city": "London"}'), "its argument city is 'London', not 'Paris'"),
    ({"choices": [{"message": {"tool_calls": [7]}}]}, "it called no tool"),
]


@pytest.mark.parametrize(("body", "words"), CALLS, ids=[row[1][:30] for row in CALLS])
def test_b08_a_tool_call_that_is_none(body: dict[str, Any], words: str) -> None:
    answer = judge_call(WEATHER, body)
    assert words in answer.problem
    assert "asked 'Weather in Paris?', expected the tool call get_weather(" in answer.problem


# who listens -----------------------------------------------------------------------------------------------------


def test_the_unit_s_own_listener_is_fine(engine: Engine, unit: FakeHost) -> None:
    engine.script = right
    unit.add_process(10, unit=SERVICE, listens=[("127.0.0.1", engine.server_port)])
    unit.add_process(99, "bystander", listens=[("10.0.0.9", engine.server_port), ("127.0.0.1", 1)])
    assert ask(unit, engine.url, address="127.0.0.1", port=engine.server_port).problem == ""


@pytest.mark.parametrize("ours", [True, False])
def test_a_stolen_port_fails_whatever_it_answers(engine: Engine, unit: FakeHost, ours: bool) -> None:
    engine.script = right
    unit.add_process(10, unit=SERVICE, listens=[("127.0.0.1", engine.server_port)] if ours else [])
    unit.add_process(50, "nc -l", unit="thief.service", listens=[("0.0.0.0", engine.server_port)])
    report = ask(unit, engine.url, address="127.0.0.1", port=engine.server_port)
    assert f"somebody else listens where {SERVICE} should: port {engine.server_port} on 0.0.0.0" in report.problem
    assert "pid 50 (nc -l), unit thief.service" in report.problem and report.dead and engine.asked == []


def test_whose_port_it_is_is_not_asked_if_nobody_wants_to_know(engine: Engine, unit: FakeHost) -> None:
    engine.script = right
    unit.add_process(50, "docker-proxy", unit="docker.service", listens=[("0.0.0.0", engine.server_port)])
    assert ask(unit, engine.url, address="127.0.0.1", port=0).problem == ""


# the log ---------------------------------------------------------------------------------------------------------


def test_b04_a_server_that_answers_without_its_weights(engine: Engine, unit: FakeHost) -> None:
    engine.script = right
    unit.journal = ["Parameter model.layers.0.x not found in params_dict", "fired up"]
    report = ask(unit, engine.url)
    assert "answers, but its log says: Parameter model.layers.0.x not found in params_dict" in report.problem
    assert report.diagnosis and report.diagnosis.id == "weights_not_loaded" and not report.dead
    assert ask(unit, engine.url, accept=("weights_not_loaded",)).problem == ""


def test_a_failed_start_is_explained(unit: FakeHost) -> None:
    unit.journal = ["loading weights", "RuntimeError: missing shard"]
    unit.at(1, lambda: unit.units[SERVICE].update(ActiveState="failed", Result="exit-code"))
    report = ask(unit, "http://127.0.0.1:9")
    assert report.diagnosis and report.diagnosis.id == "shard"
    assert report.diagnosis.describe().startswith("A shard is missing. Fetch it. [shard; the log says: RuntimeError")
    assert report.journal == unit.journal


def test_a_failed_start_that_nothing_explains(unit: FakeHost) -> None:
    unit.units[SERVICE].update(ActiveState="failed")
    assert ask(unit, "http://127.0.0.1:9").diagnosis is None


def test_a_healthy_server_s_log_of_other_causes_is_no_failure(engine: Engine, unit: FakeHost) -> None:
    engine.script = right
    unit.journal = ["RuntimeError: missing shard"]
    assert ask(unit, engine.url).problem == ""


# hanging ---------------------------------------------------------------------------------------------------------


def hang(unit: FakeHost, **changes: Any) -> Report:
    return ask(unit, "http://127.0.0.1:9", timeout=400, hang_seconds=120, **changes)


def test_a10_a_collective_that_hangs_is_told_from_loading(unit: FakeHost) -> None:
    unit.add_process(10, unit=SERVICE, gpu=80000)
    unit.loads = {0: ("100", "92.10"), 1: ("100", "139.00")}
    unit.journal = ["Capture cuda graph begin.", "  warnings.warn(", 'INFO: 10.0.0.1:1 - "GET /ready HTTP/1.1" 503']
    report = hang(unit)
    assert "hangs: no new line in its log for 130 s, while its 2 cards are fully used" in report.problem
    assert "139 of 600 W" in report.problem and report.problem.endswith("Its last line: Capture cuda graph begin.")
    assert report.dead and 120 <= unit.now <= 145


LOADING = [
    ({0: ("3", "92.00"), 1: ("100", "92.00")}, "a card that is idle"),
    ({0: ("100", "480.00"), 1: ("100", "92.00")}, "a card that computes"),
    ({0: ("100", "[N/A]"), 1: ("100", "92.00")}, "no power told"),
    ({}, "nothing told"),
]


@pytest.mark.parametrize(("loads", "_why"), LOADING, ids=[row[1] for row in LOADING])
def test_what_does_not_look_like_a_hang_is_waited_for(
    unit: FakeHost, loads: dict[int, tuple[str, str]], _why: str
) -> None:
    unit.loads = loads
    assert "did not give the right answers within 400 s" in hang(unit).problem


def test_a_log_that_grows_is_no_hang(unit: FakeHost) -> None:
    unit.loads = {0: ("100", "92.00"), 1: ("100", "92.00")}
    for number in range(1, 5):
        unit.at(number * 95, lambda number=number: unit.journal.append(f"Loading {number}"))  # type: ignore[misc]
    assert "did not give the right answers within 400 s" in hang(unit).problem


def test_other_services_cards_do_not_count(unit: FakeHost) -> None:
    unit.add_process(10, unit=SERVICE, gpu=80000)
    unit.loads = {0: ("100", "92.00"), 1: ("100", "92.00")}
    assert "hangs" in hang(unit).problem
    assert "within 400 s" in ask(unit, "http://127.0.0.1:9", timeout=400, hang_seconds=0).problem


def test_a_stream_is_put_together() -> None:
    parts: list[dict[str, Any]] = [
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"content": "Pa"}}]},
        {"choices": [{"delta": {"content": "ris"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {}},
    ]
    message = {"content": "Paris", "reasoning_content": "hm"}
    assert assemble(parts) == {"choices": [{"message": message, "finish_reason": "stop"}]}
