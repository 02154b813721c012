#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: run a service in the state that is wanted, and only then touch it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_start
short_description: Start or restart a service if what runs is not what is wanted
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Compares the state that the service's main process was started with, E(LLMFLEET_STATE) in its environment, with the
    one that is wanted, and starts or restarts the service if and only if they differ.
  - A service that met its start limit is reset first.
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
  name:
    description: The service's name, without C(.service).
    type: str
    required: true
  state:
    description: The wanted state, as it stands in the unit's C(Environment=LLMFLEET_STATE).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Start SGLang
  llmfleet.sglang.service_start:
    name: sglang-qwen
    state: "{{ wanted }}"
"""

RETURN = r"""
reason:
  description: Why the service was started; empty when it runs the wanted state already.
  returned: success
  type: str
main_pid:
  description: Its main process.
  returned: success
  type: int
was_active:
  description: Whether the service was active before.
  returned: success
  type: bool
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd


def _start(name: str, *, restart: bool) -> None:
    """Bring the unit up as it stands on the disk now; whoever waits for its answers sees how it fares."""
    service = f"{name}.service"
    start = ["restart" if restart else "start", "--no-block", service]
    for command in (["daemon-reload"], ["reset-failed", service], start):
        must = command[0] != "reset-failed"  # it has nothing to reset in most runs
        subprocess.run(["systemctl", *command], check=must, capture_output=True, text=True, timeout=120)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"name": {"type": "str", "required": True}, "state": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    name, wanted = module.params["name"], module.params["state"]
    try:
        before = systemd.read(name)
        reason = systemd.why_restart(before, wanted)
        if reason and not module.check_mode:
            _start(name, restart=before.active == "active")
        after = before if module.check_mode else systemd.read(name)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip()
        module.fail_json(msg=f"{name}.service does not start: {said}. See: journalctl -u {name}.service")
    except subprocess.TimeoutExpired as error:
        module.fail_json(msg=f"{name}.service does not start: systemctl gave no answer in {error.timeout:.0f} s.")
    module.exit_json(
        changed=bool(reason),
        reason=reason,
        main_pid=after.main_pid,
        was_active=before.active in ("active", "activating"),
    )


if __name__ == "__main__":
    main()
