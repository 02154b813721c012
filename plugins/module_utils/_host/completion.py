# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until a server gives the right answers, watching the unit it runs in. PRIVATE to the collection.

The endpoints and when they answer were measured on SGLang 0.5.23: the port refuses connections until the
model is loaded, /v1/models may answer long before tokens flow, so only a completion that came back right
counts. What a single right answer does not show is asked for too: the same prompt again (speculative decoding with
a radix cache died of that), two at once (kernels that run out of shared memory at a batch of two), a stream, and a
tool call (parsers that do not fit the model).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, TypeVar

from .._cutover import times
from .._diagnosis.causes import Cause, Diagnosis, diagnose, fatal
from .asking import NO_SUCH_ENDPOINT, NotYet, Refused, Server, Wrong
from .judge import Answer, Question, ToolCall, assemble, judge, judge_call
from .ready_since import ready_since
from .watch import Dead, Machine, Watch, Watched

PAUSE = 0.5
AT_ONCE = 2
CHECKS = ("repeat", "together", "stream")
HOW = {
    "prompt": "",
    "repeat": " (to the same prompt again)",
    "together": " (to one of two prompts at once)",
    "stream": " (as a stream)",
    "tool_call": "",
}
DEFAULT_PROMPT: dict[str, Any] = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
# In this order: /ready (SGLang 0.5.20 and later) tells in milliseconds, /health generates a token.
READINESS = ("/ready", "/health")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Request:
    """Where to ask, what, and for how long (seconds).

    checks: which of CHECKS to make after the questions; tool_call: one more, if there is one; address and port: where
    the service itself is to listen; causes: what failures are explained by; accept: ids of causes whose lines a
    server that answers may log; times: where the times of a cut-over are kept.
    """

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
    checks: tuple[str, ...] = ()
    tool_call: ToolCall | None = None
    address: str = ""
    port: int = 0
    hang_seconds: float = 0
    causes: tuple[Cause, ...] = ()
    accept: tuple[str, ...] = ()
    times: Path | None = None


@dataclass
class Report:
    """What was learnt; `problem` is empty when every answer was right."""

    answers: list[Answer] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    ready_seconds: float | None = None
    problem: str = ""
    dead: bool = False
    diagnosis: Diagnosis | None = None
    journal: list[str] = field(default_factory=list)
    last_refusal: str = ""


def verify(request: Request, machine: Machine) -> Report:
    """Wait for a first right answer, ask for everything else, and report, all within the timeout."""
    began = time.time()
    verification = _Verification(request, machine)
    report = verification.report
    try:
        verification.go()
    except Wrong as error:
        report.problem = str(error)
        report.dead = isinstance(error, Dead)
        lines = verification.watch.lines()
        if not isinstance(error, Refused):  # to a key that is refused the log has nothing to say
            report.journal = lines[-request.journal_lines :]
            report.diagnosis = report.diagnosis or diagnose(request.causes, [report.problem, *lines])
    ready = None if report.ready_seconds is None else began + report.ready_seconds
    since = ready_since(machine.run, request.times, request.service, began)
    times.note_answers(request.times, ready, time.time(), bool(report.problem), since)
    return report


class _Verification:
    def __init__(self, request: Request, machine: Machine) -> None:
        watched = Watched(
            request.service, request.address, request.port, request.restarts_allowed, request.hang_seconds
        )
        self.report = Report()
        self.watch = Watch(watched, machine)
        self._request = request
        self._machine = machine
        self._server = Server(request.url, request.api_key)
        self._questions = request.questions or (Question(tuple(DEFAULT_PROMPT["messages"])),)
        self._began = machine.clock()

    def go(self) -> None:
        """Everything, in order; Wrong says what is not as it should be."""
        progress = self._machine.progress
        progress.phase("waiting for the engine")
        self._until(self._ready)
        self._until(self._models)
        asked = len(self._questions) + len(self._request.checks) + bool(self._request.tool_call)
        progress.phase("asking for the right answers", total=asked)
        for question in self._questions:
            self._right(partial(self._ask, question))
        checks: dict[str, Callable[[float], list[Answer]]] = {
            "repeat": partial(self._ask, self._questions[0], check="repeat"),
            "together": self._ask_together,
            "stream": partial(self._ask_stream, self._questions[0]),
        }
        for name in self._request.checks:
            self._right(checks[name])
        if self._request.tool_call:
            self._right(partial(self._call_tool, self._request.tool_call))
        self._until(self._started)
        self._read_log()

    def _right(self, ask: Callable[[float], list[Answer]]) -> None:
        """Ask until there are answers, and keep them; Wrong if one of them is not right."""
        answers = self._until(ask)
        self.report.answers += answers
        self._machine.progress.at(len(self.report.answers))
        for answer in answers:
            if answer.problem:
                raise Wrong(f"{self._request.url} gave a wrong answer{HOW[answer.check]}: {answer.problem}")
        if self.report.ready_seconds is None:
            self.report.ready_seconds = round(self._machine.clock() - self._began, 2)

    def _until(self, step: Callable[[float], Result]) -> Result:
        """Try a step until it comes off, for as long as the unit lives and there is time.

        Once the server has answered rightly it has to go on answering: then it gets the time of two requests.
        """
        machine, request, report = self._machine, self._request, self.report
        deadline = self._began + request.timeout
        was_ready = report.ready_seconds is not None
        if was_ready:
            deadline = min(deadline, machine.clock() + 2 * request.request_timeout)
        while True:
            self.watch.look()
            left = deadline - machine.clock()
            try:
                return step(max(1.0, min(request.request_timeout, left)))
            except NotYet as error:
                report.last_refusal = str(error)
            left = deadline - machine.clock()
            if left <= 0:
                raise Dead(_stopped(request, report) if was_ready else _too_late(request, report))
            machine.sleep(min(PAUSE, left))

    def _ready(self, limit: float) -> None:
        """Ask the engine itself; a server without such an endpoint is asked for its models at once."""
        for path in READINESS:
            status = self._server.status(path, limit)
            if status == 200:
                return
            if status not in NO_SUCH_ENDPOINT:
                raise NotYet(f"{self._request.url}{path} answers (HTTP {status}): it is not ready")

    def _started(self, limit: float) -> None:
        """Wait for systemd too: a start whose probe has not ended yet can still fail, and end the service."""
        del limit
        state = self.watch.state()
        if state in ("activating", "reloading"):
            raise NotYet(f"it answers, and its unit is still {state}")

    def _models(self, limit: float) -> None:
        request = self._request
        reply = self._server.call("/v1/models", None, min(limit, 10.0))
        data = reply.get("data")
        if not isinstance(data, list):
            raise Wrong(f"{request.url}/v1/models answered without a list of models: {str(reply)[:200]}")
        self.report.models = [str(entry.get("id", "")) for entry in data if isinstance(entry, dict)]
        if request.model and request.model not in self.report.models:
            names = ", ".join(self.report.models) or "no model"
            raise Wrong(f"{request.url} serves {names}, not {request.model}")

    def _ask(self, question: Question, limit: float, check: str = "prompt") -> list[Answer]:
        began = self._machine.clock()
        reply = self._server.call("/v1/chat/completions", self._body(question), limit)
        return [judge(question, reply, round(self._machine.clock() - began, 3), check)]

    def _ask_together(self, limit: float) -> list[Answer]:
        asked = [self._questions[number % len(self._questions)] for number in range(AT_ONCE)]
        ask = partial(self._ask, limit=limit, check="together")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [answer for answers in pool.map(ask, asked) for answer in answers]

    def _ask_stream(self, question: Question, limit: float) -> list[Answer]:
        began = self._machine.clock()
        body = {**self._body(question), "stream": True}
        events = self._server.stream("/v1/chat/completions", body, limit)
        return [judge(question, assemble(events), round(self._machine.clock() - began, 3), "stream")]

    def _call_tool(self, wanted: ToolCall, limit: float) -> list[Answer]:
        began = self._machine.clock()
        body = {**self._body(Question(wanted.messages, "", wanted.extra)), "tools": list(wanted.tools)}
        body["max_tokens"] = wanted.extra.get("max_tokens", wanted.max_tokens)
        reply = self._server.call("/v1/chat/completions", body, limit)
        return [judge_call(wanted, reply, round(self._machine.clock() - began, 3))]

    def _body(self, question: Question) -> dict[str, Any]:
        body: Mapping[str, Any] = {
            "messages": list(question.messages),
            "temperature": 0,
            "max_tokens": self._request.max_tokens,
            **({"model": self._request.model} if self._request.model else {}),
            **question.extra,
        }
        return dict(body)

    def _read_log(self) -> None:
        """Lines that make even a server that answers a failure, such as weights that were never loaded."""
        found = fatal(self._request.causes, self.watch.lines(), self._request.accept)
        if found:
            self.report.diagnosis = found
            raise Wrong(f"{self._request.url} answers, but its log says: {found.evidence}")


def _too_late(request: Request, report: Report) -> str:
    ready = "the model list came, but no completion" if report.models else "no answer at all"
    return (
        f"{request.url} did not give the right answers within {request.timeout:g} s: {ready}; "
        f"the last try said: {report.last_refusal}"
    )


def _stopped(request: Request, report: Report) -> str:
    right = len(report.answers)
    return f"{request.url} stopped answering after {right} right answers; the last try said: {report.last_refusal}"
