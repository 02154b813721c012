#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: choose what a host goes back to."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rollback_aim
short_description: Choose what a host goes back to, and note it on the host
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - What served before an instance's last cut-over, or what is named. A name that this host does not know is refused
    with the list of those it knows.
  - It is noted in the snapshot before anything is stopped, so that whoever comes after a power cut goes on with it.
    Nothing is started or stopped; M(llmfleet.sglang.host_snapshot) brings it back.
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
  instance:
    description: Name of the instance whose rollback it is.
    type: str
    required: true
  state_path:
    description: Folder of the host records.
    type: path
    required: true
  releases:
    description: Folder of the releases. One that was removed cannot be gone back to.
    type: path
    required: true
  to:
    description:
      - A release of the instance by its id, which means the newest deployment of it that answered, or by its id, C(@)
        and the first 12 digits of the state of an older one, as the message about an unknown name lists them.
      - Or a service by its name, which means the unit that somebody else made, if there is one of that name, and else
        ours as it last answered.
      - An empty text means what served before the last cut-over.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Choose what served before
  llmfleet.sglang.rollback_aim:
    instance: qwen
    state_path: /var/lib/llmfleet
    releases: /opt/sglang/releases
  register: aim

- name: Choose an older release
  llmfleet.sglang.rollback_aim:
    instance: qwen
    state_path: /var/lib/llmfleet
    releases: /opt/sglang/releases
    to: 0.5.23-ff542dc8f-67c489c563b187eb
"""

RETURN = r"""
needed:
  description: Whether anything is not as it shall be.
  returned: success
  type: bool
stop:
  description: The services that run and must not, or not as they do.
  returned: success
  type: list
  elements: str
untouched:
  description:
    - The services that still run as they did when the snapshot was taken.
    - After a cut-over that failed before it stopped anything, their files alone have to come back.
  returned: success
  type: list
  elements: str
served:
  description: The services that will serve.
  returned: success
  type: list
  elements: str
words:
  description: The same with what is known of them.
  returned: success
  type: list
  elements: str
services:
  description: All services that take part.
  returned: success
  type: list
  elements: str
verify:
  description: How to ask what will serve, as it was asked when it last answered. Empty for a service that is not ours.
  returned: success
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import aim
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "state_path": {"type": "path", "required": True},
            "releases": {"type": "path", "required": True},
            "to": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    places = aim.Places(
        state=Path(module.params["state_path"]),
        releases=Path(module.params["releases"]),
        instance=module.params["instance"],
    )
    try:
        found = aim.aim(places, module.params["to"])
        changed = found.needed if module.check_mode else aim.begin(places, found)
    except (OSError, UnitError) as error:
        module.fail_json(msg=f"This host cannot go back, and nothing was stopped: {error}.")
    module.exit_json(
        changed=changed,
        needed=found.needed,
        stop=found.stop,
        untouched=found.untouched,
        served=found.target.served,
        words=found.words,
        services=[one.name for one in found.target.services],
        verify=found.verify,
    )


if __name__ == "__main__":
    main()
