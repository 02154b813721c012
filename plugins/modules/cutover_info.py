#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a host knows of the last cut-over of an instance."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cutover_info
short_description: Tell what a host knows of the last cut-over of an instance
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Reads the host record alone, in one call. What served before, when each step of the cut-over happened, what it
    changed, which patches the release has, and the newest benchmarks and trials.
  - Values of arguments and environment variables that may be secrets do not leave the host.
  - M(llmfleet.sglang.fleet_report) makes a page of it. What cannot be read is named, and is no failure.
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
    description: Name of the instance.
    type: str
    required: true
  state_folder:
    description: Folder of the host record.
    type: path
    default: /var/lib/llmfleet
  releases:
    description: The folder of the releases.
    type: path
    default: /opt/sglang/releases
  run:
    description: Which run asks. The action plugin of this module says it on the controller, and nobody else should.
    type: str
    default: ""
  asked_at:
    description: When it asks, in seconds since 1970 by the controller's clock. The action plugin says it too.
    type: float
"""

EXAMPLES = r"""
- name: Read what the host noted of its cut-over
  llmfleet.sglang.cutover_info:
    instance: qwen
  become: true
  register: sglang_noted
"""

RETURN = r"""
mine:
  description: Whether the last cut-over is one of this run.
  returned: success
  type: bool
clock_ahead:
  description: By how many seconds the host's clock is ahead of the controller's; as exact as the call is quick.
  returned: success
  type: float
times:
  description: When each step happened, as C(times.json) of the host record holds it. Empty where nothing is known.
  returned: success
  type: dict
drained:
  description: The mark that the host was taken out of the load balancer, by whichever run; empty where it is not there.
  returned: success
  type: str
phase:
  description: V(cutover), V(serving) or V(restored), as M(llmfleet.sglang.host_snapshot) notes it.
  returned: success
  type: str
served:
  description: The services that ran before.
  returned: success
  type: list
  elements: str
service:
  description:
    - The service that was to take their place. RV(release), RV(model), RV(checkpoint) and RV(commit) are its own.
  returned: success
  type: str
release:
  description: Its release.
  returned: success
  type: str
commit:
  description: The release's commit.
  returned: success
  type: str
model:
  description: The name that it serves its model by.
  returned: success
  type: str
checkpoint:
  description: Repository and revision.
  returned: success
  type: str
patches:
  description: The edits of the release, each with C(id), C(state), C(file) and the file's C(digest).
  returned: success
  type: list
  elements: dict
changes:
  description: What the cut-over changed, or was to change, each with C(what), C(before) and C(after).
  returned: success
  type: list
  elements: dict
benchmarks:
  description: The newest lines of C(benchmarks.jsonl) with the baselines that they name, the oldest first.
  returned: success
  type: list
  elements: dict
problems:
  description: What could not be read.
  returned: success
  type: list
  elements: str
"""

import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.aim import Places
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import noted


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "state_folder": {"type": "path", "default": "/var/lib/llmfleet"},
            "releases": {"type": "path", "default": "/opt/sglang/releases"},
            "run": {"type": "str", "default": ""},
            "asked_at": {"type": "float"},
        },
        supports_check_mode=True,
    )
    given = module.params
    now = time.time()
    places = Places(Path(given["state_folder"]), Path(given["releases"]), given["instance"])
    found = noted.look(places, given["run"], now)
    ahead = round(now - given["asked_at"], 1) if given["asked_at"] else 0.0
    module.exit_json(changed=False, clock_ahead=ahead, **found)


if __name__ == "__main__":
    main()
