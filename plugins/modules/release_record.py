#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: prove that a release imports, and say what it is."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_record
short_description: Prove that a release imports what was patched, and record it
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Imports the engine in the release's own environment, and checks that SGLang and each patched module come from the
    release's tree and are as they were patched. Only then, when all is on the disk, C(release.json) is written,
    atomically; with it the folder is a release.
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
    support: full
options:
  path:
    description: Folder of the release.
    type: path
    required: true
  inputs:
    description: All that went into the release's identifier, as M(llmfleet.sglang.release_plan) returns it.
    type: dict
    required: true
  edits:
    description: What M(llmfleet.sglang.python_source) returned as C(edits).
    type: list
    elements: dict
    default: []
  files:
    description: What M(llmfleet.sglang.python_source) returned as C(files).
    type: list
    elements: dict
    default: []
  environment:
    description: Environment for the import, such as what chooses the engine's device.
    type: dict
    default: {}
  repository:
    description: Where the source is from, for the record. A password in it is left out.
    type: str
    default: ""
  uv_version:
    description: The version of uv, for the record.
    type: str
    default: ""
  link_mode:
    description: How uv brought the packages into the environment, for the record.
    type: str
    default: hardlink
    choices: [hardlink, symlink, copy, clone]
  cache:
    description: Folder of uv's cache, on which an environment of symlinks stands. It is written to its disk too.
    type: path
"""

EXAMPLES = r"""
- name: Record the release
  llmfleet.sglang.release_record:
    path: "{{ plan.path }}"
    inputs: "{{ plan.inputs }}"
    edits: "{{ patched.edits }}"
    files: "{{ patched.files }}"
"""

RETURN = r"""
record:
  description: The record that was written.
  returned: when not in check mode
  type: dict
"""

from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import telling
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import alone, identity, listing, record, room
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "inputs": {"type": "dict", "required": True},
            "edits": {"type": "list", "elements": "dict", "default": []},
            "files": {"type": "list", "elements": "dict", "default": []},
            "environment": {"type": "dict", "default": {}},
            "repository": {"type": "str", "default": ""},
            "uv_version": {"type": "str", "default": ""},
            "link_mode": {
                "type": "str",
                "default": "hardlink",
                "choices": ["hardlink", "symlink", "copy", "clone"],
            },
            "cache": {"type": "path"},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["path"])
    if module.check_mode:
        module.exit_json(changed=True)
    build_gives_way()
    let_all_read()
    patched = {folder / "src" / "python" / one["path"]: str(one["after"]) for one in module.params["files"]}
    environment = {name: str(value) for name, value in module.params["environment"].items()}
    try:
        with (
            alone.writing(folder.parent),
            telling(module.params["progress_file"], folder.parent / "durations.json") as progress,
        ):
            progress.phase("importing the release")
            found = record.probe(folder, patched, environment)
            progress.phase("measuring the release")
            size = room.own_bytes(folder)
            listing.write(folder)
            progress.phase("writing the release to the disk")
            content = {
                "id": folder.name,
                "built_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "inputs": module.params["inputs"],
                "patched": record.patches(module.params["edits"]),
                "digests": {str(path.relative_to(folder)): digest for path, digest in patched.items()},
                "python": found["python"],
                "torch": found["torch"],
                "cuda": found["cuda"],
                "packages": found["packages"],
                "repository": redact_urls(module.params["repository"]),
                "uv_version": module.params["uv_version"],
                "link_mode": module.params["link_mode"],
                "bytes": size,
                "schema": identity.SCHEMA,
            }
            cache = module.params["cache"]
            record.write_record(folder, content, [Path(cache)] if cache else [])
    except (OSError, alone.Occupied, record.ImportFailed) as error:
        module.fail_json(
            msg=f"Release {folder.name} is not usable, and nothing was stopped: {error}{room.full(str(error), folder)}."
        )
    module.exit_json(changed=True, record=content)


if __name__ == "__main__":
    main()
