#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: have everything on the host that putting a unit in force takes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_prepare
short_description: Write a unit and what it reads where M(llmfleet.sglang.service_switch) finds it, and check it
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Looks first whether the unit may be put in force at all, as M(llmfleet.sglang.service_switch) would. Then it writes
    the unit, its API key and the files that it reads, each atomically, and asks C(systemd-analyze verify). Nothing is
    put in force, started or stopped.
  - All in one call, since each call costs the controller of a large fleet more than what it does on the host.
  - The key is for root alone (mode 0600), in a configuration file of SGLang. C(ansible.builtin.copy) would have it in
    files of the login users meanwhile, on the controller and on the host, and leave it there when it is killed.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
    details: C(systemd-analyze) is not asked, because what the unit runs may still have to be built.
  diff_mode:
    support: partial
    details: A diff would show the key, so it has the other files alone.
  idempotent:
    support: full
options:
  name:
    description: The service's name, without C(.service).
    type: str
    required: true
  unit:
    description: The unit's text.
    type: str
    required: true
  dest:
    description: The prepared unit file. Its folder is made.
    type: path
    required: true
  api_key:
    description: The key. Empty, the unit asks for none, and a file that is there goes.
    type: str
    default: ""
  credential:
    description: The prepared file with the key.
    type: path
    required: true
  files:
    description: The other files that the unit reads, from a path to its text. Their folders are made.
    type: dict
    default: {}
  disable:
    description: The services that it takes the place of.
    type: list
    elements: str
    default: []
  adopt:
    description: Whether a foreign unit of that name may be taken over.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Prepare the unit
  llmfleet.sglang.service_prepare:
    name: sglang-qwen
    unit: "{{ lookup('ansible.builtin.template', 'sglang.service.j2') }}"
    dest: /var/lib/llmfleet/qwen/next/sglang-qwen.service
    api_key: "{{ sglang_api_key }}"
    credential: /var/lib/llmfleet/qwen/next/sglang.yaml
    disable: [sglang-kimi]
  become: true
"""

RETURN = r"""
state:
  description: The wanted state that stands in the unit, for M(llmfleet.sglang.service_start).
  returned: success
  type: str
written:
  description: The files and folders that were not as they are now. In check mode, those that would be written.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import preparing, switching
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.preparing import Folder, Prepared
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError


def _prepare(module: AnsibleModule) -> dict[str, object]:
    """Look, write and check. Raises OSError and UnitError."""
    given = module.params
    name, dest, unit = given["name"], Path(given["dest"]), File(given["unit"].encode())
    switching.plan(name, unit, None, given["disable"])  # what it would come to can be told, or this raises
    files = [Prepared(Path(path), File(text.encode())) for path, text in given["files"].items()]
    key = Prepared(Path(given["credential"]), preparing.key_file(given["api_key"]), secret=True)
    files += [key, Prepared(dest, unit)]
    folders = [Folder(path) for path in dict.fromkeys(one.path.parent for one in files)]
    everything: list[Folder | Prepared] = [*folders, *files]
    todo = [one for one in everything if one.changes]
    diff = [one.diff() for one in files if one in todo and not one.secret]
    if not module.check_mode:
        for one in todo:
            one.carry_out()
        against = preparing.refused_by_systemd(dest, name)
        if against:
            module.fail_json(msg=f"systemd does not take the unit {dest}: {against}")
    written = [str(one.path) for one in todo]
    return {"changed": bool(todo), "written": written, "state": preparing.state_of(given["unit"]), "diff": diff}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "unit": {"type": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "credential": {"type": "path", "required": True},
            "files": {"type": "dict", "default": {}},
            "disable": {"type": "list", "elements": "str", "default": []},
            "adopt": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    against = switching.hindrance(module.params["name"], module.params["adopt"], module.params["disable"])
    if against:
        module.fail_json(msg=against)
    try:
        result = _prepare(module)
    except (OSError, UnitError) as error:
        # The error names the file. What would have been written is not in it.
        module.fail_json(msg=f"{module.params['name']}.service cannot be prepared: {error}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
