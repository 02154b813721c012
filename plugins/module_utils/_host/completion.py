# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until a server gives the right answers, watching the unit it runs in. PRIVATE to the collection.

The endpoints and when they answer were measured on SGLang 0.5.23: the port refuses connections until the
model is loaded, /v1/models may answer long before tokens flow, so only a completion that came back right
counts.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from . import systemd
from .command import Runner, run

PAUSE = 0.5
DEFAULT_PROMPT: dict[str, Any] = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
LARGEST_REPLY = 1 << 20
# What these say of a request will not get better by waiting.
FINAL = {
    400: "refuses the request",
    401: "wants an API key",
    403: "refuses the API key",
    422: "refuses the request",
}


@dataclass(frozen=True)
class Question:
    """A prompt with a known answer; an empty `expect` takes any answer that is not garbage."""

    messages: tuple[dict[str, Any], ...]
    expect: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return str(self.messages[-1].get("content", "")) if self.messages else ""


@dataclass(frozen=True)
class Request:
    """Where to ask, what, and for how long (seconds)."""

    url: str
    questions: tuple[Question, ...]
    model: str = ""
    service: str = ""
    api_key: str = ""
    timeout: float = 900
    request_timeout: float = 60
    max_tokens: int = 16
    restarts_allowed: int = 0
    journal_lines: int = 40


@dataclass(frozen=True)
class Machine:
    """The host as this code touches it; tests put their own in its place."""

    run: Runner = run
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Answer:
    """What the server said to one question, and whether that was right."""

    prompt: str
    expected: str
    answer: str
    seconds: float
    finish_reason: str
    problem: str = ""


@dataclass
class Report:
    """What was learnt; `problem` is empty when every answer was right."""

    answers: list[Answer] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    ready_seconds: float | None = None
    problem: str = ""
    dead: bool = False
    journal: list[str] = field(default_factory=list)
    last_refusal: str = ""


class NotYet(Exception):
    """The server cannot answer at present; waiting may help."""


class Wrong(Exception):
    """The server answered in a way that waiting does not mend."""


class Dead(Wrong):
    """There is no server, and its journal may tell why."""


def verify(request: Request, machine: Machine) -> Report:
    """Wait for a first right answer, ask the other questions, and report, all within the timeout."""
    report = Report()
    began = machine.clock()
    deadline = began + request.timeout
    watch = _Watch(request, machine)
    questions = request.questions or (Question(tuple(DEFAULT_PROMPT["messages"])),)
    try:
        while len(report.answers) < len(questions):
            watch.look()
            try:
                left = deadline - machine.clock()
                _ask_next(request, machine, questions[len(report.answers)], report, left)
                if report.ready_seconds is None:
                    report.ready_seconds = round(machine.clock() - began, 2)
                continue
            except NotYet as error:
                report.last_refusal = str(error)
            left = deadline - machine.clock()
            if left <= 0:
                raise Dead(_too_late(request, report))
            machine.sleep(min(PAUSE, left))
    except Wrong as error:
        report.problem = str(error)
        report.dead = isinstance(error, Dead)
        report.journal = watch.journal()
    return report


def _ask_next(request: Request, machine: Machine, question: Question, report: Report, left: float) -> None:
    limit = max(1.0, min(request.request_timeout, left))
    if not report.models:
        report.models = _models(request, min(limit, 10.0))
        if request.model and request.model not in report.models:
            names = ", ".join(report.models) or "no model"
            raise Wrong(f"{request.url} serves {names}, not {request.model}")
    answer = _ask(request, machine, question, limit)
    report.answers.append(answer)
    if answer.problem:
        raise Wrong(f"{request.url} gave a wrong answer: {answer.problem}")


def _models(request: Request, limit: float) -> list[str]:
    reply = _call(request, "/v1/models", None, limit)
    data = reply.get("data")
    if not isinstance(data, list):
        raise Wrong(f"{request.url}/v1/models answered without a list of models: {json.dumps(reply)[:200]}")
    return [str(entry.get("id", "")) for entry in data if isinstance(entry, dict)]


def _ask(request: Request, machine: Machine, question: Question, limit: float) -> Answer:
    body = {
        "messages": list(question.messages),
        "temperature": 0,
        "max_tokens": request.max_tokens,
        **({"model": request.model} if request.model else {}),
        **question.extra,
    }
    began = machine.clock()
    reply = _call(request, "/v1/chat/completions", body, limit)
    return judge(question, reply, round(machine.clock() - began, 3))


def judge(question: Question, reply: Mapping[str, Any], seconds: float = 0.0) -> Answer:
    """Whether a chat completion's reply is the right answer, with what is wrong about it if not."""
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = str(message.get("content") or "")
    finish = str(choice.get("finish_reason") or "")
    asked, wanted = f"asked {question.text!r}", f"expected {question.expect!r}" if question.expect else ""
    problem = ""
    if not text.strip():
        problem = f"{asked}, it said nothing (finish reason {finish or 'missing'})"
        if message.get("reasoning_content"):
            problem += "; all tokens went into reasoning: raise max_tokens, or turn thinking off for this prompt"
    elif is_garbage(text):
        problem = f"{asked}, it said garbage: {text[:80]!r}"
    elif question.expect and not contains(text, question.expect):
        problem = f"{asked}, {wanted}, got {text[:200]!r}"
    return Answer(question.text, question.expect, text, seconds, finish, problem)


def contains(text: str, expected: str) -> bool:
    """Whether the expected words stand in the text as whole words, whatever their case and spacing."""
    words = r"\s+".join(re.escape(word) for word in expected.split())
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


def is_garbage(text: str) -> bool:
    """Text as broken kernels make it: one character over and over (V(!!!!)), or nothing that can be read."""
    marks = "".join(text.split())
    if len(marks) >= 4 and len(set(marks)) == 1:
        return True
    return not any(mark.isalnum() for mark in marks)


def _call(request: Request, path: str, body: Mapping[str, Any] | None, limit: float) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    if request.api_key:
        headers["Authorization"] = f"Bearer {request.api_key}"
    data = None if body is None else json.dumps(body).encode()
    order = urllib.request.Request(request.url + path, data=data, headers=headers)
    # A proxy from the environment must not stand between this host and its own server.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(order, timeout=limit) as response:
            text = _read(response, time.monotonic() + limit)
    except urllib.error.HTTPError as error:
        with error:
            said = " ".join(error.read(2000).decode("utf-8", "replace").split())
        message = f"{request.url}{path} {FINAL.get(error.code, 'answers')} (HTTP {error.code}): {said[:300]}"
        raise (Wrong if error.code in FINAL else NotYet)(message) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise NotYet(f"{request.url}{path}: {str(reason) or type(reason).__name__}") from None
    try:
        reply = json.loads(text)
    except ValueError:
        raise Wrong(f"{request.url}{path} answered something that is not JSON: {text[:200]!r}") from None
    if not isinstance(reply, dict):
        raise Wrong(f"{request.url}{path} answered something that is no object: {text[:200]!r}")
    return reply


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The whole reply; a server that lets it drip does not hold anybody longer than one that hangs."""
    text = b""
    while len(text) < LARGEST_REPLY:
        part = response.read1(65536)
        if not part:
            break
        text += part
        if time.monotonic() > deadline:
            raise TimeoutError("the answer did not end in time")
    return text


def _too_late(request: Request, report: Report) -> str:
    ready = "the model list came, but no completion" if report.models else "no answer at all"
    return (
        f"{request.url} did not give the right answers within {request.timeout:g} s: {ready}; "
        f"the last try said: {report.last_refusal}"
    )


class _Watch:
    """Looks whether the unit can still come up, so that nobody waits for a dead one."""

    def __init__(self, request: Request, machine: Machine) -> None:
        self._request = request
        self._machine = machine
        self._unit = systemd.show(machine.run, request.service) if request.service else None
        self._restarts = self._unit.restarts if self._unit else 0

    def look(self) -> None:
        """Dead is raised when the unit is gone, failed, or restarts more often than allowed."""
        request = self._request
        if not request.service:
            return
        unit = self._unit = systemd.show(self._machine.run, request.service)
        how = f"(result {unit.result or 'unknown'}, exit status {unit.exit_status or 'unknown'})"
        if not unit.exists:
            raise Dead(f"there is no unit {unit.name} on this host")
        if unit.active == "failed":
            raise Dead(f"{unit.name} has failed {how}")
        if unit.stopped:
            raise Dead(f"{unit.name} is not running {how}")
        if unit.restarts - self._restarts > request.restarts_allowed:
            times = unit.restarts - self._restarts
            raise Dead(f"systemd restarted {unit.name} (times: {times}) while it should have come up {how}")

    def journal(self) -> list[str]:
        if not self._unit or not self._unit.exists:
            return []
        return systemd.journal(self._machine.run, self._unit, self._request.journal_lines)
