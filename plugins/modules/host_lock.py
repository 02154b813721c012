#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: one operator at a time on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_lock
short_description: Let one run at a time work on a host
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Takes, renews or gives back a lock on the host, which names its owner, the reason and when it expires. Whoever comes
    second is told who works there, and since when.
  - Every task of one C(ansible-playbook) process is the same owner. A lock whose process has died is taken over by the
    next run from the same controller, one that has expired by any run, and that is said.
  - A run that reaches one machine by two addresses (an IPv4 address written in two ways, a name and an address) is
    refused at the second, since it would work there twice at once.
  - Times are the host's own, so that a controller whose clock is wrong does no harm.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: Renewing a lock moves its expiry.
options:
  path:
    description: The lock's file.
    type: path
    default: /var/lib/llmfleet/lock.json
  state:
    description: Whether to hold the lock (anew or renewed), or to give it back. Another run's lock is never removed.
    type: str
    choices: [held, released]
    default: held
  reason:
    description: What is going on, as the other operator will read it.
    type: str
    default: no reason was given
  renew:
    description:
      - Whether only to keep a lock that this run has taken. It fails where the lock is not this run's any more, for
        somebody else may have worked on the host then. In check mode, which takes none, it is as if not given.
    type: bool
    default: false
  seconds:
    description: How long the lock is valid from now on.
    type: int
    default: 21600
  broken:
    description: A run that is known to be dead; its lock is taken over. The refusal names it.
    type: str
    default: ""
  owner:
    description: Who asks. The action plugin of this module says it on the controller, and nobody else should.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Be the only one to work on this host
  llmfleet.sglang.host_lock:
    reason: deploys sglang-qwen
  become: true

- name: Let others work on it again
  llmfleet.sglang.host_lock:
    state: released
  become: true
"""

RETURN = r"""
held:
  description: Whether the lock is this run's now.
  returned: success
  type: bool
lock:
  description:
    - The lock, with C(run), C(owner), C(reason), C(taken_at), C(expires_at) and C(address), how the inventory reaches
      the host; null when there is none.
  returned: always
  type: dict
took_over:
  description: The lock of another run that was taken over, if any.
  returned: always
  type: dict
why:
  description: Why it could be taken over; or why it was refused, where that is not that somebody else holds it.
  returned: always
  type: str
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock


def apply(params: dict[str, Any], now: float, check: bool) -> dict[str, Any]:
    """Hold or release the lock; return the module's result. Raises LockError and OSError."""
    try:
        path, mine = Path(params["path"]), lock.Lock(reason=params["reason"], **params["owner"])
    except TypeError:
        raise lock.LockError("the owner is not known, which this module's action plugin says") from None
    if params["state"] == "released":
        changed = lock.release(path, mine.run, address=mine.address, check=check)
        left = lock.read(path) if not changed else None
        return {"changed": changed, "held": False, "lock": asdict(left) if left else None, "took_over": None, "why": ""}
    asked = {"broken": params["broken"], "renew": params["renew"], "check": check}
    outcome = lock.take(path, mine, params["seconds"], now, **asked)
    result = {
        "changed": outcome.held,
        "held": outcome.held,
        "lock": asdict(outcome.lock) if outcome.lock else None,
        "took_over": asdict(outcome.other) if outcome.held and outcome.other else None,
        "why": outcome.why,
    }
    return result if outcome.held else {**result, "failed": True, "msg": lock.refused(outcome, now)}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/var/lib/llmfleet/lock.json"},
            "state": {"type": "str", "choices": ["held", "released"], "default": "held"},
            "reason": {"type": "str", "default": "no reason was given"},
            "renew": {"type": "bool", "default": False},
            "seconds": {"type": "int", "default": 21600},
            "broken": {"type": "str", "default": ""},
            "owner": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    released = module.params["state"] == "released"
    try:
        result = apply(module.params, time.time(), module.check_mode)
    except (OSError, lock.LockError) as error:
        what = "The lock of this host cannot be given back" if released else "This host cannot be locked"
        module.fail_json(msg=f"{what}: {error}.")
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
