#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the source tree of a release that is being built."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_source
short_description: Lay out the source tree of a release that is not finished yet
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Checks a commit out into C(src) of a release's folder, afresh. What a build that died left in the folder is removed.
  - A finished release, one with its C(release.json), is left alone.
  - What a build before left running, since its controller died, is ended first, with a warning; it is known by the lock
    C(.build.lock) beside the releases and by the environment variable C(LLMFLEET_BUILD).
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
  mirror:
    description: Folder of the bare mirror.
    type: path
    required: true
  commit:
    description: The commit, 40 hexadecimal digits.
    type: str
    required: true
  path:
    description: Folder of the release.
    type: path
    required: true
  inputs:
    description:
      - All that went into the release's identifier. Where a release with the same packages is there, it tells how much
        room this one takes.
    type: dict
    default: {}
  first_bytes:
    description: Free bytes that the first release with its packages needs.
    type: int
    default: 0
  cache:
    description: Folder of uv's cache. On another disk, that one needs the room too.
    type: path
  link_mode:
    description: How uv brings packages from its cache into the environment. A release of another mode takes other room.
    type: str
    default: hardlink
    choices: [hardlink, symlink, copy, clone]
"""

EXAMPLES = r"""
- name: Lay out the source tree
  llmfleet.sglang.release_source:
    mirror: /opt/sglang/mirror/sglang.git
    commit: "{{ sglang_commit }}"
    path: "{{ plan.path }}"
"""

RETURN = r"""
path:
  description: The source tree.
  returned: success
  type: str
laid_out:
  description: Whether the tree is there, which in check mode it may not be.
  returned: success
  type: bool
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import alone, identity, room, source
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.modes import let_all_read


class NoRoom(RuntimeError):
    """A disk cannot take the release."""


def _check_room(params: dict[str, Any], folder: Path) -> None:
    """Refuse, with figures, a disk that cannot take the release, or uv's cache where that is another disk."""
    need = room.needed(folder.parent, params["inputs"], params["first_bytes"], params["link_mode"])
    cache = Path(params["cache"] or folder)
    apart = cache.exists() and folder.parent.exists() and cache.stat().st_dev != folder.parent.stat().st_dev
    for place in [folder, *([cache] if apart and need.size >= params["first_bytes"] else [])]:
        problem = room.problem(place, need)
        if problem:
            raise NoRoom(problem)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "mirror": {"type": "path", "required": True},
            "commit": {"type": "str", "required": True},
            "path": {"type": "path", "required": True},
            "inputs": {"type": "dict", "default": {}},
            "first_bytes": {"type": "int", "default": 0},
            "cache": {"type": "path"},
            "link_mode": {
                "type": "str",
                "default": "hardlink",
                "choices": ["hardlink", "symlink", "copy", "clone"],
            },
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["path"])
    tree = folder / "src"
    missing = identity.read_record(folder) is None
    if missing and not module.check_mode:
        build_gives_way()
        let_all_read()
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with alone.writing(folder.parent, begins=True) as ended:
                for process in ended:
                    module.warn(f"a build before had been left running, and was ended: {process}")
                identity.remove_debris(folder)
                _check_room(module.params, folder)
                folder.mkdir(mode=0o755)
                source.add_worktree(Path(module.params["mirror"]), module.params["commit"], tree)
        except (NoRoom, OSError, alone.Occupied, source.GitError) as error:
            module.fail_json(
                msg=f"The source tree {tree} cannot be laid out, and nothing was stopped: {error}"
                f"{room.full(str(error), folder)}."
            )
    module.exit_json(changed=missing, path=str(tree), laid_out=tree.is_dir())


if __name__ == "__main__":
    main()
