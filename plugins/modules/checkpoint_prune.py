#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: remove revisions of checkpoints that nothing needs any more."""

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_prune
short_description: Remove old revisions of checkpoints that nothing on the host needs
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Removes revisions of one repository from a store of M(llmfleet.sglang.checkpoint). Those of other repositories
    stay, and so does a copy that was never verified there, for instance one that was put there by hand.
  - Keeps each one that a link points to, or that a unit file, a host record or a process names (an engine maps its
    weights), and the O(keep) that were verified last.
  - Where something cannot be read that might name a revision, nothing is removed, and that is a failure.
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
  store:
    description: The folder in which revisions are kept, each as C(<owner--name>/<revision>).
    type: path
    required: true
  repository:
    description: The repository on the Hub, as V(owner/name), of which revisions may go.
    type: str
    required: true
  models:
    description: The folder of the links, which may lie in folders of it.
    type: path
    required: true
  state:
    description: Folder of the host records.
    type: path
    default: /var/lib/llmfleet
  keep:
    description: How many verified revisions of O(repository) stay at least, besides those in use.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Remove revisions that nothing needs
  llmfleet.sglang.checkpoint_prune:
    store: /models/.checkpoints
    models: /models
    repository: nvidia/Qwen3.5-397B-A17B-NVFP4
    keep: 1
  become: true
"""

RETURN = r"""
removed:
  description: What was removed, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains: &revision
    path:
      description: Its folder.
      type: str
    bytes:
      description: Bytes of its files.
      type: int
    verified_at:
      description: When it was verified last; empty if it never was.
      type: str
kept:
  description: Each folder that stays, and why.
  returned: success
  type: dict
message:
  description: What was removed and what stays, with the reason for each.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import prune, words
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.keep import CannotTell


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "models": {"type": "path", "required": True},
            "repository": {"type": "str", "required": True},
            "state": {"type": "path", "default": "/var/lib/llmfleet"},
            "keep": {"type": "int", "required": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    if params["keep"] < 0:
        module.fail_json(msg="keep has to be 0 or more.")
    try:
        found = prune.judge(params["store"], params["models"], params["state"], params["repository"], params["keep"])
        gone = [one for one in found if not one.kept]
        for one in [] if module.check_mode else gone:
            prune.remove(one)
    except (CannotTell, OSError) as error:
        module.fail_json(
            msg=f"Old revisions in {params['store']} cannot be removed: {error}. Nothing served is touched."
        )
    names = [f"{one.path} ({words.size(one.bytes)})" for one in gone]
    kept = {one.path: one.kept for one in found if one.kept}
    stays = [f"{path} ({why})" for path, why in sorted(kept.items())]
    module.exit_json(
        changed=bool(gone),
        removed=[one.as_dict() for one in gone],
        kept=kept,
        message=f"removed: {', '.join(names) or 'nothing'}; stays: {', '.join(stays) or 'nothing'}",
        diff={
            "before": "".join(f"{line}\n" for line in sorted([*stays, *names])),
            "after": "".join(f"{line}\n" for line in stays),
        },
    )


if __name__ == "__main__":
    main()
