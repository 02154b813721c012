# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that load patch sets and print what the source modules found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _yaml

_PATCH_SETS = Path(__file__).resolve().parents[2] / "playbooks" / "patch_sets"


def patch_set_edits(names: Any, state: str = "present") -> list[dict[str, Any]]:
    """Return the edits of shipped patch sets (names) or of files (paths), each with the state."""
    edits: list[dict[str, Any]] = []
    for name in [names] if isinstance(names, str) else names:
        path = Path(name) if "/" in name else _PATCH_SETS / f"{name}.yml"
        try:
            content = _yaml.read(path)
        except (OSError, ValueError, yaml.YAMLError) as error:
            known = ", ".join(sorted(file.stem for file in _PATCH_SETS.glob("*.yml")))
            message = f"The patch set {name} cannot be read: {error}. Shipped are {known}."
            raise AnsibleFilterError(message) from error
        if not isinstance(content, dict) or not isinstance(content.get("edits"), list):
            raise AnsibleFilterError(f"The patch set {path} has no list 'edits'.")
        edits += [{**edit, "state": state} for edit in content["edits"]]
    return edits


def gate_line(gate: Mapping[str, Any]) -> str:
    """Return one line for a test that capability_gates_info found."""
    function = f" {gate['function']}" if gate["function"] else ""
    text = gate["expression"]
    if len(text) > 200 and gate.get("tests"):
        # of a long expression only what it tests
        text = f"… {' … '.join(gate['tests'])} …"
    return f"{gate['file']}:{gate['line']}{function}: {text} ({gate['kind']}, falls {gate['falls']})"


def edit_line(edit: Mapping[str, Any]) -> str:
    """Return one line for an edit that python_source reported."""
    place = f" {edit['file']}:{edit['line']}" if edit["file"] else ""
    message = f" - {edit['message']}" if edit["message"] else ""
    return f"{edit['id']}: {edit['state']}{', changed' if edit['changed'] else ''}{place}{message}"


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"patch_set_edits": patch_set_edits, "gate_line": gate_line, "edit_line": edit_line}
