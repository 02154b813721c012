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
  - The revision is the one of a model profile; those of other profiles stay as they are in the file.
  - It is meant to run on the controller.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: Unless the branch or the model has moved meanwhile, which is what it is run for.
options:
  dest:
    description: The file to write. A folder that it lacks is made.
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
  profile:
    description: The model profile whose checkpoint is pinned.
    type: str
    required: true
  checkpoint:
    description: Its model repository on the Hub.
    type: str
    required: true
  what:
    description: What to look up. The rest of the file stays as it is.
    type: list
    elements: str
    choices: [source, checkpoint]
    default: [source, checkpoint]
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
    profile: qwen3_5_397b_nvfp4
    checkpoint: nvidia/Qwen3.5-397B-A17B-NVFP4
  delegate_to: localhost
  run_once: true

- name: Pin the checkpoint of another model, and leave the source where it is
  llmfleet.sglang.pin:
    dest: inventories/blackwell/group_vars/sglang/pins.yml
    repository: https://github.com/sgl-project/sglang.git
    profile: kimi_k2_5_int4
    checkpoint: moonshotai/Kimi-K2.5
    what: [checkpoint]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
pins:
  description: All pins of the file by variable, the revisions by model profile.
  returned: success
  type: dict
moved:
  description: Each branch, tag or revision that is another one than when it was pinned by the same name, in a sentence.
  returned: success
  type: list
  elements: str
"""

import os
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import file, lookup
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins.file import Pin, Pins

WHAT = ["source", "checkpoint"]


def looked_up(params: dict[str, Any], pins: Pins, today: str) -> Pins:
    """Look up what was asked for; the other pins stay. Raises PinError."""
    if "source" in params["what"]:
        found = lookup.source_pin(params["repository"], params["reference"], params["environment"])
        commit = file.origin(f"{found.reference} of {params['repository']}", today)
        version = file.origin("what `git describe` says of that commit", today)
        pins = pins.with_source(
            {"sglang_commit": Pin(found.commit, commit), "sglang_version": Pin(found.version, version)}
        )
    if "checkpoint" in params["what"]:
        revision = lookup.revision_pin(
            params["endpoint"],
            params["checkpoint"],
            params["revision"],
            params["token"],
            environment=params["environment"],
        )
        words = f"{params['revision']} of {params['checkpoint']} at {params['endpoint']}"
        pins = pins.with_revision(params["profile"], Pin(revision, file.origin(words, today)))
    return pins


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "repository": {"type": "str", "required": True},
            "reference": {"type": "str", "default": "main"},
            "endpoint": {"type": "str", "default": "https://huggingface.co"},
            "profile": {"type": "str", "required": True},
            "checkpoint": {"type": "str", "required": True},
            "what": {"type": "list", "elements": "str", "choices": WHAT, "default": WHAT},
            "revision": {"type": "str", "default": "main"},
            "token": {"type": "str", "default": "", "no_log": True},
            "environment": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    dest = Path(module.params["dest"])
    before = dest.read_text(encoding="utf-8") if dest.exists() else ""
    have = file.read(before)
    try:
        pins = looked_up(module.params, have, datetime.now(timezone.utc).date().isoformat())
    except lookup.PinError as error:
        module.fail_json(msg=f"Nothing was pinned: {error}")
    changed = have.values != pins.values or bool(have.single)
    after = file.render(pins) if changed else before
    if changed and not module.check_mode:
        try:
            dest.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=dest.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(after)
            os.chmod(temporary, 0o644)
        except OSError as error:
            module.fail_json(msg=f"Nothing was pinned: {dest} cannot be written: {error.strerror}.")
        module.atomic_move(temporary, str(dest))
    moved = file.moved(have, pins)
    for line in moved:
        module.warn(line)
    module.exit_json(changed=changed, pins=pins.values, moved=moved, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
