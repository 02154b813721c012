#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a host served before a cut-over, and bringing it back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_snapshot
short_description: Keep what a host serves before a cut-over, and bring it back
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Keeps unit files and drop-ins byte for byte, and which services were enabled and active, in one file on the host.
  - While a cut-over is under way, or died under way, the snapshot stays as it was taken.
attributes:
  check_mode:
    support: full
    description: Runs in check mode and says what it would do, without doing it.
  diff_mode:
    support: none
    description: Returns what changes as a diff.
  idempotent:
    support: full
    description: A second run changes nothing.
options:
  path:
    description: The snapshot's file.
    type: path
    required: true
  instance:
    description: Name of the instance that is cut over to.
    type: str
    required: true
  services:
    description: The services that take part, without C(.service). Needed for O(state=taken).
    type: list
    elements: str
    default: []
  state:
    description:
      - V(taken) keeps what the services are now.
      - V(concluded) notes that the new service answers.
      - V(switched_back) lets the services come back after a reboot as before.
      - V(restored) puts the files back and starts what ran before. Whatever took its place has to be stopped by then.
    type: str
    choices: [taken, concluded, switched_back, restored]
    required: true
"""

EXAMPLES = r"""
- name: Keep what serves now
  llmfleet.sglang.host_snapshot:
    path: /var/lib/llmfleet/qwen/snapshot.json
    instance: qwen
    services: [sglang-kimi, sglang-qwen]
    state: taken
"""

RETURN = r"""
served:
  description: The services that ran when the snapshot was taken.
  returned: success
  type: list
  elements: str
taken_at:
  description: When it was taken, in UTC.
  returned: success
  type: str
phase:
  description: V(cutover), V(serving) or V(restored); empty when there is no snapshot.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError


def apply(state: str, path: Path, params: dict[str, object], check: bool) -> tuple[bool, snapshot.Snapshot | None]:
    """Do what `state` asks for; return whether anything changed (or would), and the snapshot."""
    found = snapshot.load(path)
    instance, services = str(params["instance"]), [str(name) for name in params["services"]]  # type: ignore[attr-defined]
    if state == "taken":
        new = found is None or found.phase != "cutover"
        if check:
            return new, snapshot.take(instance, services) if new else found
        return new, snapshot.keep(path, instance, services)
    if found is None:
        if state == "concluded":
            return False, None
        raise UnitError(f"there is no snapshot {path} to go back to")
    if check:
        return found.phase != {"concluded": "serving"}.get(state, "restored"), found
    if state == "concluded":
        return snapshot.mark(path, "serving"), found
    if state == "switched_back":
        return snapshot.switch_back(found), found
    snapshot.put_back(found)
    snapshot.switch_back(found)
    snapshot.start_again(found)
    snapshot.mark(path, "restored")
    return True, found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "instance": {"type": "str", "required": True},
            "services": {"type": "list", "elements": "str", "default": []},
            "state": {
                "type": "str",
                "choices": ["taken", "concluded", "switched_back", "restored"],
                "required": True,
            },
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    try:
        changed, found = apply(module.params["state"], path, module.params, module.check_mode)
    except (OSError, UnitError) as error:
        module.fail_json(msg=f"The snapshot cannot be {module.params['state']}: {error}.")
    after = found if module.check_mode else snapshot.load(path)
    module.exit_json(
        changed=changed,
        served=found.served if found else [],
        taken_at=found.taken_at if found else "",
        phase=after.phase if after else "",
    )


if __name__ == "__main__":
    main()
