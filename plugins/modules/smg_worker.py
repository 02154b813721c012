#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a worker of SMG, out and back in."""

from __future__ import annotations

DOCUMENTATION = r"""
module: smg_worker
short_description: Take a worker out of SMG and put it back
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Tells SMG (Shepherd Model Gateway, C(smg) on PyPI) over its HTTP API that a worker gets no new requests, and waits
    until it is off the gateway's list; or puts it back with the priority and cost that it had, and waits until it is
    ready.
  - Requests under way go on to their end when a worker is off the list, and SMG does not tell how many there are.
    Stopping the engine waits for them (see M(llmfleet.sglang.service_stop)).
  - Puts back only what it has taken off itself, by a record of its own.
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
  url:
    description: Where the gateway listens.
    type: str
    required: true
  worker:
    description: The worker's URL, as the gateway's list has it.
    type: str
    required: true
  state:
    description: Whether it gets requests.
    type: str
    choices: [drained, ready]
    required: true
  api_key:
    description: The key of the gateway's control plane, where it has one.
    type: str
    default: ""
  worker_api_key:
    description: The key that the engine asks for, which the gateway has to know.
    type: str
    default: ""
  record:
    description: The file of what is out by our doing.
    type: path
    default: /var/lib/llmfleet/smg.json
  timeout:
    description: How many seconds to wait until the worker is off the list, or ready.
    type: float
    default: 300
"""

EXAMPLES = r"""
- name: Take the host off the gateway's list
  llmfleet.sglang.smg_worker:
    url: http://192.0.2.1:30000
    worker: http://192.0.2.11:30000
    state: drained
  delegate_to: lb1
  become: true
"""

RETURN = r"""
ours:
  description: Whether the worker is out by our doing now.
  returned: success
  type: bool
message:
  description: What came of it, in a sentence.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer import smg
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Record


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "worker": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "ready"], "required": True},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "worker_api_key": {"type": "str", "default": "", "no_log": True},
            "record": {"type": "path", "default": "/var/lib/llmfleet/smg.json"},
            "timeout": {"type": "float", "default": 300},
        },
        supports_check_mode=True,
    )
    given = module.params
    place = smg.Place(
        smg.asker(given["url"], given["api_key"]),
        Record(Path(given["record"])),
        given["worker"],
        given["worker_api_key"],
        given["timeout"],
    )
    act = smg.drain if given["state"] == "drained" else smg.ready
    try:
        done = act(place, module.check_mode)
    except (OSError, BalancerError) as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=done.changed, ours=done.ours, message=done.message)


if __name__ == "__main__":
    main()
