#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the lock of a release's Python packages."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_lock
short_description: Resolve a commit's requirements into a lock with digests
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Runs C(uv pip compile) on the requirements once and keeps the lock on the host under a name made of what went in, so
    that the same commit has the same lock the next time, whatever was published meanwhile.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
    details: A lock that does not exist yet is not made, and RV(lock) is empty.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  folder:
    description: Folder of the locks.
    type: path
    required: true
  pyproject:
    description: The text of C(python/pyproject.toml). Empty where a check run could not read it.
    type: str
    required: true
  overrides:
    description: The text of a uv overrides file.
    type: str
    default: ""
  given:
    description:
      - The text of a lock that another host has for the same inputs. It is kept here too, so that whatever hosts a run
        is limited to, they all have the same lock.
    type: str
    default: ""
  make:
    description: Whether a lock that is neither here nor given is made. Otherwise RV(lock) is empty then.
    type: bool
    default: true
  rules:
    description: What versions of SGLang need, as M(llmfleet.sglang.release_requirements) takes it.
    type: list
    elements: dict
    default: []
  version:
    description: The version of SGLang. The lock has to fit what O(rules) say of it.
    type: str
    default: ""
  python:
    description: The interpreter that the release will run on.
    type: path
    required: true
  uv:
    description: The C(uv) command.
    type: path
    required: true
  uv_version:
    description: Its version.
    type: str
    required: true
  index_url:
    description: Package index in place of uv's default. It may hold a password and is never part of the lock.
    type: str
    default: ""
  offline:
    description: Whether nothing but O(index_url) may be asked.
    type: bool
    default: false
  cache:
    description: Folder of uv's cache.
    type: path
    required: true
  environment:
    description: Environment for uv, such as a proxy. It may hold secrets and is never logged.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Lock the packages
  llmfleet.sglang.release_lock:
    folder: /opt/sglang/locks
    pyproject: "{{ source.pyproject }}"
    python: /usr/bin/python3
    uv: /opt/sglang/tools/uv-0.13.9/bin/uv
    uv_version: 0.13.9
    cache: /var/cache/llmfleet/uv
  run_once: true
  register: locked
"""

RETURN = r"""
lock:
  description: The lock's text; empty in check mode when there is none yet.
  returned: success
  type: str
path:
  description: Where the lock is kept.
  returned: success
  type: str
packages:
  description: How many packages the lock names.
  returned: success
  type: int
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import telling
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import (
    identity,
    interpreter,
    lock,
    packages,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs, lock_problems, needs_of


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, text.encode(), durable=False)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "pyproject": {"type": "str", "required": True},
            "overrides": {"type": "str", "default": ""},
            "given": {"type": "str", "default": ""},
            "make": {"type": "bool", "default": True},
            "rules": {"type": "list", "elements": "dict", "default": []},
            "version": {"type": "str", "default": ""},
            "python": {"type": "path", "required": True},
            "uv": {"type": "path", "required": True},
            "uv_version": {"type": "str", "required": True},
            "index_url": {"type": "str", "default": "", "no_log": True},
            "offline": {"type": "bool", "default": False},
            "cache": {"type": "path", "required": True},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = dict(module.params)
    folder, told = Path(params.pop("folder")), params.pop("progress_file")
    rules, version = params.pop("rules"), params.pop("version")
    other, make = params.pop("given"), params.pop("make")
    given = {name: params.pop(name) for name in ("index_url", "offline", "cache", "environment")}
    if not params["pyproject"] and not make:
        module.exit_json(changed=False, lock="", path="", packages=0)
    if not params["pyproject"]:
        module.exit_json(changed=True, lock="", path="", packages=0, msg="would resolve the requirements")
    try:
        needs = needs_of(rules, version) if rules else Needs()
        request = lock.LockRequest(**params, extras=needs.extras, prerelease=needs.prerelease)
        path = folder / f"{request.key(interpreter.describe(params['python']))}.txt"
        # What the fleet has goes before what this host may have made alone.
        made = not path.exists() or (bool(other) and path.read_text(encoding="utf-8") != other)
        if made and not other and not make:
            module.exit_json(changed=False, lock="", path=str(path), packages=0)
        if made and other and not module.check_mode:
            _write(path, other)
        if made and other:
            module.exit_json(changed=True, lock=other, path=str(path), packages=len(identity.lock_entries(other)))
        if made and module.check_mode:
            module.exit_json(changed=True, lock="", path=str(path), packages=0, msg="would resolve the requirements")
        if made:
            build_gives_way()
            let_all_read()
            with telling(told, folder / "durations.json") as progress:
                progress.phase("resolving the requirements")
                text = lock.compile_lock(request, packages.PackageSource(**given))
                problems = lock_problems(text, needs)
                if problems:
                    raise ValueError("; ".join(problems))
                _write(path, text)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError, packages.PackageError, interpreter.InterpreterError) as error:
        module.fail_json(msg=f"SGLang's requirements cannot be resolved, and nothing was stopped: {error}")
    module.exit_json(changed=made, lock=text, path=str(path), packages=len(identity.lock_entries(text)))


if __name__ == "__main__":
    main()
