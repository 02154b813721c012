#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: which release the inputs make, and whether the host has it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_plan
short_description: Say which release the inputs make, and whether it is built
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Computes a release's identifier from all that goes into it. Changes nothing.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  root:
    description: The installation's root; releases lie in C(releases) below it.
    type: path
    required: true
  commit:
    description: The commit, 40 hexadecimal digits.
    type: str
    required: true
  version:
    description: The SGLang version.
    type: str
    required: true
  patch_sets:
    description: The patch sets, each with C(name) and C(edits).
    type: list
    elements: dict
    default: []
  lock:
    description: The lock's text. Empty where a check run could not make one.
    type: str
    required: true
  python:
    description: The interpreter that the release runs on.
    type: path
    required: true
  environment:
    description: The build's own flags.
    type: dict
    default: {}
  compilers:
    description: Environment for compilers that belongs to the release and not to its identifier. Handed back.
    type: dict
    default: {}
  describe:
    description: What Git says of the commit. Handed back.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Find the release
  llmfleet.sglang.release_plan:
    root: /opt/sglang
    commit: "{{ sglang_commit }}"
    version: 0.5.23
    lock: "{{ locked.lock }}"
    python: /usr/bin/python3
  register: plan
"""

RETURN = r"""
id:
  description: The release's identifier, and the name of its folder.
  returned: success
  type: str
path:
  description: The release's folder.
  returned: success
  type: str
built:
  description: Whether the release is finished on this host.
  returned: success
  type: bool
inputs:
  description: All that went into the identifier.
  returned: success
  type: dict
lock:
  description: O(lock), as given.
  returned: success
  type: str
describe:
  description: O(describe), as given.
  returned: success
  type: str
compilers:
  description: O(compilers), as given.
  returned: success
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import identity, interpreter


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "commit": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "patch_sets": {"type": "list", "elements": "dict", "default": []},
            "lock": {"type": "str", "required": True},
            "python": {"type": "path", "required": True},
            "environment": {"type": "dict", "default": {}},
            "compilers": {"type": "dict", "default": {}},
            "describe": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    params = dict(module.params)
    releases = Path(params.pop("root")) / "releases"
    handed = {name: params.pop(name) for name in ("compilers", "describe")}
    try:
        parts = identity.inputs(interpreter=interpreter.describe(params.pop("python")), **params)
    except interpreter.InterpreterError as error:
        module.fail_json(msg=str(error))
    name = identity.release_id(params["version"], parts) if params["lock"] else f"{params['version']}-not-locked-yet"
    path = releases / name
    built = identity.read_record(path) is not None
    result = {"id": name, "path": str(path), "built": built, "inputs": parts, "lock": params["lock"]}
    module.exit_json(changed=False, **handed, **result)


if __name__ == "__main__":
    main()
