#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what was measured and tried on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: benchmark_info
short_description: Tell what was measured and tried on a host
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Reads C(benchmarks.jsonl) and C(trials.jsonl) of an instance's host record. A host without them has none.
  - Changes nothing.
options:
  instance:
    description: Name of the instance.
    type: str
    required: true
  state_folder:
    description: Folder of the host records.
    type: path
    default: /var/lib/llmfleet
  service:
    description: Service of the instance. With it, the module says what serves now.
    type: str
    default: ""
  environment:
    description:
      - Variables that the process is compared with, with O(service).
      - Those that it has are returned with its own values, whoever set them; what may be a secret is hidden.
    type: dict
    default: {}
  root:
    description: Folder above C(releases). Needed with O(service).
    type: path
    default: /opt/sglang
  topology:
    description: Whether to ask the cards for the host's topology too, as benchmarks and trials name it.
    type: bool
    default: false
  visible_gpus:
    description: The cards of the instance, as C(nvidia-smi) counts them. All of the host's, if empty.
    type: list
    elements: int
    default: []
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Nothing is changed.
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Read what was measured
  llmfleet.sglang.benchmark_info:
    instance: qwen
  become: true
  register: measured
"""

RETURN = r"""
benchmarks:
  description: The newest fifty benchmarks, the oldest of them first, as C(docs/benchmark.md) describes them.
  type: list
  elements: dict
  returned: success
trials:
  description: The trials, the oldest first, as C(docs/trial.md) describes them.
  type: list
  elements: dict
  returned: success
topology:
  description: What cards there are and how they are connected; empty if not asked.
  type: str
  returned: success
serving:
  description:
    - What the running instance is, with C(state), C(release), C(commit), C(version), C(patch_sets), C(arguments),
      C(environment) and C(tensor_parallel), read from its process and its release; C(made_from), with what its release
      was built from; and for O(environment), C(asked) with those that it has, and C(compared) with V(as asked),
      V(another value) or V(absent) for each; C(unit_changed), whether its unit is another one than it was started from.
    - With C(problem) alone where nothing of ours serves.
  type: dict
  returned: with O(service)
state:
  description: The state that was last recorded as serving; empty where there is none.
  type: str
  returned: success
problems:
  description: Lines that cannot be read, a sentence each.
  type: list
  elements: str
  returned: success
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import lines, measure, record, running
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import look
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import run
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import SystemdError
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import record as trial_record

MOST = 50


def serving(service: str, root: Path, environment: Mapping[str, Any]) -> dict[str, Any]:
    """What serves, or why nothing of ours does."""
    try:
        return running.described(running.read(run, service, root), environment)
    except (running.NotServing, SystemdError, ValueError, OSError) as error:
        return {"problem": str(error)}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "state_folder": {"type": "path", "default": "/var/lib/llmfleet"},
            "service": {"type": "str", "default": ""},
            "environment": {"type": "dict", "default": {}},
            "root": {"type": "path", "default": "/opt/sglang"},
            "topology": {"type": "bool", "default": False},
            "visible_gpus": {"type": "list", "elements": "int", "default": []},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["state_folder"]) / module.params["instance"]
    try:
        benchmarks, problems = record.read(folder / record.NAME)
        trials, more = lines.read(folder / trial_record.NAME)
    except OSError as error:
        module.fail_json(msg=f"The record of {module.params['instance']} cannot be read: {error}.")
    topology = ""
    if module.params["topology"]:
        topology = measure.topology_of(look(run, measure.NVIDIA_SMI_SECONDS), tuple(module.params["visible_gpus"]))
    found: dict[str, Any] = {}
    if module.params["service"]:
        found["serving"] = serving(module.params["service"], Path(module.params["root"]), module.params["environment"])
    module.exit_json(
        changed=False,
        **found,
        benchmarks=[one.as_dict() for one in benchmarks[-MOST:]],
        trials=trials,
        topology=topology,
        state=str(running.host_record(folder / "record.json").get("state", "")),
        problems=[*problems, *more],
    )


if __name__ == "__main__":
    main()
