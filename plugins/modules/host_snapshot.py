#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a host served before a cut-over, and bringing it back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_snapshot
short_description: Keep what a host serves before a cut-over, and bring it back
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Keeps unit files and drop-ins byte for byte, and which services were enabled and active, in one file on the host.
  - The links that enable a service are kept too, and one by which a unit outside of C(/etc/systemd/system) is known.
  - While a cut-over is under way, or died under way, the snapshot stays as it was taken. It is taken anew if since then
    another instance that takes part was deployed, or a service was changed or started by hand.
  - What answered is kept beside it, so that M(llmfleet.sglang.rollback_aim) can name it later, and when that was.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: partial
    details: Of the host record alone, with O(state=concluded).
  idempotent:
    support: full
options:
  path:
    description: The snapshot's file.
    type: path
    required: true
  instance:
    description: Name of the instance that is cut over to.
    type: str
    required: true
  services:
    description: The services that take part, without C(.service). Needed for O(state=taken).
    type: list
    elements: str
    default: []
  others:
    description:
      - Other files that go with the services, such as the one with the API key. For O(state=taken).
      - They come back with O(state=restored) after a cut-over that failed, not when one goes back on demand.
    type: list
    elements: path
    default: []
  state:
    description:
      - V(taken) keeps what the services are now.
      - V(concluded) notes that the new service answers, and writes O(record).
      - V(switched_back) lets the services come back after a reboot as before.
      - V(restored) puts the files back and starts what ran before. Whatever took its place has to be stopped by then.
      - V(examined) changes nothing and says in what state the services are, for when going back has failed.
    type: str
    choices: [taken, concluded, switched_back, restored, examined]
    required: true
  record:
    description:
      - What the host record, C(record.json) beside the snapshot, shall say of what answers. For O(state=concluded).
      - Its C(service) and C(release) are what one can go back to later.
    type: dict
    default: {}
  verify:
    description: How to ask what answers, as M(llmfleet.sglang.completion) takes it. For O(state=concluded).
    type: dict
    default: {}
  releases:
    description: The folder of the releases. Needed for O(state=concluded).
    type: path
  prepared:
    description:
      - The prepared unit of the instance. With O(state=restored) it becomes what is in force, or goes if that is not
        ours, so that the next deployment says what differs from what serves.
    type: path
  rejected:
    description: Where the prepared unit is kept before, for the person who looks into it. For O(state=restored).
    type: path
"""

EXAMPLES = r"""
- name: Keep what serves now
  llmfleet.sglang.host_snapshot:
    path: /var/lib/llmfleet/qwen/snapshot.json
    instance: qwen
    services: [sglang-kimi, sglang-qwen]
    state: taken
"""

RETURN = r"""
served:
  description: The services that ran when the snapshot was taken.
  returned: success
  type: list
  elements: str
taken_at:
  description: When it was taken, in UTC.
  returned: success
  type: str
condition:
  description: In what state each service is, in words.
  returned: if O(state=examined)
  type: list
  elements: str
rejected:
  description: Where the rejected unit was kept; empty when there was none.
  returned: success
  type: str
phase:
  description: V(cutover), V(serving) or V(restored); empty when there is no snapshot.
  returned: success
  type: str
"""

import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import (
    answered,
    condition,
    record,
    snapshot,
    times,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.answered import Answered
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles

STATES = ["taken", "concluded", "switched_back", "restored", "examined"]


@dataclass
class Outcome:
    """What a state came to: whether anything changed or would, and the snapshot as it was found or taken."""

    changed: bool
    snapshot: Snapshot | None
    more: dict[str, Any] = field(default_factory=dict)


def taken(path: Path, params: dict[str, Any], check: bool) -> Outcome:
    """Keep what the services are now."""
    found = snapshot.under_way(path)
    if found is not None:
        if not check:
            times.note(path.with_name(times.NAME), times.BEGIN, time.time())
        return Outcome(False, found)
    if check:
        return Outcome(True, snapshot.take(params["instance"], params["services"]))
    others = [Path(one) for one in params["others"]]
    taken = snapshot.keep(path, params["instance"], params["services"], others)
    times.note(path.with_name(times.NAME), times.BEGIN, time.time())
    return Outcome(True, taken)


def concluded(path: Path, params: dict[str, Any], check: bool) -> Outcome:
    """Note that the new service answers; what had been brought back stays what it is."""
    found = snapshot.load(path)
    wanted = record.text(params["record"])
    place = path.with_name(record.NAME)
    before = record.read(place)
    changed = bool(params["record"]) and before != wanted
    if not check and params["record"]:
        record.write(place, wanted)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        files = UnitFiles.read(params["record"]["service"])
        entry = Answered(params["record"], files, params["verify"], now)
        changed |= answered.keep(path.parent, entry, Path(params["releases"]))
    under_way = found is not None and found.phase == "cutover"
    if under_way and not check:
        snapshot.mark(path, "serving")
        times.note(path.with_name(times.NAME), times.VERDICT, time.time())
    diff = {"before": before, "after": wanted if params["record"] else before}
    return Outcome(
        changed or under_way, found, {"diff": {**diff, "before_header": str(place), "after_header": str(place)}}
    )


def back(path: Path, params: dict[str, Any], check: bool) -> Outcome:
    """Bring back what the snapshot holds, or let it come back after a reboot alone."""
    found = snapshot.load(path)
    if check:  # a check run of rollback_aim has written none
        return Outcome(found is None or found.phase != "restored", found)
    if found is None:
        raise UnitError(f"there is no snapshot {path} to go back to")
    if params["state"] == "switched_back":
        return Outcome(snapshot.switch_back(found), found)
    rejected = ""
    changed = snapshot.put_back(found)
    changed |= snapshot.switch_back(found)
    if params["prepared"]:
        rejected = snapshot.set_aside(
            found, Path(params["prepared"]), Path(params["rejected"]) if params["rejected"] else None
        )
    changed |= bool(snapshot.start_again(found))
    times.note(path.with_name(times.NAME), times.BACK, time.time(), services=found.served)
    for name in found.served:
        record.renew(path.parent.parent, UnitFiles.read(name))
    changed |= snapshot.mark(path, "restored")
    return Outcome(changed, found, {"rejected": rejected})


def apply(path: Path, params: dict[str, Any], check: bool) -> Outcome:
    """Do what `state` asks for."""
    if params["state"] == "examined":
        found = snapshot.load(path)
        return Outcome(False, found, {"condition": condition.describe(found)})
    actions = {"taken": taken, "concluded": concluded, "switched_back": back, "restored": back}
    return actions[params["state"]](path, params, check)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "instance": {"type": "str", "required": True},
            "services": {"type": "list", "elements": "str", "default": []},
            "others": {"type": "list", "elements": "path", "default": []},
            "state": {"type": "str", "choices": STATES, "required": True},
            "record": {"type": "dict", "default": {}},
            "verify": {"type": "dict", "default": {}},
            "releases": {"type": "path"},
            "prepared": {"type": "path"},
            "rejected": {"type": "path"},
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    if module.params["record"] and not module.params["releases"]:
        module.fail_json(msg="A record needs the folder of the releases.")
    try:
        outcome = apply(path, module.params, module.check_mode)
        after = outcome.snapshot if module.check_mode else snapshot.load(path)
    except (OSError, UnitError) as error:
        if module.params["state"] == "examined":
            module.exit_json(changed=False, condition=[f"The state of the host cannot be told: {error}."])
        module.fail_json(msg=f"The snapshot cannot be {module.params['state']}: {error}.")
    found = outcome.snapshot
    module.exit_json(
        changed=outcome.changed,
        served=found.served if found else [],
        taken_at=found.taken_at if found else "",
        phase=after.phase if after else "",
        **{"rejected": "", **outcome.more},
    )


if __name__ == "__main__":
    main()
