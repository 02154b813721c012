#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a Python program in a virtual environment of its own."""

from __future__ import annotations

DOCUMENTATION = r"""
module: python_tool
short_description: Install a Python program at a pinned version, in an environment of its own
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Makes a virtual environment beside its final place, installs one package with C(pip), and moves nothing into place
    before the program is there. Once it is there, nothing is asked or done again.
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
  package:
    description: Name of the package.
    type: str
    required: true
  version:
    description: Its version.
    type: str
    required: true
  command:
    description: The program that the package brings.
    type: str
    required: true
  path:
    description: Folder of the environment. It should have the version in its name.
    type: path
    required: true
  python:
    description: The interpreter.
    type: path
    default: /usr/bin/python3
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
- name: Install uv
  llmfleet.sglang.python_tool:
    package: uv
    version: 0.13.9
    command: uv
    path: /opt/sglang/tools/uv-0.13.9
"""

RETURN = r"""
command:
  description: The program.
  returned: success
  type: str
"""

import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import telling
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import (
    PackageError,
    PackageSource,
    run,
)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "package": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "command": {"type": "str", "required": True},
            "path": {"type": "path", "required": True},
            "python": {"type": "path", "default": "/usr/bin/python3"},
            "index_url": {"type": "str", "default": "", "no_log": True},
            "offline": {"type": "bool", "default": False},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    folder = Path(params["path"])
    program, finished = folder / "bin" / params["command"], folder / ".complete"
    missing = not (finished.exists() and program.exists())
    if missing and not module.check_mode:
        let_all_read()
        source = PackageSource(params["index_url"], params["offline"], environment=params["environment"])
        try:
            if folder.exists():  # an install that died half-way
                shutil.rmtree(folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            with telling(params["progress_file"], folder.parent / "durations.json") as progress:
                progress.phase(f"installing {params['package']} {params['version']}")
                # It brings its own pip, so it is told no passwords.
                run([params["python"], "-m", "venv", str(folder)], PackageSource(), timeout=300)
                wanted = f"{params['package']}=={params['version']}"
                install = ["-m", "pip", "install", "--quiet", "--no-cache-dir", wanted]
                run([str(folder / "bin" / "python"), *install], source)
            finished.touch()
        except (OSError, PackageError) as error:
            module.fail_json(msg=f"{params['package']} {params['version']} cannot be installed in {folder}: {error}")
        if not program.exists():
            module.fail_json(msg=f"{params['package']} {params['version']} brings no program {program}.")
    module.exit_json(changed=missing, command=str(program))


if __name__ == "__main__":
    main()
