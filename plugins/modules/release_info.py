#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a release is, and what became of it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_info
short_description: Compare a release with the record of its build
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Compares a finished release with its C(release.json), namely the digest of each patched file, the source tree with
    its commit, the interpreter, the packages and their files (by size and time of change), and lists every difference.
    Changes nothing.
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
  path:
    description: Folder of the release.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Compare the release that serves with its record
  llmfleet.sglang.release_info:
    path: /opt/sglang/releases/0.5.23-ff542dc8f-67c489c563b187eb
  become: true
  register: info

- name: Say what was changed by hand
  ansible.builtin.debug:
    msg: "{{ info.drift }}"
  when: info.drift | length > 0
"""

RETURN = r"""
id:
  description: The release's identifier.
  returned: success
  type: str
built:
  description: Whether it is a finished release. If not, nothing is compared.
  returned: success
  type: bool
drift:
  description: What is not as it was built.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: One of V(patched_file), V(tree), V(package), V(file) (of a package), V(interpreter).
      type: str
    name:
      description: The file, below the release, or the package.
      type: str
    expected:
      description: What the record says.
      type: str
    found:
      description: What was found.
      type: str
record:
  description: The record, without the list of packages and the lock.
  returned: success
  type: dict
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import drift, identity, source


def short(record: dict[str, Any]) -> dict[str, Any]:
    """Return what of a record people ask for."""
    kept = {name: value for name, value in record.items() if name not in ("packages", "inputs")}
    return {**kept, "commit": record.get("inputs", {}).get("commit", "")}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    folder = Path(module.params["path"])
    try:
        record = identity.read_record(folder)
        found = drift.compare(folder, record) if record else []
    except (OSError, drift.CannotCompare, source.GitError) as error:
        module.fail_json(msg=f"Release {folder.name} cannot be compared with its record: {error}.")
    listed = [one.as_dict() for one in found]
    module.exit_json(changed=False, id=folder.name, built=bool(record), drift=listed, record=short(record or {}))


if __name__ == "__main__":
    main()
