#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: take a unit of ours away, and give back what it took the name of."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_remove
short_description: Remove a unit that this collection made, and give back the foreign one that it took the name of
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Disables and removes a stopped service of ours. A unit that this collection did not make is left alone.
  - A foreign unit which was adopted comes back byte for byte with its drop-ins, enabled if it was, but not started.
  - The services that it took the place of stay stopped and disabled, and are named with the command that has one serve.
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
  name:
    description: The service's name, without C(.service).
    type: str
    required: true
  adopted:
    description: The file in which M(llmfleet.sglang.host_snapshot) keeps an adopted unit.
    type: path
    required: true
  snapshot:
    description: The file in which M(llmfleet.sglang.host_snapshot) keeps what served before, to name what is left.
    type: path
  others:
    description: Other services that may serve in its place. While one of them does, nothing is named.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Remove the unit
  llmfleet.sglang.service_remove:
    name: sglang-kimi
    adopted: /var/lib/llmfleet/kimi/adopted.json
    snapshot: /var/lib/llmfleet/kimi/snapshot.json
"""

RETURN = r"""
given_back:
  description: Whether a foreign unit of that name was given back.
  returned: success
  type: bool
left:
  description: The services that it took the place of and that neither run nor come back after a reboot.
  returned: success
  type: list
  elements: str
next:
  description: What an operator may want to do next, a sentence with its command each.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      sglang-kimi.service, which sglang-qwen.service took the place of, stays stopped and disabled. To have it serve
      again: systemctl enable --now sglang-kimi
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import links, removal, snapshot, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "adopted": {"type": "path", "required": True},
            "snapshot": {"type": "path"},
            "others": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    name, adopted, taken = module.params["name"], Path(module.params["adopted"]), module.params["snapshot"]
    try:
        before, foreign = UnitFiles.read(name), snapshot.load(adopted)
        left = removal.left(snapshot.load(Path(taken)) if taken else None, name, module.params["others"])
        changed = before.ours
        if changed and not module.check_mode:
            if units.active(name):
                raise UnitError("it still runs")
            links.switch({}, [name])
            (foreign.services[0].files if foreign else UnitFiles(name)).write()
            units.systemctl("daemon-reload")
            if foreign and foreign.services[0].enabled:
                links.switch({name: foreign.services[0].links}, [])
    except (OSError, UnitError) as error:
        module.fail_json(msg=f"{name}.service cannot be removed: {error}.")
    given_back = changed and foreign is not None
    said = removal.words(name, foreign.services[0] if foreign and changed else None, left)
    module.exit_json(changed=changed, given_back=given_back, left=[one.name for one in left], next=said)


if __name__ == "__main__":
    main()
