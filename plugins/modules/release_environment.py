#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the virtual environment of a release."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_environment
short_description: Make a release's virtual environment from its lock
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Makes the environment with C(uv) at its final path, since an environment does not survive a move, installs what the
    lock pins by digest, installs SGLang's source tree editable, so that what is imported is what was patched, and
    compiles it.
  - A finished release, one with its C(release.json), is left alone.
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
    description: Folder of the release, with its source tree in C(src).
    type: path
    required: true
  lock:
    description: The lock's text. Empty where a check run could not make one.
    type: str
    required: true
  python:
    description: The interpreter that the release runs on.
    type: path
    required: true
  uv:
    description: The C(uv) command.
    type: path
    required: true
  cache:
    description: Folder of uv's cache.
    type: path
    required: true
  link_mode:
    description: How uv takes files from its cache. Hard links cost nothing on one file system, symlinks on an overlay.
    type: str
    choices: [hardlink, symlink, copy, clone]
    default: hardlink
  build_environment:
    description: Flags of the build.
    type: dict
    default: {}
  index_url:
    description: Package index in place of the default one. It may hold a password and is handed over unseen.
    type: str
    default: ""
  offline:
    description: Whether O(index_url) is the only source of packages.
    type: bool
    default: false
  environment:
    description: Environment for the download, such as a proxy. It may hold secrets and is never logged.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Install the packages
  llmfleet.sglang.release_environment:
    path: "{{ plan.path }}"
    lock: "{{ locked.lock }}"
    python: /usr/bin/python3
    uv: /opt/sglang/tools/uv-0.13.9/bin/uv
    cache: /var/cache/llmfleet/uv
"""

RETURN = r"""
interpreter:
  description: The environment's own interpreter.
  returned: success
  type: str
seconds:
  description: How long it took.
  returned: success
  type: float
"""

import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import telling
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import alone, room
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageError, PackageSource
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.venv import Venv


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "lock": {"type": "str", "required": True},
            "python": {"type": "path", "required": True},
            "uv": {"type": "path", "required": True},
            "cache": {"type": "path", "required": True},
            "link_mode": {
                "type": "str",
                "default": "hardlink",
                "choices": ["hardlink", "symlink", "copy", "clone"],
            },
            "build_environment": {"type": "dict", "default": {}},
            "index_url": {"type": "str", "default": "", "no_log": True},
            "offline": {"type": "bool", "default": False},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    venv = Venv(folder=Path(params["path"]), python=params["python"], uv=params["uv"])
    missing = read_record(venv.folder) is None
    began = time.monotonic()
    if missing and not module.check_mode:
        source = PackageSource(
            index_url=params["index_url"],
            offline=params["offline"],
            cache=params["cache"],
            link_mode=params["link_mode"],
            environment={**params["build_environment"], **params["environment"]},
        )
        build_gives_way()
        let_all_read()
        try:
            with (
                alone.writing(venv.folder.parent),
                telling(params["progress_file"], venv.folder.parent / "durations.json") as progress,
            ):
                venv.make(params["lock"], source, progress)
        except (OSError, PackageError, alone.Occupied) as error:
            hint = room.full(str(error), venv.folder, Path(params["cache"]))
            module.fail_json(
                msg=f"Release {venv.folder.name} cannot be installed, and nothing was stopped: {error}{hint}"
            )
    module.exit_json(changed=missing, interpreter=venv.interpreter, seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()
