#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a build needs, and whether the host has it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_requirements
short_description: Check that a host has what building a version of SGLang needs
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Looks up what O(version) needs in O(rules), compares it with the host, and fails with one message that lists all
    that is missing, with figures. Changes nothing.
  - Returns the flags of the build and the environment for the engine's own compilers, for the cards that are there.
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
  version:
    description: The version of SGLang, as C(git describe) says it.
    type: str
    required: true
  rules:
    description: What versions need; see C(files/builds.yml) of the role P(llmfleet.sglang.sglang_build#role).
    type: list
    elements: dict
    required: true
  commit:
    description: The commit that is built.
    type: str
    required: true
  describe:
    description:
      - What Git derives for the commit. When no tag leads to it, the version is handed to the build, which has it from
        Git otherwise.
    type: str
    default: ""
  python:
    description: The interpreter that the release runs on.
    type: path
    required: true
  flags:
    description: Flags of the build that the operator set. They win.
    type: dict
    default: {}
  device:
    description: What the engine runs on. V(cpu) needs neither a toolkit nor architectures.
    type: str
    default: cuda
  compute_capability:
    description: What is compiled for where there is no driver to ask.
    type: str
    default: ""
  cuda_home:
    description: The CUDA toolkit that the service uses.
    type: path
    default: /usr/local/cuda
"""

EXAMPLES = r"""
- name: Check what the build needs
  llmfleet.sglang.release_requirements:
    version: 0.5.23
    rules: "{{ lookup('ansible.builtin.file', 'builds.yml') | from_yaml }}"
    commit: "{{ sglang_commit }}"
    describe: "{{ source.describe }}"
    python: /usr/bin/python3
  register: requirements
"""

RETURN = r"""
flags:
  description: The flags that shape what is built; they belong to a release's identifier.
  returned: success
  type: dict
  sample: {SGLANG_BUILD_RUST_EXTS: none, TORCH_CUDA_ARCH_LIST: 12.0a}
compilers:
  description: Environment for the compilers that the engine runs, at the build and when it serves.
  returned: success
  type: dict
  sample: {FLASHINFER_CUDA_ARCH_LIST: 12.0a, MAX_JOBS: "16", TORCH_CUDA_ARCH_LIST: 12.0a}
interpreter:
  description: The interpreter's version.
  returned: always
  type: str
memory:
  description: Bytes of memory in all and available.
  returned: always
  type: dict
"""


from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import host, interpreter
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.flags import build_flags
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import needs_of


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "version": {"type": "str", "required": True},
            "rules": {"type": "list", "elements": "dict", "required": True},
            "commit": {"type": "str", "required": True},
            "describe": {"type": "str", "default": ""},
            "python": {"type": "path", "required": True},
            "flags": {"type": "dict", "default": {}},
            "device": {"type": "str", "default": "cuda"},
            "compute_capability": {"type": "str", "default": ""},
            "cuda_home": {"type": "path", "default": "/usr/local/cuda"},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        needs = needs_of(given["rules"], given["version"])
        described = interpreter.describe(given["python"])
        memory = host.read_memory()
    except (OSError, ValueError, interpreter.InterpreterError) as error:
        module.fail_json(msg=f"The build cannot be planned, and nothing was stopped: {error}.")
    cuda = given["device"] != "cpu"
    flags, compilers = build_flags(
        needs,
        given["flags"],
        version=given["version"],
        commit=given["commit"],
        describe=given["describe"],
        capabilities=(host.read_capabilities() or [given["compute_capability"]]) if cuda else [],
        jobs=host.jobs(host.cores(), memory),
    )
    problems = [
        host.python_problem(described, given["python"], needs, given["version"]),
        *host.tool_problems(needs.tools, flags),
        host.toolkit_problem(needs, given["cuda_home"]) if cuda else "",
        host.memory_problem(memory),
    ]
    told = {"interpreter": described, "memory": {"total": memory.total, "available": memory.available}}
    listed = [problem for problem in problems if problem]
    if listed:
        lines = "".join(f"\n- {problem}." for problem in listed)
        module.fail_json(msg=f"SGLang {given['version']} cannot be built here, and nothing was stopped:{lines}", **told)
    module.exit_json(changed=False, flags=flags, compilers=compilers, **told)


if __name__ == "__main__":
    main()
