#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the file from which a unit of ours reads its API key."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_credential
short_description: Prepare the file from which a unit reads its API key, or see to it that there is none
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Writes the key atomically, for root alone (mode 0600), as a configuration file of SGLang.
  - C(ansible.builtin.copy) would have it in files of the login users meanwhile, on the controller and on the host, and
    leave it there when it is killed.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: A diff would show the key.
  idempotent:
    support: full
options:
  path:
    description: The file.
    type: path
    required: true
  api_key:
    description: The key. Empty, the unit asks for none, and a file that is there goes.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Prepare the API key
  llmfleet.sglang.service_credential:
    path: /var/lib/llmfleet/qwen/next/sglang.yaml
    api_key: "{{ sglang_api_key }}"
"""

RETURN = r"""
{}
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, settle


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "api_key": {"type": "str", "default": "", "no_log": True},
        },
        supports_check_mode=True,
    )
    path, key = Path(module.params["path"]), module.params["api_key"]
    wanted = File((json.dumps({"api-key": key}) + "\n").encode(), 0o600) if key else None
    try:
        changed = File.read(path) != wanted or path.is_symlink()
        if changed and not module.check_mode:
            if wanted:
                wanted.write(path)
            else:
                path.unlink()
                settle(path.parent)
    except OSError as error:
        # The error names the file. What would have been written is not in it.
        module.fail_json(msg=f"The API key's file cannot be prepared: {error}.")
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
