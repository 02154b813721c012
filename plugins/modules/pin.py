#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: look pins up and write them down."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pin
short_description: Look a source reference and a checkpoint revision up, and write them to the inventory
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Asks Git what a branch or tag is, and the Hub what a model's revision is, and writes both as 40 hexadecimal digits,
    with the SGLang version and where each came from.
  - It is meant to run on the controller.
attributes:
  check_mode:
    support: full
    description: Runs in check mode and says what it would do, without doing it.
  diff_mode:
    support: full
    description: Returns what changes as a diff.
  idempotent:
    support: partial
    description: A second run changes nothing.
    details: Unless the branch or the model has moved meanwhile, which is what it is run for.
options:
  dest:
    description: The file to write.
    type: path
    required: true
  repository:
    description: URL of the source repository.
    type: str
    required: true
  reference:
    description: Branch, tag or commit.
    type: str
    default: main
  endpoint:
    description: URL of the Hub.
    type: str
    default: https://huggingface.co
  checkpoint:
    description: Model repository on the Hub.
    type: str
    required: true
  revision:
    description: Branch, tag or revision of the model.
    type: str
    default: main
  token:
    description: Token for the Hub.
    type: str
    default: ""
  environment:
    description: Environment for Git, such as a proxy. It may hold secrets and is never logged.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Pin the newest SGLang and the checkpoint
  llmfleet.sglang.pin:
    dest: inventories/blackwell/group_vars/sglang/pins.yml
    repository: https://github.com/sgl-project/sglang.git
    reference: main
    checkpoint: nvidia/Qwen3.5-397B-A17B-NVFP4
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
pins:
  description: The pins by variable.
  returned: success
  type: dict
"""

import os
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import lookup


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "repository": {"type": "str", "required": True},
            "reference": {"type": "str", "default": "main"},
            "endpoint": {"type": "str", "default": "https://huggingface.co"},
            "checkpoint": {"type": "str", "required": True},
            "revision": {"type": "str", "default": "main"},
            "token": {"type": "str", "default": "", "no_log": True},
            "environment": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    dest = Path(params["dest"])
    before = dest.read_text(encoding="utf-8") if dest.exists() else ""
    try:
        found = lookup.source_pin(params["repository"], params["reference"], params["environment"])
        revision = lookup.revision_pin(
            params["endpoint"],
            params["checkpoint"],
            params["revision"],
            params["token"],
            environment=params["environment"],
        )
    except lookup.PinError as error:
        module.fail_json(msg=f"Nothing was pinned: {error}")
    pins = {
        "sglang_commit": found.commit,
        "sglang_version": found.version,
        "sglang_checkpoint_revision": revision,
    }
    origins = {
        "sglang_commit": f"{found.reference} of {params['repository']}",
        "sglang_version": "what `git describe` says of that commit",
        "sglang_checkpoint_revision": f"{params['revision']} of {params['checkpoint']} at {params['endpoint']}",
    }
    changed = lookup.current(before) != pins
    after = lookup.render(pins, origins, datetime.now(timezone.utc).date().isoformat()) if changed else before
    if changed and not module.check_mode:
        handle, temporary = tempfile.mkstemp(dir=dest.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(after)
        os.chmod(temporary, 0o644)
        module.atomic_move(temporary, str(dest))
    module.exit_json(changed=changed, pins=pins, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
