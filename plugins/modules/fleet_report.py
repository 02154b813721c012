#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: fleet_report
short_description: Write what became of a fleet as a page and as JSON, on the controller
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Writes one HTML page that needs no network, no script and no other file, and the same as JSON, into a folder on the
    controller. Both are written a second time as C(latest.html) and C(latest.json).
  - It reads what each host of the play knows. The facts C(sglang_deployment), C(sglang_prepared) and C(sglang_verdict),
    C(sglang_preflight_result), and what M(llmfleet.sglang.cutover_info) registered as C(sglang_noted).
  - It runs on the controller alone, as an action plugin, connects to no host, and belongs into a task with C(run_once).
  - Secrets that the hosts' variables hold, passwords in URLs, and values whose names speak of a secret are left out.
  - A report that cannot be written is a warning and no failure, for what it tells of has happened all the same.
options:
  folder:
    description:
      - The folder. A relative one is meant from where the playbook was started.
      - It must not lie in an inventory's folder, where Ansible would read the reports as inventories.
      - An empty text writes nothing.
    type: str
    default: reports
  kind:
    description: What is reported of. Without it, what the hosts' facts say.
    type: str
    choices: [deployment, trial, benchmark, rollback, stop, start]
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
    details: Nothing is written, and what would be is said.
  diff_mode:
    support: none
    details: Each run has a report of its own.
  idempotent:
    support: none
    details: Each run has a report of its own.
"""

EXAMPLES = r"""
- name: Read what the host noted of its cut-over
  llmfleet.sglang.cutover_info:
    instance: qwen
  become: true
  register: sglang_noted

- name: Write the report on the controller
  llmfleet.sglang.fleet_report:
    folder: /srv/reports
  run_once: true
  changed_when: false # it changes no host
  register: sglang_reported
"""

RETURN = r"""
paths:
  description: The page and the JSON that were written, or would be in check mode. Empty if nothing was.
  returned: always
  type: list
  elements: str
words:
  description: Where the report is, in a sentence; empty if there is none.
  returned: always
  type: str
  sample: "Report: /srv/reports/blackwell-qwen-deployment-20261130T120311Z.html"
"""
