#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: end what gives a checkpoint to other hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_server
short_description: End the server that gives a checkpoint to other hosts
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - M(llmfleet.sglang.checkpoint) with its option C(serve) starts an rsync daemon in the transient unit
    C(llmfleet-checkpoint.service). This module ends it; with it go its configuration and its secret, which lie in
    memory alone.
  - A server that is forgotten ends by itself after the seconds that it was started with.
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
  state:
    description: V(stopped) ends the server.
    type: str
    choices: [stopped]
    default: stopped
"""

EXAMPLES = r"""
- name: Serve no longer
  llmfleet.sglang.checkpoint_server:
    state: stopped
  become: true
"""

RETURN = r"""
unit:
  description: The name of the unit.
  returned: always
  type: str
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import serve


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"state": {"type": "str", "choices": ["stopped"], "default": "stopped"}},
        supports_check_mode=True,
    )
    try:
        changed = serve.active() if module.check_mode else serve.stop()
    except (OSError, subprocess.SubprocessError) as error:
        module.fail_json(msg=f"{serve.UNIT} cannot be ended: {error}. It ends by itself in time.", unit=serve.UNIT)
    module.exit_json(changed=changed, unit=serve.UNIT)


if __name__ == "__main__":
    main()
