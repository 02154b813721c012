#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: whether a host has the release that the inputs make, and all that it stands on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_status
short_description: Look whether a host has the release that the inputs make, and all that a build makes sure of
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Looks at the users, the folders, the mirror, the lock and the release of a deployment at once, so that a second run
    has one question to ask. Changes nothing.
  - Where the release is there, it is compared with its record, and what was changed by hand is a warning.
  - Is meant to run as root, since it looks at what the build's user owns. Git runs as that user.
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
    description: The installation's root.
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
  rules:
    description: What versions of SGLang need, as M(llmfleet.sglang.release_requirements) takes it.
    type: list
    elements: dict
    default: []
  python:
    description: The interpreter that the release runs on.
    type: path
    required: true
  overrides:
    description: The text of a uv overrides file.
    type: str
    default: ""
  uv_version:
    description: The version of uv.
    type: str
    required: true
  tool:
    description: Folder of uv's own environment.
    type: path
    required: true
  flags:
    description: The operator's own flags of the build.
    type: dict
    default: {}
  device:
    description: The engine's device. For V(cpu) no card is asked.
    type: str
    default: cuda
  compute_capability:
    description: What is compiled for where there is no driver to ask.
    type: str
    default: ""
  users:
    description: Users that have to be there.
    type: list
    elements: str
    default: []
  folders:
    description: Folders that have to be there and belong to O(owner).
    type: list
    elements: path
    default: []
  owner:
    description: The user who builds.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Look for the release
  llmfleet.sglang.release_status:
    root: /opt/sglang
    commit: "{{ sglang_commit }}"
    version: 0.5.23
    python: /usr/bin/python3
    uv_version: 0.13.9
    tool: /opt/sglang/tools/uv-0.13.9
    owner: sglang-build
  become: true
  register: found
"""

RETURN = r"""
missing:
  description: What a release is made from and is not there, a phrase each.
  returned: success
  type: list
  elements: str
describe:
  description: What C(git describe --tags --match v*) says of the commit.
  returned: success
  type: str
interpreter:
  description: Implementation, version and machine of the interpreter; empty as long as the commit is missing.
  returned: success
  type: str
lock:
  description: The text of the lock that the host has for these inputs; empty without one.
  returned: success
  type: str
id:
  description: The release's identifier; empty as long as there is no lock.
  returned: success
  type: str
path:
  description: The release's folder; empty as long as there is no lock.
  returned: success
  type: str
built:
  description: Whether the release is finished.
  returned: success
  type: bool
inputs:
  description: All that went into the identifier.
  returned: success
  type: dict
compilers:
  description: Environment for the compilers that the engine runs.
  returned: success
  type: dict
drift:
  description: What is not as it was built, as M(llmfleet.sglang.release_info) returns it.
  returned: success
  type: list
  elements: dict
"""

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import interpreter, look, source

# More would hide the rest of what a run says; release_info lists all.
_SHOWN = 10


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "commit": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "patch_sets": {"type": "list", "elements": "dict", "default": []},
            "rules": {"type": "list", "elements": "dict", "default": []},
            "python": {"type": "path", "required": True},
            "overrides": {"type": "str", "default": ""},
            "uv_version": {"type": "str", "required": True},
            "tool": {"type": "path", "required": True},
            "flags": {"type": "dict", "default": {}},
            "device": {"type": "str", "default": "cuda"},
            "compute_capability": {"type": "str", "default": ""},
            "users": {"type": "list", "elements": "str", "default": []},
            "folders": {"type": "list", "elements": "path", "default": []},
            "owner": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    given = dict(module.params)
    for name in ("root", "tool"):
        given[name] = Path(given[name])
    given["folders"] = [Path(one) for one in given["folders"]]
    try:
        found = look.look(look.Wanted(**given))
    except (OSError, ValueError, interpreter.InterpreterError, source.GitError) as error:
        module.fail_json(
            msg=f"The releases under {given['root']} cannot be looked at, and nothing was stopped: {error}."
        )
    for one in found.drift[:_SHOWN]:
        module.warn(
            f"release {found.id} is not as it was built: {one['kind']} {one['name']}: "
            f"expected {one['expected']}, found {one['found']}"
        )
    if len(found.drift) > _SHOWN:
        module.warn(f"release {found.id} differs from its record in {len(found.drift)} things; release_info lists all")
    module.exit_json(changed=False, **asdict(found))


if __name__ == "__main__":
    main()
