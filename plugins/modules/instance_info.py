#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the SGLang instances of a host, and what they do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_info
short_description: Tell which SGLang instances a host has, and what they do
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Looks in one call at every instance that this collection recorded on the host, and at every other SGLang server that
    runs there. Compares what runs with what was recorded, and each release with the record of its build. Asks an engine
    for its readiness and its metrics, never for an answer.
  - Changes nothing. Has to run as root, which alone reads other processes' environments.
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
  state_folder:
    description: Folder of the host record.
    type: path
    default: /var/lib/llmfleet
  root:
    description: Folder that holds the releases.
    type: path
    default: /opt/sglang
  compare:
    description: Whether to compare each release with the record of its build, which takes about a second each.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Look at the instances
  llmfleet.sglang.instance_info:
  become: true
  register: sglang_status

- name: Print them
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | llmfleet.sglang.status_table(hostvars) }}"
  run_once: true
"""

RETURN = r"""
instances:
  description: The instances, ours first.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance, or the unit or process of a server that is not ours.
      type: str
    service:
      description: The unit's name without C(.service); empty for a server outside of any service.
      type: str
    ours:
      description: Whether this collection deployed it.
      type: bool
    active:
      description: The unit's state in systemd's words.
      type: str
    enabled:
      description: Whether it comes back after a reboot.
      type: bool
    main_pid:
      description: The main process; 0 when it does not run.
      type: int
    since:
      description: When the main process was started, in seconds since 1970; null when it does not run.
      type: int
    model:
      description: The served model name.
      type: str
    release:
      description: The release's identifier.
      type: str
    commit:
      description: The commit that the release was built from.
      type: str
    checkpoint:
      description: Repository and revision.
      type: str
    patched:
      description: Each structural edit of the release with its state.
      type: list
      elements: dict
    as_recorded:
      description: Whether the main process runs the state that was recorded; null where it does not run or none was.
      type: bool
    ready:
      description: Whether the engine calls itself ready; null when it does not answer.
      type: bool
    running:
      description: Requests that are worked on, over all ranks; null without metrics.
      type: int
    queued:
      description: Requests that wait; null without metrics.
      type: int
    tokens_per_second:
      description: Generated tokens per second, as the engine's own gauge has it; null without metrics.
      type: float
    drift:
      description: What of the release is not as it was built (see M(llmfleet.sglang.release_info)).
      type: list
      elements: dict
    verdict:
      description: How the last cut-over ended.
      type: str
    problems:
      description: What an operator has to know, a sentence each.
      type: list
      elements: str
gpus:
  description:
    - The cards together, with C(count), C(memory_used) and C(memory_total) in MiB, C(power_draw) and C(power_limit)
      in W, and C(problem), which says why nvidia-smi could not be asked.
  returned: success
  type: dict
lock:
  description:
    - Who works on the host, with C(owner), C(reason), C(run), C(held_seconds), C(left_seconds) and C(text), which says
      it in a sentence; null when nobody does. Of a lock that cannot be read only C(text).
  returned: success
  type: dict
drained:
  description:
    - Whether an instance of the host is marked as drained by a run of this collection, which has begun to take it out
      of the load balancer and not put it back.
  returned: success
  type: bool
drained_instances:
  description: Which instances are marked so.
  returned: success
  type: list
  elements: str
"""

import time
from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._status import instances, work


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_folder": {"type": "path", "default": "/var/lib/llmfleet"},
            "root": {"type": "path", "default": "/opt/sglang"},
            "compare": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    how = instances.Look(
        state=Path(module.params["state_folder"]),
        root=Path(module.params["root"]),
        compare=module.params["compare"],
    )
    found = [asdict(one) for one in instances.look(how)]
    module.exit_json(changed=False, instances=found, gpus=instances.cards(), **work.under_way(how.state, time.time()))


if __name__ == "__main__":
    main()
