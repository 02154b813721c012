#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: preflight
short_description: Look whether a host can take a deployment
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Looks at GPUs, their processes and the ways between them, memory, free disk, the port and who holds it, commands,
    Python, driver, operating system and systemd, and says what keeps this deployment from going on.
  - Everything is found in one call and told at once, as findings with a stable identifier, a severity, what was seen,
    and the next step.
  - It changes nothing, and does not fail by what it finds. What to do about findings is the caller's choice.
options:
  service:
    description: Systemd service of the instance that is deployed, with or without V(.service).
    type: str
    required: true
  replaces:
    description: Services whose place the instance takes. They may hold the port and the GPUs.
    type: list
    elements: str
    default: []
  adopt:
    description: Whether a unit of the instance's own name that this collection did not make may be taken over.
    type: bool
    default: false
  listen:
    description: Where the instance is to listen.
    type: dict
    required: true
    suboptions:
      host:
        description: Address.
        type: str
        required: true
      port:
        description: TCP port.
        type: int
        required: true
  gpus:
    description: The cards that the deployment needs.
    type: dict
    default: {}
    suboptions:
      count:
        description: How many. With V(0), no cards are looked at.
        type: int
        default: 0
      compute_capability:
        description: Their compute capability, such as V(12.0). An empty text takes any.
        type: str
        default: ""
      memory_mib:
        description: Least memory of each, in MiB.
        type: int
        default: 0
      visible:
        description: The cards that the instance may use, by nvidia-smi's index. Empty means all; others are not judged.
        type: list
        elements: int
        default: []
  disk:
    description: Bytes that have to be free before anything is done.
    type: dict
    default: {}
    suboptions:
      root_bytes:
        description: On the file system of O(paths.root).
        type: int
        default: 0
      models_bytes:
        description: On the file system of O(paths.models), less what is there of the checkpoint already.
        type: int
        default: 0
  paths:
    description: Folders that the deployment uses. They need not exist yet.
    type: dict
    required: true
    suboptions:
      root:
        description: Releases.
        type: path
        required: true
      models:
        description: Checkpoints.
        type: path
        required: true
      state:
        description: The host's record.
        type: path
        required: true
      cache:
        description: Caches.
        type: path
        required: true
  checkpoint:
    description: The checkpoint that is wanted. What is there of it does not count as missing disk space.
    type: dict
    default: {}
    suboptions:
      repository:
        description: Repository on the Hub.
        type: str
        default: ""
      revision:
        description: Pinned revision.
        type: str
        default: ""
      path:
        description: Where it is served from.
        type: str
        default: ""
  python:
    description: Python that the release is built with.
    type: str
    default: /usr/bin/python3
  version:
    description: Version of SGLang. It says which Python is new enough.
    type: str
    required: true
  commit:
    description: Commit that is to be built. If a release of it is there, too little disk for one only warns.
    type: str
    default: ""
  commands:
    description: Commands that have to be there.
    type: list
    elements: str
    default: [git, rsync, systemctl]
  launch:
    description:
      - How the engine is to be started, as the filter P(llmfleet.sglang.preflight_launch#filter) takes it out of a
        deployment. With it, memory, parallel sizes, driver and the ways between the cards are judged too.
    type: dict
    default: {}
    suboptions:
      arguments:
        description: Launch arguments by canonical name, those that bear on the host.
        type: dict
        default: {}
      environment:
        description: Environment variables, those that bear on the host.
        type: dict
        default: {}
      patch_sets:
        description: Names of the patch sets.
        type: list
        elements: str
        default: []
      multimem:
        description: Whether a patch set gives world sizes to multimem kernels.
        type: bool
        default: false
  accept:
    description: Identifiers of findings that are to block nothing.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that a single command, such as C(nvidia-smi), may take.
    type: int
    default: 20
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
    details: Nothing is changed in either mode.
  diff_mode:
    support: none
    details: Nothing is changed, so there is no difference to show.
  idempotent:
    support: full
    details: Nothing is changed.
"""

EXAMPLES = r"""
- name: Look at the host
  llmfleet.sglang.preflight:
    service: sglang-qwen
    replaces: [sglang-kimi]
    listen: {host: 192.0.2.11, port: 30000}
    gpus: {count: 8, compute_capability: "12.0", memory_mib: 97887}
    disk: {root_bytes: 30000000000, models_bytes: 223000000000}
    paths: {root: /opt/sglang, models: /models, state: /var/lib/llmfleet, cache: /var/cache/llmfleet}
    version: 0.5.23
  become: true
  register: look

- name: Stop here if something blocks
  ansible.builtin.assert:
    that: look.blocking | length == 0
    fail_msg: "{{ look.report }}"
"""

RETURN = r"""
findings:
  description: Everything found, blocking findings first.
  type: list
  elements: dict
  returned: always
  contains:
    id:
      description: Stable identifier.
      type: str
      sample: gpu_count
    severity:
      description: One of V(blocks), V(warns), V(informs).
      type: str
    message:
      description: What is the matter.
      type: str
    evidence:
      description: What was seen.
      type: str
    advice:
      description: The next step.
      type: str
    accepted:
      description: Whether O(accept) names it.
      type: bool
blocking:
  description: Identifiers of the findings that block and are not accepted.
  type: list
  elements: str
  returned: always
report:
  description: These findings as one readable text. Empty if there are none.
  type: str
  returned: always
facts:
  description: What was seen of the host. C(facts.gpus) is as M(llmfleet.sglang.gpu_info) returns it.
  type: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.facts import collect
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import WARNS, accept, blocking, report
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import DEFAULT_COMMANDS, Launch, Wanted


def _options(**fields: Any) -> dict[str, Any]:
    return {
        "type": "dict",
        "default": {},
        "options": {
            name: {"type": "int" if default == 0 else "str", "default": default} for name, default in fields.items()
        },
        "apply_defaults": True,
    }


ARGUMENTS: dict[str, Any] = {
    "service": {"type": "str", "required": True},
    "replaces": {"type": "list", "elements": "str", "default": []},
    "adopt": {"type": "bool", "default": False},
    "listen": {
        "type": "dict",
        "required": True,
        "options": {"host": {"type": "str", "required": True}, "port": {"type": "int", "required": True}},
    },
    "gpus": {
        "type": "dict",
        "default": {},
        "apply_defaults": True,
        "options": {
            "count": {"type": "int", "default": 0},
            "compute_capability": {"type": "str", "default": ""},
            "memory_mib": {"type": "int", "default": 0},
            "visible": {"type": "list", "elements": "int", "default": []},
        },
    },
    "disk": _options(root_bytes=0, models_bytes=0),
    "paths": {
        "type": "dict",
        "required": True,
        "options": {name: {"type": "path", "required": True} for name in ("root", "models", "state", "cache")},
    },
    "checkpoint": _options(repository="", revision="", path=""),
    "python": {"type": "str", "default": "/usr/bin/python3"},
    "version": {"type": "str", "required": True},
    "commit": {"type": "str", "default": ""},
    "commands": {"type": "list", "elements": "str", "default": list(DEFAULT_COMMANDS)},
    "launch": {
        "type": "dict",
        "default": {},
        "apply_defaults": True,
        "options": {
            "arguments": {"type": "dict", "default": {}},
            "environment": {"type": "dict", "default": {}},
            "patch_sets": {"type": "list", "elements": "str", "default": []},
            "multimem": {"type": "bool", "default": False},
        },
    },
    "accept": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 20},
}


def wanted_of(given: dict[str, Any]) -> Wanted:
    """The module's arguments as the logic takes them."""
    return Wanted(
        service=given["service"],
        replaces=tuple(given["replaces"]),
        adopt=given["adopt"],
        address=given["listen"]["host"],
        port=given["listen"]["port"],
        paths=given["paths"],
        python=given["python"],
        sglang_version=given["version"],
        gpu_count=given["gpus"]["count"],
        compute_capability=given["gpus"]["compute_capability"],
        gpu_memory_mib=given["gpus"]["memory_mib"],
        visible_gpus=tuple(given["gpus"]["visible"]),
        root_bytes=given["disk"]["root_bytes"],
        models_bytes=given["disk"]["models_bytes"],
        commit=given["commit"],
        checkpoint=given["checkpoint"],
        commands=tuple(given["commands"]),
        launch=Launch(**{**given["launch"], "patch_sets": tuple(given["launch"]["patch_sets"])}),
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        wanted = wanted_of(module.params)
        facts = collect(wanted.question(module.params["timeout"]))
        findings = accept(check(facts, wanted), module.params["accept"])
    except ValueError as error:
        module.fail_json(msg=str(error))
    for finding in findings:
        if finding.severity == WARNS or finding.accepted:
            module.warn(finding.describe())
    module.exit_json(
        changed=False,
        findings=[finding.as_dict() for finding in findings],
        blocking=sorted({finding.id for finding in blocking(findings)}),
        report=report(findings),
        facts=facts.as_dict(),
    )


if __name__ == "__main__":
    main()
