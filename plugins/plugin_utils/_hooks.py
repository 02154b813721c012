# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read files of tasks as Ansible will, before it does. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.helpers import load_list_of_blocks
from ansible.playbook.play import Play
from ansible.vars.manager import VariableManager
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices


def problems(chosen: Mapping[str, Any]) -> list[str]:
    """Return why the tasks that drain and undrain a host could not be run, a sentence each.

    Ansible reads them where they are first run, and ends the whole playbook there when it cannot.
    """
    paths = {name: chosen.get(name) for name in choices.HOOKS}
    found = {name: _problem(path) for name, path in paths.items() if isinstance(path, str) and Path(path).is_file()}
    return [f"{name} names {paths[name]}, which cannot be run: {why}" for name, why in found.items() if why]


def _problem(path: str) -> str:
    """Why Ansible would not take this file of tasks; empty if it would."""
    if Path(path).read_bytes().startswith(b"$ANSIBLE_VAULT"):
        return ""  # it is Ansible's to open
    loader = DataLoader()
    loader.set_basedir(str(Path(path).parent))
    try:
        tasks = loader.load_from_file(path)
        if not isinstance(tasks, list):
            return "it is no list of tasks."
        load_list_of_blocks(tasks, play=Play(), variable_manager=VariableManager(loader=loader), loader=loader)
    except AnsibleParserError as error:
        return f"{_line(error)}{' '.join(str(error).split()).rstrip('.')}."
    except AnsibleError:
        return ""  # what an import names may be told by variables, which are not known here
    return ""


def _line(error: AnsibleParserError) -> str:
    """Where in a file Ansible saw it, if it says so."""
    origin = re.match(r"Origin: (\S+:\d+):", getattr(error, "_formatted_source_context", None) or "")
    return f"{origin[1]}: " if origin else ""
