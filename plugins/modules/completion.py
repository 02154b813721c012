#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: completion
short_description: Wait until a server gives the right answers to known prompts
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Waits until C(/v1/chat/completions) of an OpenAI-compatible server answers known prompts rightly, at
    temperature 0.
  - Meanwhile it watches the systemd unit. If that fails, stops, or is restarted more often than allowed,
    the module fails at once with what its journal says, instead of waiting for what cannot come.
  - HTTP 200 with a wrong answer, an empty one, the same over and over, or text that nobody can read is a failure, also
    where the expected words stand in it. It names the prompt, what was expected, and what came.
  - The engine's own readiness (C(/ready), C(/health)) comes first, where there is such an endpoint. After the prompts,
    O(checks) and O(tool_call) ask for what one right answer does not show.
  - A process that is not the unit's and listens on its port is a failure, whatever it answers.
  - A failure is explained by the first of O(causes) of which the unit's journal has a line.
  - It changes nothing, and runs on the host of the server.
options:
  host:
    description: Address that the server listens on. A wildcard is asked on the loopback address.
    type: str
    required: true
  port:
    description: TCP port of the server.
    type: int
    required: true
  model:
    description:
      - Name of the served model. C(/v1/models) has to list it.
      - An empty text takes any.
    type: str
    default: ""
  service:
    description:
      - Systemd service of the server, with or without V(.service).
      - An empty text watches no unit.
    type: str
    default: ""
  prompts:
    description:
      - What to ask, in this order.
      - Without any, one prompt is sent, and every answer is taken that is not garbage.
    type: list
    elements: dict
    default: []
    suboptions:
      messages:
        description: Chat messages, each with C(role) and C(content).
        type: list
        elements: dict
        required: true
      expect:
        description:
          - Words that have to stand in the answer, as whole words, in any case, and not denied.
          - The answer may be a sentence or two, of 1000 characters at most; what comes before C(</think>) is left out.
          - An empty text takes every answer that is not garbage.
        type: str
        default: ""
      extra:
        description: Further keys of the request, such as C(chat_template_kwargs).
        type: dict
        default: {}
  checks:
    description:
      - What to ask for after the prompts, in this order.
      - V(repeat) asks the first prompt again, V(together) two prompts at once, V(stream) the first one as a stream.
        Each has to be answered rightly.
    type: list
    elements: str
    choices: [repeat, together, stream]
    default: [repeat, together, stream]
  tool_call:
    description: A prompt that has to be answered by a tool call, which has to come as JSON in C(tool_calls).
    type: dict
    suboptions:
      messages:
        description: Chat messages.
        type: list
        elements: dict
        required: true
      tools:
        description: The tools that the model may call, as the API takes them.
        type: list
        elements: dict
        required: true
      name:
        description: Which of them it has to call.
        type: str
        required: true
      arguments:
        description: Arguments that have to be among the call's. Texts are compared in any case.
        type: dict
        default: {}
      extra:
        description: Further keys of the request.
        type: dict
        default: {}
  own_port:
    description:
      - Whether a process that listens on O(port) and is not of O(service) is a failure.
      - Leave it out for a service whose container listens in its place.
    type: bool
    default: true
  hang_seconds:
    description:
      - Seconds without a new line in the unit's journal, requests left out, after which the cards are looked at. If all
        of the unit's are fully used at less than a quarter of their power limit, twice in a row, a collective operation
        hangs and the module fails. Loading and compiling look different.
      - V(0) never looks, and nothing is concluded where C(nvidia-smi) tells no power.
    type: int
    default: 300
  causes:
    description:
      - What failures are explained by; the first one that fits does. The role C(sglang_verify) has a list.
      - Each has C(id), C(patterns) (regular expressions, any of which has to be found in a line), C(message), C(advice)
        and C(source). It may have C(along_with) (patterns of which any has to be found in any line too) and C(fatal)
        (such a line is a failure although the server answers) and C(link) (the address of a page that says more).
    type: list
    elements: dict
    default: []
  accept:
    description: Identifiers of causes that are not fatal here.
    type: list
    elements: str
    default: []
  api_key:
    description: Key that is sent as bearer token.
    type: str
    default: ""
  credential:
    description:
      - A file on the host with the key, in the form in which the engine's unit reads it (JSON with C(api-key)).
      - If it is there, it is taken in place of O(api_key).
    type: path
  max_tokens:
    description: Most tokens that an answer may have.
    type: int
    default: 16
  timeout:
    description: Seconds until all answers have to be there.
    type: int
    default: 900
  request_timeout:
    description: Seconds that one request may take.
    type: int
    default: 60
  restarts_allowed:
    description: How often systemd may restart the service meanwhile.
    type: int
    default: 0
  journal_lines:
    description: How many lines of the unit's journal a failure shows.
    type: int
    default: 40
  durations_file:
    description: A file on the host in which the seconds of each phase are kept, to be said the next time.
    type: path
  times_file:
    description: A file of the host record that keeps the times of a cut-over, for M(llmfleet.sglang.cutover_info).
    type: path
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
    details: Asks nothing and reports that it was skipped, since the server may not exist yet.
  diff_mode:
    support: none
    details: Nothing is changed, so there is no difference to show.
  idempotent:
    support: full
    details: Nothing is changed.
"""

EXAMPLES = r"""
- name: Wait until the new server answers rightly
  llmfleet.sglang.completion:
    host: 10.77.0.11
    port: 30000
    service: sglang-qwen
    model: qwen3.5-397b
    prompts:
      - messages:
          - role: user
            content: What is the capital of France?
        expect: Paris
  become: true
"""

RETURN = r"""
answers:
  description:
    - Each prompt with what was expected, what came, how long it took, what was wrong with it, and how it was asked
      (C(check), one of V(prompt), V(repeat), V(together), V(stream), V(tool_call)).
  type: list
  elements: dict
  returned: if the server was asked
model:
  description: The model that answered, as C(/v1/models) calls it.
  type: str
  returned: if the server was asked
ready_seconds:
  description: Seconds from the module's start until the first right answer.
  type: float
  returned: if there was one
cause:
  description: What explains the failure. Empty if nothing is known that does.
  type: dict
  returned: failure
  contains:
    id:
      description: Stable identifier.
      type: str
      sample: port_in_use
    message:
      description: What is the matter.
      type: str
    advice:
      description: The next step.
      type: str
    evidence:
      description: The line that shows it.
      type: str
    source:
      description: Where this is known from.
      type: str
    link:
      description: The address of a page that says more. Empty where there is none.
      type: str
journal:
  description: Last lines of the unit's journal.
  type: list
  elements: str
  returned: failure
"""

import json
from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis import causes, excerpt
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.completion import CHECKS, Report, Request, verify
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.judge import Question, ToolCall
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import SystemdError, unit_name
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.watch import Machine
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}

ARGUMENTS = {
    "host": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "model": {"type": "str", "default": ""},
    "service": {"type": "str", "default": ""},
    "prompts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "messages": {"type": "list", "elements": "dict", "required": True},
            "expect": {"type": "str", "default": ""},
            "extra": {"type": "dict", "default": {}},
        },
    },
    "checks": {"type": "list", "elements": "str", "choices": list(CHECKS), "default": list(CHECKS)},
    "tool_call": {
        "type": "dict",
        "options": {
            "messages": {"type": "list", "elements": "dict", "required": True},
            "tools": {"type": "list", "elements": "dict", "required": True},
            "name": {"type": "str", "required": True},
            "arguments": {"type": "dict", "default": {}},
            "extra": {"type": "dict", "default": {}},
        },
    },
    "own_port": {"type": "bool", "default": True},
    "hang_seconds": {"type": "int", "default": 300},
    "causes": {"type": "list", "elements": "dict", "default": []},
    "accept": {"type": "list", "elements": "str", "default": []},
    "api_key": {"type": "str", "default": "", "no_log": True},
    "credential": {"type": "path"},
    "max_tokens": {"type": "int", "default": 16, "no_log": False},
    "timeout": {"type": "int", "default": 900},
    "request_timeout": {"type": "int", "default": 60},
    "restarts_allowed": {"type": "int", "default": 0},
    "journal_lines": {"type": "int", "default": 40},
    "durations_file": {"type": "path"},
    "times_file": {"type": "path"},
    "progress_file": {"type": "path"},
}


def request_of(module: AnsibleModule) -> Request:
    """The module's arguments as the logic takes them; ValueError names a wrong service name or cause."""
    given = module.params
    call = given["tool_call"]
    known = causes.read(given["causes"])
    strange = sorted(set(given["accept"]) - {cause.id for cause in known})
    if strange:
        raise ValueError(f"accept names causes that there are not: {', '.join(strange)}")
    host = LOOPBACK.get(given["host"], given["host"])
    return Request(
        url=f"http://{'[' + host + ']' if ':' in host else host}:{given['port']}",
        questions=tuple(
            Question(tuple(prompt["messages"]), prompt["expect"], prompt["extra"]) for prompt in given["prompts"]
        ),
        model=given["model"],
        service=unit_name(given["service"]) if given["service"] else "",
        api_key=key_of(given["credential"]) or given["api_key"],
        timeout=given["timeout"],
        request_timeout=given["request_timeout"],
        max_tokens=given["max_tokens"],
        restarts_allowed=given["restarts_allowed"],
        journal_lines=given["journal_lines"],
        checks=tuple(given["checks"]),
        tool_call=ToolCall(**{**call, "messages": tuple(call["messages"]), "tools": tuple(call["tools"])})
        if call
        else None,
        address=given["host"],
        port=given["port"] if given["own_port"] else 0,
        hang_seconds=given["hang_seconds"],
        causes=known,
        accept=tuple(given["accept"]),
        times=Path(given["times_file"]) if given["times_file"] else None,
    )


def key_of(credential: str | None) -> str:
    """The API key in a unit's credential; "" when there is no such file. ValueError when it holds something else."""
    try:
        return str(json.loads(Path(credential).read_text(encoding="utf-8"))["api-key"]) if credential else ""
    except FileNotFoundError:
        return ""
    except (KeyError, TypeError, ValueError):  # json's message would quote what it read
        raise ValueError(f"{credential} holds no API key in the form that the unit reads") from None


def message_of(report: Report, service: str) -> str:
    """The failure in words: the cause first, then what happened, then what the unit logged last if it is dead."""
    parts = [report.problem]
    if report.diagnosis:
        # What was found in the problem itself need not be said twice.
        told = report.diagnosis.evidence[:60] in report.problem
        parts.insert(0, report.diagnosis.describe(evidence=not told))
    elif report.dead:
        last = excerpt.last_exception(report.journal)[: excerpt.LONGEST_LINE]
        parts.insert(0, f"{causes.UNKNOWN} Its last exception: {last}" if last else causes.UNKNOWN)
    if report.dead and report.journal:
        shown = [f"  {line}" for line in excerpt.excerpt(report.journal)]
        parts += ["From its journal:", *shown, f"All of it: {excerpt.show_all(service)}"]
    return "\n".join(parts)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(
            changed=False, skipped=True, msg="Check mode: the server may not exist yet, so nothing was asked."
        )
    kept = module.params["durations_file"]
    progress = Progress(module.params["progress_file"], Path(kept) if kept else None)
    report = Report()
    try:
        report = verify(request_of(module), Machine(progress=progress))
    except (SystemdError, ValueError) as error:
        module.fail_json(msg=str(error))
    finally:
        # An engine that answered at once says nothing of how long a start takes, and a run that changes nothing
        # writes nothing.
        progress.close(ended=bool(report.answers) and not report.problem and bool(report.last_refusal))
    wanted = module.params["model"]
    result = {
        "changed": False,
        "answers": [asdict(answer) for answer in report.answers],
        "model": wanted if wanted in report.models else ", ".join(report.models),
    }
    if report.ready_seconds is not None:
        result["ready_seconds"] = report.ready_seconds
    if report.problem:
        cause = report.diagnosis.as_dict() if report.diagnosis else {}
        module.fail_json(
            msg=message_of(report, module.params["service"]), journal=report.journal, cause=cause, **result
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
