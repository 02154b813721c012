#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a bare Git mirror on the host that holds one commit."""

from __future__ import annotations

DOCUMENTATION = r"""
module: source_mirror
short_description: Keep a bare Git mirror on the host that holds a pinned commit
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Clones or fetches a repository whole, with its tags, only when the commit is not there yet.
  - Returns the commit's C(python/pyproject.toml) and the version that Git derives for it.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
    details: Without a mirror on the host, O(commit) cannot be looked at, and RV(pyproject) is empty.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  repository:
    description: URL of the repository.
    type: str
    required: true
  path:
    description: Folder of the bare mirror.
    type: path
    required: true
  commit:
    description: The commit, 40 hexadecimal digits.
    type: str
    required: true
  bundle:
    description:
      - A file on the host, made by C(git bundle create FILE --all), to take the source from. O(repository) is then not
        asked.
    type: path
  environment:
    description: Environment for Git, such as a proxy. It may hold secrets and is never logged.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Mirror SGLang
  llmfleet.sglang.source_mirror:
    repository: https://github.com/sgl-project/sglang.git
    path: /opt/sglang/mirror/sglang.git
    commit: "{{ sglang_commit }}"
"""

RETURN = r"""
commit:
  description: The commit.
  returned: success
  type: str
describe:
  description: What C(git describe --tags --match v*) says of the commit; empty when no tag leads to it.
  returned: success
  type: str
pyproject:
  description: The text of C(python/pyproject.toml) at the commit; empty in check mode without a mirror.
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
            "repository": {"type": "str", "required": True},
            "path": {"type": "path", "required": True},
            "commit": {"type": "str", "required": True},
            "bundle": {"type": "path"},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    repository, commit = module.params["repository"], module.params["commit"]
    mirror = Path(module.params["path"])
    bundle = Path(module.params["bundle"]) if module.params["bundle"] else None
    origin = str(bundle or repository)
    missing = not source.has_commit(mirror, commit)
    if missing and module.check_mode:
        module.exit_json(changed=True, commit=commit, describe="", pyproject="", msg=f"would fetch {origin}")
    try:
        if missing:
            build_gives_way()
            let_all_read()
            with telling(module.params["progress_file"], mirror.parent / "durations.json") as progress:
                source.update(mirror, repository, module.params["environment"], progress, bundle)
            if not source.has_commit(mirror, commit):
                module.fail_json(
                    msg=f"{origin} has no commit {commit}: the mirror {mirror} holds all of its branches and tags "
                    "now, and not this commit. Pin one that it has: ansible-playbook llmfleet.sglang.pin -i INVENTORY."
                )
        pyproject = source.show(mirror, commit, "python/pyproject.toml")
        described = source.describe(mirror, commit)
    except source.GitError as error:
        module.fail_json(msg=f"The source {origin} cannot be had: {error}.")
    module.exit_json(changed=missing, commit=commit, describe=described, pyproject=pyproject)


if __name__ == "__main__":
    main()
