#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a server of HAProxy, out and back in."""

from __future__ import annotations

DOCUMENTATION = r"""
module: haproxy_server
short_description: Take a server out of HAProxy and put it back
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Tells HAProxy over its runtime API that a server gets no new requests, and waits until those under way have ended;
    or that it gets requests again, and waits until HAProxy has seen that it is up.
  - Puts back only what it has drained itself, by a record of its own. A server that somebody else has drained or put
    into maintenance stays as it is, in both directions.
  - Runs where the socket is.
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
  socket:
    description: The admin socket (C(stats socket … level admin) in HAProxy's configuration), a path or C(ADDRESS:PORT).
    type: str
    default: /run/haproxy/admin.sock
  backend:
    description: The backend.
    type: str
    required: true
  server:
    description: The server of that backend.
    type: str
    required: true
  state:
    description: Whether it gets requests.
    type: str
    choices: [drained, ready]
    required: true
  record:
    description: The file of what is out by our doing.
    type: path
    default: /var/lib/llmfleet/haproxy.json
  timeout:
    description: How many seconds to wait for the end of the requests, or for the server to be up.
    type: float
    default: 300
"""

EXAMPLES = r"""
- name: Take the host out of the load balancer
  llmfleet.sglang.haproxy_server:
    backend: sglang
    server: "{{ inventory_hostname }}"
    state: drained
  delegate_to: lb1
  become: true

- name: Put it back, if it was us who took it out
  llmfleet.sglang.haproxy_server:
    backend: sglang
    server: "{{ inventory_hostname }}"
    state: ready
  delegate_to: lb1
  become: true
"""

RETURN = r"""
ours:
  description: Whether the server is out by our doing now.
  returned: success
  type: bool
message:
  description: What came of it, in a sentence.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer import haproxy
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Record


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "socket": {"type": "str", "default": "/run/haproxy/admin.sock"},
            "backend": {"type": "str", "required": True},
            "server": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "ready"], "required": True},
            "record": {"type": "path", "default": "/var/lib/llmfleet/haproxy.json"},
            "timeout": {"type": "float", "default": 300},
        },
        supports_check_mode=True,
    )
    given = module.params
    place = haproxy.Place(
        haproxy.asker(given["socket"]),
        Record(Path(given["record"])),
        given["backend"],
        given["server"],
        given["timeout"],
    )
    act = haproxy.drain if given["state"] == "drained" else haproxy.ready
    try:
        done = act(place, module.check_mode)
    except (OSError, BalancerError) as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=done.changed, ours=done.ours, message=done.message)


if __name__ == "__main__":
    main()
