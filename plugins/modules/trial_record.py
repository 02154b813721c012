#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: record what a trial came to."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: trial_record
short_description: Record what the trial of a change came to
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Adds one line to C(trials.jsonl) in the host record of the instance, with the verdict, both figures, and for each
    part of the change three facts apart, patched, active and faster.
  - A recorded win is what lets a fleet be deployed with the gate of FlashInfer's all-reduce fusion open.
options:
  instance:
    description: Name of the instance.
    type: str
    required: true
  root:
    description: Folder above C(releases).
    type: path
    required: true
  state_folder:
    description: Folder of the host records.
    type: path
    required: true
  change:
    description: What was tried, with C(patch_sets), C(arguments) and C(environment).
    type: dict
    required: true
  baseline:
    description: The C(id) of the baseline's benchmark.
    type: str
    required: true
  candidate:
    description: The C(id) of the change's benchmark. Empty where it was not measured.
    type: str
    default: ""
  release:
    description: The release that the change was built into.
    type: str
    required: true
  cause:
    description: Why the host went back. Empty if it did not.
    type: str
    default: ""
  measured:
    description: Whether the change answered rightly, so that measuring it was begun.
    type: bool
    default: false
  kept:
    description: Whether the host serves the change now.
    type: bool
    default: false
  restored:
    description: Whether the host serves the baseline again.
    type: bool
    default: false
  fails_on:
    description: The verdicts after which the host was to go back. All but V(better), if left out.
    type: list
    elements: str
  gate:
    description: Whether the change opened the gate of the fusion.
    type: bool
    default: false
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: A line is added to a record, which is returned.
  idempotent:
    support: none
    details: Each trial adds a line.
"""

EXAMPLES = r"""
- name: Record what the trial came to
  llmfleet.sglang.trial_record:
    instance: qwen
    root: /opt/sglang
    state_folder: /var/lib/llmfleet
    change: {arguments: {chunked-prefill-size: 8192}}
    baseline: 20261130T103000Z-3f9c01
    candidate: 20261130T104000Z-77aa02
    release: 0.5.23-ff542dc8f-67c489c563b187eb
    measured: true
    kept: true
  become: true
"""

RETURN = r"""
trial:
  description: The line, as C(docs/trial.md) describes it.
  type: dict
  returned: success
summary:
  description: The same for a reader.
  type: str
  returned: success
"""

from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import lines, running
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import record as benchmarks
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import conclude, record


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "root": {"type": "path", "required": True},
            "state_folder": {"type": "path", "required": True},
            "change": {"type": "dict", "required": True},
            "baseline": {"type": "str", "required": True},
            "candidate": {"type": "str", "default": ""},
            "release": {"type": "str", "required": True},
            "cause": {"type": "str", "default": ""},
            "measured": {"type": "bool", "default": False},
            "kept": {"type": "bool", "default": False},
            "restored": {"type": "bool", "default": False},
            "fails_on": {"type": "list", "elements": "str"},
            "gate": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    folder = Path(params["state_folder"]) / params["instance"]
    try:
        kept, _problems = benchmarks.read(folder / benchmarks.NAME)
        known = {one.id: one for one in kept}
        missing = [one for one in (params["baseline"], params["candidate"]) if one and one not in known]
        if missing:
            module.fail_json(msg=f"There is no benchmark {' nor '.join(missing)} in {folder / benchmarks.NAME}.")
        built = read_record(Path(params["root"]) / "releases" / params["release"]) or {}
        back_on = conclude.fails_on(conclude.BACK) if params["fails_on"] is None else params["fails_on"]
        outcome = conclude.Outcome(
            **{name: params[name] for name in ("cause", "measured", "kept", "restored", "release", "gate")},
            fails_on=back_on,
        )
        trial = conclude.conclude(
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            params["change"],
            known[params["baseline"]],
            known.get(params["candidate"]),
            running.patches_of(built),
            outcome,
        )
        if not module.check_mode:
            lines.append(folder / record.NAME, trial)
    except OSError as error:
        module.fail_json(msg=f"The trial cannot be recorded: {error}.")
    module.exit_json(changed=True, trial=trial, summary=conclude.summary(trial))


if __name__ == "__main__":
    main()
