#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: remove releases that nothing needs any more."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_prune
short_description: Remove old releases that nothing on the host names any more
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Keeps the newest O(keep) finished releases, and every one that a unit file, a host record (the snapshot that a
    rollback goes back to, a prepared unit) or a process names; removes the others with their compilers' caches.
  - Removes the debris of builds that died, once nothing in it was touched for O(debris_age).
  - Forgets their worktrees in the mirror.
  - Where something cannot be read that might name a release, nothing is removed, and that is a failure.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  root:
    description: Folder that holds C(releases) and C(mirror).
    type: path
    required: true
  state:
    description: Folder of the host records.
    type: path
    default: /var/lib/llmfleet
  keep:
    description: How many finished releases stay at least, those in use among them.
    type: int
    default: 3
  debris_age:
    description: Seconds after which an unfinished release that nobody has touched is taken for dead.
    type: int
    default: 7200
  deployed:
    description:
      - The release that is deployed. It stays, and counts as one of O(keep) even where a check run has not built it.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Remove old releases
  llmfleet.sglang.release_prune:
    root: /opt/sglang
    keep: 3
  become: true
"""

RETURN = r"""
removed:
  description: The releases that were removed, or would be in check mode.
  returned: success
  type: list
  elements: str
debris:
  description: The dead builds that were removed, or would be.
  returned: success
  type: list
  elements: str
kept:
  description: Each release that stays, and why.
  returned: success
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import keep, source


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "state": {"type": "path", "default": "/var/lib/llmfleet"},
            "keep": {"type": "int", "default": 3},
            "debris_age": {"type": "int", "default": 7200},
            "deployed": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    places = keep.Places(Path(module.params["root"]), Path(module.params["state"]))
    if module.params["keep"] < 1:
        module.fail_json(msg="keep has to be 1 or more.")
    try:
        verdict = keep.judge(
            places, module.params["keep"], module.params["debris_age"], deployed=module.params["deployed"]
        )
        if not module.check_mode:
            for path in verdict.all:
                keep.remove(path, places.caches)
            if verdict.all:
                source.prune_worktrees(places.root / "mirror" / "sglang.git")
    except (keep.CannotTell, source.GitError, OSError) as error:
        module.fail_json(
            msg=f"Old releases under {places.releases} cannot be removed: {error}. What serves is untouched."
        )
    gone = [path.name for path in verdict.all]
    module.exit_json(
        changed=bool(gone),
        removed=[path.name for path in verdict.remove],
        debris=[path.name for path in verdict.debris],
        kept=verdict.kept,
        diff={
            "before": "".join(f"{name}\n" for name in sorted([*verdict.kept, *gone])),
            "after": "".join(f"{name}\n" for name in sorted(verdict.kept)),
        },
    )


if __name__ == "__main__":
    main()
