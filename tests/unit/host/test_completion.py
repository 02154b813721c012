# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking a real HTTP server until it answers rightly, or cannot any more."""

from __future__ import annotations

import re
import socket
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import Cause
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.completion import Report, Request, verify
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.judge import Question, judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.watch import Machine
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wording import contains, is_garbage
from ansible_collections.llmfleet.sglang.tests.unit.host.engine import (
    FRANCE,
    JAPAN,
    MODEL,
    SERVICE,
    Engine,
    question,
    reply,
)
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost


@pytest.fixture
def unit(host: FakeHost) -> FakeHost:
    host.add_unit(SERVICE, main_pid=10, InvocationID="abc")
    return host


def ask(host: FakeHost, url: str, *questions: Question, **changes: Any) -> Report:
    request = Request(url, questions or (FRANCE,), MODEL, SERVICE, timeout=20)
    return verify(replace(request, **changes), Machine(host.run, host.proc, host.clock, host.sleep))


def test_right_answers(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (200, reply("Paris." if "France" in str(body) else "It is TOKYO, of course."))
    report = ask(unit, engine.url, FRANCE, JAPAN, api_key="secret")
    assert report.problem == "" and report.models == [MODEL]
    assert [one.answer for one in report.answers] == ["Paris.", "It is TOKYO, of course."]
    assert report.ready_seconds is not None
    assert engine.asked[0] == {
        "messages": [{"role": "user", "content": FRANCE.text}],
        "temperature": 0,
        "max_tokens": 16,
        "model": MODEL,
    }
    assert engine.headers[0]["Authorization"] == "Bearer secret"


def test_further_keys_reach_the_server(engine: Engine, unit: FakeHost) -> None:
    ask(unit, engine.url, question("x", chat_template_kwargs={"enable_thinking": False}, max_tokens=3))
    assert engine.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert engine.asked[0]["max_tokens"] == 3


def test_without_questions_any_sensible_answer_is_taken(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (200, reply("Bonjour"))
    request = Request(engine.url, (), MODEL, SERVICE)
    report = verify(request, Machine(run=unit.run))
    assert report.problem == "" and report.answers[0].answer == "Bonjour"


def test_a_server_that_still_loads_is_waited_for(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (503, {"error": "starting"}) if number < 4 else (200, reply("Paris."))
    report = ask(unit, engine.url)
    assert report.problem == "" and len(engine.asked) == 4
    assert report.ready_seconds == pytest.approx(1.5)


def test_a_port_that_refuses_is_waited_for_and_then_told(unit: FakeHost) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        report = ask(unit, url)
    assert "within 20 s: no answer at all; the last try said: " in report.problem and "refused" in report.problem
    assert unit.now == pytest.approx(20)
    assert report.journal == ["loading weights", "RuntimeError: missing shard"]


def test_a_model_list_is_no_readiness(engine: Engine, unit: FakeHost) -> None:
    """C15: /v1/models says 200 while a completion hangs."""
    release = threading.Event()

    def hang(number: int, body: dict[str, Any]) -> tuple[int, Any]:
        release.wait(20)
        return 200, reply("Paris.")

    engine.script = hang
    began = time.monotonic()
    try:
        report = ask(unit, engine.url, request_timeout=1, timeout=0.5)
    finally:
        release.set()
    assert time.monotonic() - began < 10
    assert "the model list came, but no completion" in report.problem and "timed out" in report.problem


def test_an_answer_that_drips_is_given_up(engine: Engine, unit: FakeHost) -> None:
    engine.drip = True
    began = time.monotonic()
    report = ask(unit, engine.url, request_timeout=1, timeout=0.5)
    assert time.monotonic() - began < 10
    assert "the answer did not end in time" in report.problem


# Would explain anything, if it were asked.
DIAGNOSES_ALL = Cause("any", (re.compile("."),), "Something.", "Do something.", "nowhere")
WRONG = [
    (reply("Berlin."), "expected 'Paris', got 'Berlin.'"),
    (reply("!!!!!!!!"), "it said garbage: '!!!!!!!!'"),
    (reply("Parisian"), "expected 'Paris', got 'Parisian'"),
    (reply(""), "it said nothing (finish reason stop)"),
    (reply(None, "length", reasoning_content="Let me think"), "all tokens went into reasoning"),
    ({"choices": []}, "it said nothing (finish reason missing)"),
    ({"object": "error"}, "the server answered an error: {'object': 'error'}"),
    ({"object": "error", "message": "no KV cache left"}, "the server answered an error: no KV cache left"),
    ({"error": {"message": "no KV cache left", "code": 1}}, "the server answered an error: no KV cache left"),
    (reply("Paris" + 200 * "!"), "it said garbage: 'Paris!!!!"),
    (reply(200 * "Paris "), "it said garbage: 'Paris Paris"),
    (reply("Paris \ufffd\ufffd\u0120 $%^&* qxzk Paris"), "it said garbage: 'Paris"),
    (
        reply("It is not Paris, it is Lyon."),
        "expected 'Paris', got 'It is not Paris, it is Lyon.'. Compare the checkpoint",
    ),
    (reply("The capital of", "length"), "got 'The capital of', cut off at max_tokens: raise it"),
    (reply(" ".join(f"Paris, sentence {number}." for number in range(99))), "where a short answer was asked for"),
    (reply(" "), "it said nothing (finish reason stop). Compare the checkpoint"),
]


@pytest.mark.parametrize(("body", "words"), WRONG, ids=[row[1][:20] for row in WRONG])
def test_a_wrong_answer_with_status_200_fails_at_once(
    engine: Engine, unit: FakeHost, body: dict[str, Any], words: str
) -> None:
    engine.script = lambda number, asked: (200, body)
    report = ask(unit, engine.url)
    assert "asked 'What is the capital of France?'" in report.problem and words in report.problem
    assert len(engine.asked) == 1 and unit.now == 0


def test_a_later_wrong_answer_fails_too(engine: Engine, unit: FakeHost) -> None:
    report = ask(unit, engine.url, FRANCE, JAPAN)
    assert "expected 'Tokyo', got 'Paris.'" in report.problem
    assert [one.problem == "" for one in report.answers] == [True, False]


def test_another_models_server_is_not_taken(engine: Engine, unit: FakeHost) -> None:
    engine.models = ["kimi-k2.5"]
    report = ask(unit, engine.url)
    assert report.problem.endswith("serves kimi-k2.5, not qwen3.5-397b") and engine.asked == []


@pytest.mark.parametrize(("status", "words"), [(400, "refuses the request"), (422, "refuses the request")])
def test_a_refusal_that_waiting_does_not_mend(engine: Engine, unit: FakeHost, status: int, words: str) -> None:
    engine.script = lambda number, body: (status, {"message": "no such thing"})
    report = ask(unit, engine.url)
    assert words in report.problem and f"(HTTP {status})" in report.problem and "no such thing" in report.problem
    assert unit.now == 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_comes_first_and_the_log_not_at_all(engine: Engine, unit: FakeHost, status: int) -> None:
    engine.script = lambda number, body: (status, {"error": "Unauthorized"})
    report = ask(unit, engine.url, causes=(DIAGNOSES_ALL,))
    assert report.problem.startswith(f"The server refuses the key ({status}): set sglang_api_key")
    assert report.problem.endswith('/v1/chat/completions says: {"error": "Unauthorized"}')
    assert (report.journal, report.dead, unit.now) == ([], False, 0) and report.diagnosis is None


def test_a_reply_that_was_cut_off(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (200, b'{"choices"')
    assert "a reply that was cut off after 10 bytes: b'{\"choices\"'" in ask(unit, engine.url).problem


def test_an_answer_that_is_no_json(engine: Engine, unit: FakeHost) -> None:
    engine.script = lambda number, body: (200, b"<html>")
    assert "not JSON: b'<html>'" in ask(unit, engine.url).problem


def test_a_proxy_in_the_environment_is_passed_by(
    engine: Engine, unit: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(unit, engine.url).problem == ""


DEAD = [
    ({"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"}, "has failed (result exit-code"),
    ({"ActiveState": "inactive"}, "is not running"),
    ({"ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "1"}, "restarted sglang-qwen.service"),
    ({"ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code"}, "waits to start it again"),
    ({"LoadState": "not-found", "ActiveState": "inactive"}, "there is no unit"),
]


@pytest.mark.parametrize(("state", "words"), DEAD, ids=[row[1] for row in DEAD])
def test_a_unit_that_cannot_come_up_ends_the_waiting(unit: FakeHost, state: dict[str, str], words: str) -> None:
    unit.at(3, lambda: unit.units[SERVICE].update(state))
    report = ask(unit, "http://127.0.0.1:9")
    assert words in report.problem and report.dead and unit.now < 4
    assert (report.journal == []) is ("no unit" in words)


def test_a_queued_start_is_waited_for(unit: FakeHost, engine: Engine) -> None:
    unit.units[SERVICE].update(ActiveState="inactive", Job="77")
    assert ask(unit, engine.url).problem == ""


def test_restarts_of_before_do_not_count_and_allowed_ones_are_allowed(unit: FakeHost, engine: Engine) -> None:
    unit.units[SERVICE].update(NRestarts="5")
    engine.script = lambda number, body: (503, {}) if number < 3 else (200, reply("Paris."))
    unit.at(0.5, lambda: unit.units[SERVICE].update(NRestarts="6"))
    assert ask(unit, engine.url, restarts_allowed=1).problem == ""


def test_no_unit_needs_to_be_watched(engine: Engine, host: FakeHost) -> None:
    assert ask(host, engine.url, service="").problem == ""


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("Paris.", "Paris", True),
        ("the answer: PARIS", "paris", True),
        ("two  plus\ntwo", "two plus two", True),
        ("42", "4", False),
        ("Comparison", "Paris", False),
        ("C++ it is", "C++", True),
        ("東京です", "東京", False),
        ("東京", "東京", True),
        ("The capital of France is **Paris**.", "Paris", True),
        ("<think>It is not Paris? It is.</think>\n\n**Paris**", "Paris", True),
        ("Not Lyon, Paris.", "Paris", True),
        ("Paris is not only the capital but the largest city.", "Paris", True),
        ("Some say it is not Paris. They are wrong: it is Paris.", "Paris", True),
        ("It is not Paris, it is Lyon.", "Paris", False),
        ("It isn't Paris.", "Paris", False),
        ("It is not the **Paris** you mean.", "Paris", False),
        ("Paris is not the capital.", "Paris", False),
        ("\\boxed{4}", "4", True),
    ],
)
def test_expected_words_stand_by_themselves(text: str, expected: str, found: bool) -> None:
    assert contains(text, expected) is found


READABLE = [
    (text, False)
    for text in (
        "The capital of France is **Paris**.",
        "The capital of Japan is **Tokyo** (東京, Tōkyō).",
        "日本の首都は東京です。",
        "Столица Франции — Париж.",
        "*Hamlet* was written by **William Shakespeare**, around 1599.",
        "| a | b |\n|-----------|-----------|\n| 1 | 2 |",
        "It is 100000000.",
        "Paris, the City of Light 🗼\ufffd",
        "No, no, no: Paris.",
        "print('Paris')\n" + 40 * "=",
    )
]
UNREADABLE = [
    (text, True)
    for text in (
        "Paris" + 200 * "!",
        200 * "Paris ",
        40 * "Paris",
        20 * "the capital of France, ",
        "Paris \ufffd\ufffd\ufffd Paris",
        "Paris的 цел بال",
        "ĠParisĠisĠtheĠcapital",
        "Paris $%^&*( )_+{}|:<>?~ ]['",
    )
]


@pytest.mark.parametrize(
    ("text", "garbage"),
    [
        ("!!!!", True),
        ("+ + + +", True),
        ("aaaa", True),
        ("?!", True),
        ("4", False),
        ("Paris", False),
        ("...", True),
        *READABLE,
        *UNREADABLE,
    ],
)
def test_garbage(text: str, garbage: bool) -> None:
    assert is_garbage(text) is garbage


def test_judging_keeps_what_was_said() -> None:
    answer = judge(FRANCE, reply("Paris.", "stop"), 0.2)
    assert (answer.answer, answer.expected, answer.finish_reason, answer.seconds) == ("Paris.", "Paris", "stop", 0.2)
