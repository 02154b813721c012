#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: run a service in the state that is wanted, and only then touch it."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # a systemd that does not answer is told by its time limit

DOCUMENTATION = r"""
module: service_start
short_description: Start or restart a service if what runs is not what is wanted
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Compares the state that the service's main process was started with, E(LLMFLEET_STATE) in its environment, with the
    one that is wanted, and starts or restarts the service if and only if they differ.
  - A service that runs the wanted state and has stopped answering is restarted too, where O(health) says how to ask it.
  - Without O(state) it starts what was deployed last, unless that runs, whatever its state is.
  - It does not wait until the engine is ready, which M(llmfleet.sglang.completion) does.
  - A service that met its start limit is reset first.
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
  name:
    description: The service's name, without C(.service).
    type: str
    required: true
  state:
    description:
      - The wanted state, as it stands in the unit's C(Environment=LLMFLEET_STATE).
      - Without it the service is started as its unit says. Nothing is started where there is no such unit, or where one
        of O(others) runs.
    type: str
  health:
    description:
      - The URL of its C(/health) on this host. It is asked for up to a minute where the service is active and runs the
        wanted state. A unit has to be active no sooner than it answers.
      - Without it a service that runs the wanted state is left alone.
    type: str
  others:
    description: Services that it cannot run beside. They are looked at where O(state) is left out.
    type: list
    elements: str
    default: []
  enabled:
    description: Whether to have it come back after a reboot too. V(false) leaves that as it is.
    type: bool
    default: false
  times_file:
    description: A file of the host record that keeps the times of a cut-over, for M(llmfleet.sglang.cutover_info).
    type: path
"""

EXAMPLES = r"""
- name: Start SGLang
  llmfleet.sglang.service_start:
    name: sglang-qwen
    state: "{{ wanted }}"

- name: Start what was stopped, as it was deployed, and have it come back after a reboot
  llmfleet.sglang.service_start:
    name: sglang-qwen
    others: [sglang-kimi]
    enabled: true
  become: true
"""

RETURN = r"""
reason:
  description: Why the service was started; empty when it runs the wanted state already.
  returned: success
  type: str
enabled:
  description: Whether it did not come back after a reboot before, and does now.
  returned: success
  type: bool
started:
  description: Whether systemd was told to start it, in a run that fails too.
  returned: always
  type: bool
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
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import hung
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as systemd


def _systemctl(*words: str, must: bool = True) -> None:
    subprocess.run(["systemctl", *words], check=must, capture_output=True, text=True, timeout=120)


def _start(name: str, *, restart: bool) -> None:
    """Bring the unit up as it stands on the disk now; whoever waits for its answers sees how it fares."""
    service = f"{name}.service"
    _systemctl("daemon-reload")
    _systemctl("reset-failed", service, must=False)  # it has nothing to reset in most runs
    _systemctl("restart" if restart else "start", "--no-block", service)


def _reason(module: AnsibleModule, before: systemd.Unit) -> str:
    """Say why it has to be started; "" if it has not. Fails where it must not be."""
    name, wanted, others = (module.params[key] for key in ("name", "state", "others"))
    if wanted is not None:
        why, health = systemd.why_restart(before, wanted), module.params["health"]
        return why if why or not health else hung.why_hung(before, health)
    against = systemd.why_not_start(name, before, {other: systemd.read(other) for other in others})
    if against:
        module.fail_json(msg=against, started=False)
    return systemd.why_start(before)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str"},
            "health": {"type": "str"},
            "others": {"type": "list", "elements": "str", "default": []},
            "enabled": {"type": "bool", "default": False},
            "times_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    name, kept = module.params["name"], module.params["times_file"]
    started = enable = False
    try:
        before = after = systemd.read(name)
        reason = _reason(module, before)
        enable = module.params["enabled"] and not before.enabled
        if not module.check_mode:
            if reason:
                started = True
                times.note(Path(kept) if kept else None, times.START, time.time(), service=name, why=reason)
                # A plain start would wait until systemd starts again what has failed.
                _start(name, restart=before.active in ("active", "activating"))
            if enable:
                _systemctl("enable", f"{name}.service")
            after = systemd.read(name)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().rstrip(".")
        see = f"See: journalctl -u {name}.service"
        module.fail_json(msg=f"{name}.service does not start: {said}. {see}", started=started)
    except subprocess.TimeoutExpired as error:
        late = f"{name}.service does not start: systemctl gave no answer in {error.timeout:.0f} s."
        module.fail_json(msg=late, started=started)
    module.exit_json(
        changed=bool(reason) or enable,
        reason=reason,
        enabled=enable,
        started=started,
        main_pid=after.main_pid,
        was_active=before.active in ("active", "activating"),
    )


if __name__ == "__main__":
    main()
