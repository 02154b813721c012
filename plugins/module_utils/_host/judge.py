# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an answer of a chat server is the right one. PRIVATE to the collection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .wording import LONGEST, contains, is_garbage, plain

# The next step after an answer that tells nothing of its cause.
LOOK = (
    "Compare the checkpoint's revision, the quantization and the chat template with those of the model profile; the "
    "engine's log may have warnings."
)
# How a model writes a tool call that no parser took out of its text.
CALL_AS_TEXT = re.compile(r"<\|?/?tool_call|<function=|<\|tool_calls_section|<arg_key>|\[TOOL_CALLS\]|\"name\"\s*:")


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
class ToolCall:
    """A prompt that has to be answered by calling a tool. `arguments`: those that have to be among the call's."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int = 256


@dataclass(frozen=True)
class Answer:
    """What the server said to one question, and whether that was right.

    check: how it was asked: C(prompt), C(repeat), C(together), C(stream) or C(tool_call).
    """

    prompt: str
    expected: str
    answer: str
    seconds: float
    finish_reason: str
    problem: str = ""
    check: str = "prompt"


def judge(question: Question, reply: Mapping[str, Any], seconds: float = 0.0, check: str = "prompt") -> Answer:
    """Whether a chat completion's reply is the right answer, with what is wrong about it if not."""
    message, finish = message_of(reply)
    text = str(message.get("content") or "")
    problem = _error_of(reply) or _problem(question, message, text, finish)
    if problem:
        problem = f"asked {question.text!r}, {problem}"
    return Answer(question.text, question.expect, text, seconds, finish, problem, check)


def _problem(question: Question, message: Mapping[str, Any], text: str, finish: str) -> str:
    """What is wrong about the text, and the next step; "" if nothing is."""
    if not text.strip():
        said = f"it said nothing (finish reason {finish or 'missing'})"
        if message.get("reasoning_content"):
            return f"{said}; all tokens went into reasoning: raise max_tokens, or turn thinking off for this prompt"
        return f"{said}. {LOOK}"
    if is_garbage(text):
        return f"it said garbage: {text[:80]!r}"
    if not question.expect:
        return ""
    got = f"expected {question.expect!r}, got {text[:200]!r}"
    if not contains(text, question.expect):
        if finish == "length":
            return f"{got}, cut off at max_tokens: raise it, or turn thinking off for this prompt"
        return f"{got}. {LOOK}"
    if len(plain(text)) > LONGEST:
        return f"{got}, and so on for {len(text)} characters, where a short answer was asked for. {LOOK}"
    return ""


def _error_of(reply: Mapping[str, Any]) -> str:
    """The server's own message, where it answers an error with the status of a success."""
    if _choice(reply) or not (reply.get("object") == "error" or reply.get("error")):
        return ""
    error = reply.get("error")
    told = error.get("message") if isinstance(error, dict) else error or reply.get("message")
    return f"the server answered an error: {str(told or dict(reply))[:300]}"


def judge_call(wanted: ToolCall, reply: Mapping[str, Any], seconds: float = 0.0) -> Answer:
    """Whether the reply calls the wanted tool, as JSON in C(tool_calls) and with the wanted arguments."""
    message, finish = message_of(reply)
    content = str(message.get("content") or "")
    calls = message.get("tool_calls")
    prompt = str(wanted.messages[-1].get("content", ""))
    expected = f"{wanted.name}({json.dumps(dict(wanted.arguments), sort_keys=True)})"
    first = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else {}
    function = first.get("function")
    function = function if isinstance(function, dict) else {}
    said = f"{function.get('name')}({function.get('arguments')})" if function else content
    problem = ""
    if not function and CALL_AS_TEXT.search(content):
        problem = (
            f"it wrote the tool call as text, {content[:120]!r}: the model was not asked with the tool call parser "
            "that fits it (--tool-call-parser)"
        )
    elif not function:
        problem = f"it called no tool but said {content[:120]!r}"
    elif function.get("name") != wanted.name:
        problem = f"it called {function.get('name')!r}"
    else:
        problem = _wrong_arguments(wanted.arguments, function.get("arguments"))
    if problem:
        problem = f"asked {prompt!r}, expected the tool call {expected}, {problem}"
    return Answer(prompt, expected, said, seconds, finish, problem, "tool_call")


def _wrong_arguments(wanted: Mapping[str, Any], given: object) -> str:
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return f"its arguments are not JSON: {str(given)[:120]!r}"
    if not isinstance(arguments, dict):
        return f"its arguments are no object: {str(given)[:120]!r}"
    for name, value in wanted.items():
        if _plain(arguments.get(name)) != _plain(value):
            return f"its argument {name} is {arguments.get(name)!r}, not {value!r}"
    return ""


def _plain(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def message_of(reply: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The message and the finish reason of a chat completion; empty where it has none."""
    choice = _choice(reply)
    message = choice.get("message")
    return message if isinstance(message, dict) else {}, str(choice.get("finish_reason") or "")


def assemble(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The chat completion that the events of a stream add up to."""
    message = {"content": "", "reasoning_content": ""}
    finish = ""
    for event in events:
        choice = _choice(event)
        delta = choice.get("delta")
        for name in message:
            message[name] += str((delta.get(name) if isinstance(delta, dict) else "") or "")
        finish = str(choice.get("finish_reason") or finish)
    return {"choices": [{"message": message, "finish_reason": finish}]}


def _choice(reply: Mapping[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
