#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the source in one file, for other hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: source_bundle
short_description: Write a host's mirror of the source into one file, for other hosts
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Writes all branches and tags of a mirror into a bundle, which M(llmfleet.sglang.source_mirror) takes on a host that
    does not reach the repository.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details: The file is written each time.
options:
  mirror:
    description: Folder of the bare mirror.
    type: path
    required: true
  commit:
    description: The commit that the mirror has to hold, 40 hexadecimal digits.
    type: str
    required: true
  dest:
    description: The file to write. Everybody may read it.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Bundle the source
  llmfleet.sglang.source_bundle:
    mirror: /opt/sglang/mirror/sglang.git
    commit: "{{ sglang_commit }}"
    dest: /opt/sglang/mirror/fleet.bundle
"""

RETURN = r"""
dest:
  description: The file.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import telling
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import source
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "mirror": {"type": "path", "required": True},
            "commit": {"type": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    mirror, commit = Path(module.params["mirror"]), module.params["commit"]
    if not source.has_commit(mirror, commit):
        module.fail_json(
            msg=f"This host has no commit {commit} in {mirror}, so no other host can have it from here: deploy to this "
            "host first, or name one that has it in sglang_source_host."
        )
    if not module.check_mode:
        build_gives_way()
        let_all_read()
        try:
            with telling(module.params["progress_file"], mirror.parent / "durations.json") as progress:
                source.bundle(mirror, Path(module.params["dest"]), progress)
        except (OSError, source.GitError) as error:
            module.fail_json(msg=f"The source {mirror} cannot be bundled: {error}.")
    module.exit_json(changed=True, dest=module.params["dest"])


if __name__ == "__main__":
    main()
