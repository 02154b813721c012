#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: service_stop
short_description: Stop a systemd service and prove that nothing of it is left
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Stops one systemd service, whoever made it, and then waits until its unit is inactive, every process
    that it had is gone, nothing listens on the given ports, and the GPU memory that its processes held
    is free.
  - The processes are recorded before the stop. They are those of the unit's control group, the
    descendants of its main process, and whatever carries the unit's invocation id in its environment.
  - Requests in flight can be given time to finish first. They are watched, not slept for.
  - Left-over segments in C(/dev/shm) are removed if its own processes held them, all of those are dead, nobody else
    holds them, and they are named as the engine's libraries name theirs.
  - A service that has failed, also by its start limit, is reset, so that a later start is not refused.
  - What is still held when the time is up is named, and the module fails. Unit files are never removed, and a process
    that is not the service's is named but never killed.
  - A service that a C(.path), C(.socket) or C(.timer) would start again, now or after the next boot, is left alone, and
    the module fails with the command that disables it.
  - A service that does not exist or does not run is no error. That the ports are free is looked at all
    the same, and that the GPU memory is free, unless one of the services in O(tolerate) runs by then.
options:
  name:
    description: Name of the service, with or without V(.service).
    type: str
    required: true
  ports:
    description: TCP ports on which nothing may listen afterwards.
    type: list
    elements: int
    default: []
  address:
    description:
      - Only listeners count that would keep a server from binding this address.
      - An empty text means every address.
    type: str
    default: ""
  tolerate:
    description:
      - Services which may hold the ports and the GPUs. The one that takes the stopped service's place
        belongs here, so that a second run finds nothing to complain about.
    type: list
    elements: str
    default: []
  disable:
    description: Whether to disable the service too, so that it does not come back after a reboot.
    type: bool
    default: false
  timeout:
    description: Seconds that unit, processes and ports may take until they are gone.
    type: int
    default: 300
  drain_timeout:
    description:
      - Seconds that requests in flight get to finish before the stop. With V(0), nobody waits for them.
      - Nothing is in flight when there is no connection to O(ports), or when SGLang's C(/metrics) shows no running and
        no queued request for a while. Where there are no metrics, open connections count.
      - Then, if systemd would end the service's workers together with its server (C(KillMode=control-group), the
        default), the server is told to finish (SIGTERM to the process that listens), and gets as many seconds again
        until the unit is stopped. SGLang then calls itself not ready, so that routers send elsewhere, still answers who
        asks all the same, and ends once it finds no request at work.
    type: int
    default: 0
  kill_after_timeout:
    description:
      - Whether to kill the unit (C(systemctl kill)) when it has not stopped after O(timeout), as one with
        C(TimeoutStopSec=infinity) that ignores SIGTERM never would. It is said in the result.
    type: bool
    default: true
  kill_leftovers:
    description:
      - Whether to end processes of the service that outlive its unit, having left its control group, by SIGTERM, and
        ten seconds later by SIGKILL.
    type: bool
    default: false
  clean_shm:
    description: Whether to remove the segments in C(/dev/shm) that only its dead processes held.
    type: bool
    default: true
  gpu_proof:
    description:
      - V(auto) proves that GPU memory is free wherever there is an C(nvidia-smi). If that one fails or
        hangs, the module fails before it stops anything.
      - V(skip) leaves that proof out.
    type: str
    choices: [auto, skip]
    default: auto
  visible_gpus:
    description: The cards that the service uses, by nvidia-smi's index, whose memory has to be free. Empty means all.
    type: list
    elements: int
    default: []
  gpu_timeout:
    description: Seconds that GPU memory may stay in use after the last process is gone.
    type: int
    default: 120
  gpu_slack_mib:
    description:
      - MiB on each card that no listed process needs to account for. Drivers keep some for themselves.
    type: int
    default: 1024
  durations_file:
    description: A file on the host in which the seconds of each phase are kept, to be said the next time.
    type: path
  times_file:
    description: A file of the host record that keeps the times of a cut-over, for M(llmfleet.sglang.cutover_info).
    type: path
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
    details: Nothing is stopped or disabled. What would be is returned, with everything that was found.
  diff_mode:
    support: full
    details:
      - Shows the unit's state and, with O(disable), whether it is enabled.
      - Where M(llmfleet.sglang.service_switch) disables it, that module shows so.
  idempotent:
    support: full
    details: A stopped service stays as it is.
"""

EXAMPLES = r"""
- name: Stop the old service for good
  llmfleet.sglang.service_stop:
    name: sglang-kimi
    ports: [30000]
    tolerate: [sglang-qwen]
    drain_timeout: 30
    disable: true
  become: true
"""

RETURN = r"""
service:
  description: Full name of the unit.
  type: str
  returned: always
  sample: sglang-kimi.service
stopped:
  description:
    - Whether something of the service ran and was told to stop (or would be, in check mode).
    - If the module fails and this is false, the service was left as it was.
  type: bool
  returned: always
disabled:
  description: Whether the service was enabled and has been disabled (or would be, in check mode).
  type: bool
  returned: success
reset:
  description: Whether the service had failed and was reset (or would be, in check mode).
  type: bool
  returned: success
drain:
  description:
    - Connections and requests before and after the wait, its seconds, and whether nothing was in flight then; in
      C(told), which processes were told to finish, whether they ended, and in how many seconds.
    - Empty if no time was given, or nothing of the service listened on O(ports).
  type: dict
  returned: success
  sample: {seconds: 4.5, idle: true, connections_before: 2, requests_before: 1, connections_after: 0, requests_after: 0}
killed:
  description: What was killed because it did not end by itself, and how.
  type: list
  elements: str
  returned: always
removed:
  description: The segments that were removed from C(/dev/shm).
  type: list
  elements: str
  returned: always
  sample: ["/dev/shm/sglang_loads_0c26d711175d_508962e6.shm (16396 bytes)"]
seconds:
  description: Seconds from the first look to the end of the proof.
  type: float
  returned: success
held:
  description: What is still held, one line each. Empty if the service is proven gone.
  type: list
  elements: str
  returned: always
before:
  description: The unit, its processes, its listeners and its GPU memory before anything was done.
  type: dict
  returned: always
after:
  description: The same after the stop. Empty in check mode if something would be stopped.
  type: dict
  returned: always
"""

import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.ready_since import ready_since
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.stop import (
    CannotStop,
    Machine,
    Report,
    Request,
    stop,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import SystemdError, unit_name
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress


def request_of(module: AnsibleModule) -> Request:
    """The module's arguments as the logic takes them; ValueError names a wrong service name."""
    given = module.params
    return Request(
        name=unit_name(given["name"]),
        ports=tuple(given["ports"]),
        address=given["address"],
        tolerate=tuple(unit_name(name) for name in given["tolerate"]),
        timeout=given["timeout"],
        drain_timeout=given["drain_timeout"],
        kill=given["kill_after_timeout"],
        kill_leftovers=given["kill_leftovers"],
        clean_shm=given["clean_shm"],
        disable=given["disable"],
        gpus=given["gpu_proof"] != "skip",
        gpu_timeout=given["gpu_timeout"],
        gpu_slack=given["gpu_slack_mib"],
        visible=tuple(given["visible_gpus"]),
    )


def advice(report: Report) -> str:
    """The next step, where the service's own processes outlive it."""
    if not report.after.get("processes") or report.after["unit"]["active"] not in ("inactive", "failed"):
        return ""
    return ". Its unit has ended and these processes have not: end them, or allow it (kill_leftovers: true)"


def diff_of(report: Report, disable: bool) -> dict[str, str]:
    """The unit's state before and after, as text. disable: whether it is said too if a reboot starts it."""
    unit = report.before["unit"]
    now = report.after["unit"]["active"] if report.after else unit["active"]
    foreseen = report.stopped and not report.after and not report.held
    active = "inactive" if report.reset or foreseen else now

    def line(active: str, file_state: str) -> str:
        return f"{unit['name']}: {active}{f', {file_state}' if disable else ''}\n"

    before = unit["file_state"] or "no unit file"
    return {"before": line(unit["active"], before), "after": line(active, "disabled" if report.disabled else before)}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "ports": {"type": "list", "elements": "int", "default": []},
            "address": {"type": "str", "default": ""},
            "tolerate": {"type": "list", "elements": "str", "default": []},
            "disable": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 300},
            "drain_timeout": {"type": "int", "default": 0},
            "kill_after_timeout": {"type": "bool", "default": True},
            "kill_leftovers": {"type": "bool", "default": False},
            "clean_shm": {"type": "bool", "default": True},
            "gpu_proof": {"type": "str", "choices": ["auto", "skip"], "default": "auto"},
            "visible_gpus": {"type": "list", "elements": "int", "default": []},
            "gpu_timeout": {"type": "int", "default": 120},
            "gpu_slack_mib": {"type": "int", "default": 1024},
            "durations_file": {"type": "path"},
            "times_file": {"type": "path"},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    kept, times_file, began = module.params["durations_file"], module.params["times_file"], time.time()
    progress = Progress(module.params["progress_file"], Path(kept) if kept else None)
    report, since = Report(), None
    try:
        request = request_of(module)
        since = ready_since(Machine().run, Path(times_file) if times_file else None, request.name, began)
        report = stop(request, Machine(progress=progress), module.check_mode)
    except (CannotStop, SystemdError, ValueError) as error:
        untouched = {"stopped": False, "held": [], "killed": [], "removed": [], "before": {}, "after": {}}
        module.fail_json(msg=str(error), service=module.params["name"], **untouched)
    finally:
        progress.close(ended=report.stopped and not report.held)
    if report.stopped and times_file and not module.check_mode:
        # From when it was told to end on, it is not counted as serving.
        told = began + float(report.drain.get("seconds", 0))
        name, ended = request.name.removesuffix(".service"), round(time.time(), 2)
        served = {} if since is None else {"since": round(since, 2)}
        times.note(Path(times_file), times.STOP, told, service=name, ended=ended, **served)
    for warning in report.warnings:
        module.warn(warning)
    result = {
        "changed": report.changed,
        "service": request.name,
        "stopped": report.stopped,
        "disabled": report.disabled,
        "reset": report.reset,
        "drain": report.drain,
        "killed": report.killed,
        "removed": report.removed,
        "seconds": report.seconds,
        "held": report.held,
        "before": report.before,
        "after": report.after,
        "diff": diff_of(report, request.disable),
    }
    if report.held:
        did = f"was told to stop, but {report.seconds} s later" if report.stopped else "does not run, but"
        module.fail_json(
            msg=f"{request.name} {did} this is still held: {'; '.join(report.held)}{advice(report)}", **result
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
