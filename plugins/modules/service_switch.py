#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: put a unit in force, in the place of others."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_switch
short_description: Put a unit file in force and decide which service comes back after a reboot
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Writes a prepared unit to C(/etc/systemd/system), lets systemd read it, enables it and disables the services that it
    takes the place of, at once, so that a power cut finds either the old order or the new one. Nothing is started or
    stopped.
  - A service that a package or a generator starts at boot cannot be disabled, and is refused.
  - A unit of that name which this collection did not make is refused, unless O(adopt) says otherwise. Its drop-ins
    would act on the new unit, so they are taken away; M(llmfleet.sglang.host_snapshot) has kept them.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Of the unit, of which services a reboot starts, and of whether there is an API key, which is not shown.
  idempotent:
    support: full
options:
  name:
    description: The service's name, without C(.service).
    type: str
    required: true
  src:
    description: The prepared unit file on the host.
    type: path
    required: true
  credential_src:
    description:
      - The prepared file with the API key on the host; it is put in force before the unit, if it is there.
      - Left out, the unit asks for no key.
    type: path
  credential:
    description:
      - Where the unit has systemd read the key. Needed with O(credential_src).
      - Without O(credential_src) a file that is there goes, once the unit is in force.
    type: path
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
- name: Let the new service be the one that comes back
  llmfleet.sglang.service_switch:
    name: sglang-qwen
    src: /var/lib/llmfleet/qwen/next/sglang-qwen.service
    credential: /var/lib/llmfleet/qwen/sglang.yaml # it asks for no key: one from before goes
    disable: [sglang-kimi]
"""

RETURN = r"""
enabled:
  description: Whether the service was enabled now.
  returned: success
  type: bool
disabled:
  description: The services that were disabled now.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import switching
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.switching import Key
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError


def _key(source: str | None, place: str | None) -> Key | None:
    """What becomes of the API key; None where nothing is said of it, or a check run has not prepared it."""
    prepared = File.read(Path(source)) if source else None
    return Key(Path(place), prepared) if place and (prepared or not source) else None


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "src": {"type": "path", "required": True},
            "credential_src": {"type": "path"},
            "credential": {"type": "path"},
            "disable": {"type": "list", "elements": "str", "default": []},
            "adopt": {"type": "bool", "default": False},
        },
        required_by={"credential_src": ["credential"]},
        supports_check_mode=True,
    )
    name, src = module.params["name"], Path(module.params["src"])
    against = switching.hindrance(name, module.params["adopt"], module.params["disable"])
    if against:
        module.fail_json(msg=against)
    staged = File.read(src)
    if staged is None and not module.check_mode:
        module.fail_json(msg=f"The prepared unit {src} is not there.")
    try:
        key = _key(module.params["credential_src"], module.params["credential"])
        found = switching.plan(name, staged, key, module.params["disable"])
        diff = found.diffs()
        changed = found.changes
        if changed and not module.check_mode:
            found.carry_out()
    except (OSError, UnitError) as error:
        module.fail_json(msg=f"{name}.service cannot be put in force: {error}.")
    module.exit_json(changed=changed, enabled=not found.enabled, disabled=found.disables, diff=diff)


if __name__ == "__main__":
    main()
