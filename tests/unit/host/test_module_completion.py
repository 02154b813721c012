# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `completion`: how it reads its arguments, and what its message says in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import UNKNOWN, Diagnosis
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.completion import CHECKS, Report
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.judge import Answer
from ansible_collections.llmfleet.sglang.plugins.modules import completion

GIVEN: dict[str, Any] = {
    "host": "10.77.0.11",
    "port": 30000,
    "model": "",
    "service": "sglang-qwen",
    "prompts": [{"messages": [{"role": "user", "content": "x"}], "expect": "y", "extra": {}}],
    "checks": list(CHECKS),
    "tool_call": None,
    "own_port": True,
    "hang_seconds": 300,
    "causes": [{"id": "one", "patterns": ["boom"], "message": "It went.", "advice": "Wait.", "source": "x"}],
    "accept": [],
    "api_key": "",
    "credential": None,
    "max_tokens": 16,
    "timeout": 900,
    "request_timeout": 60,
    "restarts_allowed": 0,
    "journal_lines": 40,
    "times_file": None,
}
FOUND = Diagnosis("one", "It went.", "Wait.", "boom", "x")


def request(**changes: Any) -> Any:
    return completion.request_of(SimpleNamespace(params={**GIVEN, **changes}))


def test_arguments_become_a_request() -> None:
    made = request()
    assert (made.url, made.address, made.port, made.service) == (
        "http://10.77.0.11:30000",
        "10.77.0.11",
        30000,
        "sglang-qwen.service",
    )
    assert made.checks == CHECKS and made.causes[0].id == "one" and made.tool_call is None


def test_a_wildcard_is_asked_on_the_loopback_and_watched_as_it_is() -> None:
    made = request(host="0.0.0.0")
    assert (made.url, made.address) == ("http://127.0.0.1:30000", "0.0.0.0")
    assert request(host="::").url == "http://[::1]:30000"


def test_the_port_s_owner_can_be_left_out() -> None:
    assert request(own_port=False).port == 0


def test_the_key_that_a_unit_reads_is_taken_before_the_given_one(tmp_path: Path) -> None:
    kept = tmp_path / "sglang.yaml"
    assert request(api_key="given", credential=str(kept)).api_key == "given"
    kept.write_text('{"api-key": "kept"}\n')
    assert request(api_key="given", credential=str(kept)).api_key == "kept"
    kept.write_text("api-key: s3cret\n")
    with pytest.raises(ValueError, match=r"sglang\.yaml holds no API key") as told:
        request(credential=str(kept))
    assert "s3cret" not in str(told.value) and told.value.__suppress_context__


def test_a_tool_call_is_taken_over() -> None:
    call = {
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function"}],
        "name": "f",
        "arguments": {"a": 1},
        "extra": {},
    }
    made = request(tool_call=call).tool_call
    assert made is not None and made.name == "f" and made.arguments == {"a": 1} and len(made.tools) == 1


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="accept names causes that there are not: tow"):
        request(accept=["one", "tow"])
    with pytest.raises(ValueError, match="lacks patterns"):
        request(causes=[{**GIVEN["causes"][0], "patterns": []}])


def test_the_message_says_the_cause_first_and_the_journal_last() -> None:
    report = Report(problem="it has failed", dead=True, diagnosis=FOUND, journal=["boom", "end"])
    assert completion.message_of(report, "sglang-qwen").splitlines() == [
        "It went. Wait. [one; the log says: boom]",
        "it has failed",
        "From its journal:",
        "  boom",
        "  end",
        "All of it: journalctl --unit=sglang-qwen --lines=500 --no-pager",
    ]


def test_what_the_problem_says_already_is_not_said_twice() -> None:
    report = Report(problem="boom: it has failed", dead=True, diagnosis=FOUND)
    assert completion.message_of(report, "") == "It went. Wait. [one]\nboom: it has failed"


def test_an_unknown_cause_is_said_to_be_unknown() -> None:
    report = Report(problem="it has failed", dead=True, journal=["end"])
    assert completion.message_of(report, "").splitlines()[0] == UNKNOWN


def test_an_unknown_cause_comes_with_the_last_exception_and_few_lines() -> None:
    trace = ["Traceback (most recent call last):", *(f"  line {number}" for number in range(30)), "ValueError: no such"]
    report = Report(problem="it has failed", dead=True, journal=[*trace, "Killed", *trace, "Main process exited"])
    said = completion.message_of(report, "sglang-qwen").splitlines()
    assert said[0] == f"{UNKNOWN} Its last exception: ValueError: no such"
    assert len(said) <= 14
    assert said[-2:] == [
        "  ValueError: no such",
        "All of it: journalctl --unit=sglang-qwen --lines=500 --no-pager",
    ]


def test_a_wrong_answer_needs_no_cause_and_no_journal() -> None:
    assert completion.message_of(Report(problem="it said Berlin", journal=["end"]), "") == "it said Berlin"


@pytest.mark.parametrize(
    ("refusal", "problem", "kept"),
    [("HTTP 503: it is not ready", "", True), ("", "", False), ("HTTP 503", "a wrong answer", False)],
)
def test_how_long_it_took_is_kept_of_a_start_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refusal: str, problem: str, kept: bool
) -> None:
    closed: list[bool] = []
    progress = SimpleNamespace(close=lambda *, ended: closed.append(ended))
    answers = [Answer("x", "y", "y", 0.1, "stop")] if not problem else []
    report = Report(answers=answers, last_refusal=refusal, problem=problem)
    monkeypatch.setattr(completion, "Progress", lambda *_arguments: progress)
    monkeypatch.setattr(completion, "verify", lambda *_arguments: report)
    given = {name: GIVEN[name] for name in ("host", "port", "service")}
    with patch_module_args({**given, "durations_file": "/nowhere/durations.json"}), pytest.raises(SystemExit):
        completion.main()
    capsys.readouterr()
    assert closed == [kept]
