#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: check launch arguments against the built engine's own parser."""

from __future__ import annotations

DOCUMENTATION = r"""
module: launch_arguments
short_description: Check launch arguments against the built engine's own parser
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Has the built engine make its argument parser in the release's own interpreter, puts each launch argument to it, and
    fails with one readable message when it takes one of them not as it is.
  - Found are flags that there are not (with the nearest right name), ambiguous and abbreviated ones, values that are
    not among the choices, values of flags that take none, missing values, numbers that are none, and JSON that does
    not parse, also where the parser itself takes any text and would fail later, while it loads the model.
  - First it tries as O(user) what the engine will do with its files, and says which command mends what is denied.
  - No model is loaded and nothing is changed. It takes as long as the engine takes to be imported, 10 to 30 seconds.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
    details: Asks the engine in check mode too. Where the release is not built yet, nothing is asked, and it says so.
  diff_mode:
    support: none
    details: Nothing is changed, so there is no difference to show.
  idempotent:
    support: full
    details: Nothing is changed.
options:
  python:
    description: The release's interpreter, C(venv/bin/python) in its folder.
    type: path
    required: true
  arguments:
    description:
      - The launch arguments, from a flag's name without dashes to its value. V(true) is a flag alone; V(false) and null
        leave it out; a list is one flag with many values, a map is JSON.
      - A file named by C(--config) is not looked into.
    type: dict
    required: true
  environment:
    description: What the service's environment holds, for the choices that some versions read from it.
    type: dict
    default: {}
  checkpoint:
    description:
      - The checkpoint's folder. What its C(hf_quant_config.json) says is returned, for what is known to fail with it.
      - It need not be there. If it is, O(user) has to be able to read every file in it.
    type: path
  user:
    description:
      - Ask as this user, such as the service's, so that the engine's code does not run as root.
      - It takes root to ask as somebody else. Without it, whoever runs the module asks.
    type: str
    default: ""
  cache:
    description:
      - A file that keeps the engine's answer, so that the same question is not asked twice of the same release. Its
        folder is made. It is not written in check mode, and is no change.
      - Without it the engine is asked each time.
    type: path
  writable:
    description:
      - Folders that the engine writes to, tried as O(user). One that is not there yet is left out, and so is one of
        another owner, since systemd gives the unit's own folders to its user when it starts.
    type: list
    elements: path
    default: []
  timeout:
    description: Seconds that the engine may take.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Check every launch argument against the built engine
  llmfleet.sglang.launch_arguments:
    python: /opt/sglang/releases/0.5.23-ff542dc8f-67c489c563b187eb/venv/bin/python
    arguments:
      model-path: /models/qwen3_5_397b_nvfp4
      attention-backend: flashinfer
      sleep-on-idle: true
    user: sglang
    cache: /var/lib/llmfleet/qwen/arguments.json
  become: true
"""

RETURN = r"""
checkpoint:
  description: What O(checkpoint) says of itself, C(quantization) as a map. Empty if it says nothing.
  type: dict
  returned: success
problems:
  description: What the engine does not take. Empty when all is well.
  type: list
  elements: dict
  returned: if the engine was asked
  contains:
    flag:
      description: The flag, without dashes; empty when the arguments do not go together.
      type: str
      returned: always
    kind:
      description:
        - One of V(unknown), V(ambiguous), V(abbreviation), V(choice), V(value), V(missing_value), V(no_value), V(json),
          V(removed) and V(together).
      type: str
      returned: always
    message:
      description: What is wrong.
      type: str
      returned: always
    advice:
      description: What to write in its place.
      type: str
      returned: always
checked:
  description: The flags that were put to the engine.
  type: list
  elements: str
  returned: if the engine was asked
notes:
  description: What is no fault, such as a deprecated flag, or an environment variable that this version does not read.
  type: list
  elements: str
  returned: if the engine was asked
version:
  description: The version that the engine says it is.
  type: str
  returned: if the engine was asked
seconds:
  description: How long the engine took to build its parser; 0 when the answer was in O(cache).
  type: float
  returned: if the engine was asked
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import access, check, probe, quantization


def answer_to(question: probe.Question, cache: str | None, write: bool) -> tuple[dict[str, Any], float]:
    """Return the engine's answer and the seconds it took, from the cache where that has it.

    Raises probe.ProbeFailed, and OSError when the cache cannot be written.
    """
    kept = probe.remembered(Path(cache), question) if cache else None
    if kept is not None:
        return kept, 0.0
    answer = probe.ask(question)
    if cache and write:
        probe.remember(Path(cache), question, answer)
    return answer, float(answer["import_seconds"])


def denied(module: AnsibleModule) -> list[str]:
    """What the service user may not read, run or write; nothing in check mode, where the user is still to be made."""
    given = module.params
    python, checkpoint = (
        path if path and os.path.exists(path) else "" for path in (given["python"], given["checkpoint"])
    )
    wanted = access.Wanted(python, checkpoint, tuple(given["writable"]))
    try:
        return access.problems(wanted, given["user"])
    except probe.ProbeFailed as error:
        return [] if module.check_mode else [str(error)]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "python": {"type": "path", "required": True},
            "arguments": {"type": "dict", "required": True},
            "environment": {"type": "dict", "default": {}},
            "checkpoint": {"type": "path"},
            "user": {"type": "str", "default": ""},
            "cache": {"type": "path"},
            "writable": {"type": "list", "elements": "path", "default": []},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    python, arguments = module.params["python"], module.params["arguments"]
    environment = {name: str(value) for name, value in module.params["environment"].items()}
    about = quantization.read(Path(module.params["checkpoint"])) if module.params["checkpoint"] else {}
    if module.check_mode and not os.path.exists(python):
        module.exit_json(
            changed=False,
            skipped=True,
            checkpoint=about,
            msg=f"Check mode: {python} is not built yet, so nothing was asked.",
        )
    question = probe.Question(
        python=python,
        groups=check.groups(arguments),
        environment=environment,
        names=sorted(name for name in environment if name.startswith(("SGLANG_", "SGL_"))),
        user=module.params["user"],
        timeout=module.params["timeout"],
    )
    may_not = denied(module)
    if may_not:
        module.fail_json(msg="The engine would not start: " + "\n".join(may_not))
    try:
        answer, seconds = answer_to(question, module.params["cache"], not module.check_mode)
    except (OSError, probe.ProbeFailed) as error:
        module.fail_json(msg=f"The launch arguments could not be checked, and nothing was stopped: {error}")
    found = check.problems(arguments, answer)
    result = {
        "changed": False,
        "problems": [one.as_dict() for one in found],
        "checked": [flag for flag, value in arguments.items() if value is not None and value is not False],
        "notes": check.notes(answer),
        "version": answer["version"],
        "seconds": seconds,
        "checkpoint": about,
    }
    if found:
        module.fail_json(msg=check.text(found, answer["version"]), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
