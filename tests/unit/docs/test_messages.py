# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A message names a playbook as it is called from an installed collection and from a checkout alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.tests.unit.docs import pages

ROOT = pages.ROOT
PLAYBOOKS = pages.playbooks()
_BY_FILE = re.compile(rf"\b(?:{'|'.join(PLAYBOOKS)})\.yml\b")
_DOCUMENTATION = ("DOCUMENTATION", "EXAMPLES", "RETURN")


def of_python(path: Path) -> Iterator[str]:
    """Return the texts of a program that may be printed: those that are no documentation."""
    tree = ast.parse(path.read_text("utf-8"))
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _DOCUMENTATION:
            left_out.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


def of_yaml(value: Any) -> Iterator[str]:
    """Return the texts in data, without those that include or import a file."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not str(key).startswith("ansible.builtin.import_playbook"):
                yield from of_yaml(one)
    elif isinstance(value, list):
        for one in value:
            yield from of_yaml(one)
    elif isinstance(value, str):
        yield value


def _texts() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in ("plugins", "playbooks", "roles"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found[pages.name(path)] = list(of_python(path))
        for path in sorted((ROOT / folder).rglob("*.yml")):
            if path.parent != ROOT / "plugins" / "filter":  # documentation of filters
                found[pages.name(path)] = list(of_yaml(yaml.safe_load(path.read_text("utf-8"))))
    return found


TEXTS = _texts()


def test_there_are_messages_that_name_a_playbook() -> None:
    assert sum(one.count("llmfleet.sglang.pin") for texts in TEXTS.values() for one in texts) > 3


@pytest.mark.parametrize("file", TEXTS)
def test_no_message_names_a_playbook_by_its_file(file: str) -> None:
    """Who has the collection installed has no playbooks/ in reach. A text without a blank is a file's own name."""
    assert not [one for one in TEXTS[file] if " " in one.strip() and _BY_FILE.search(one)]


def test_every_playbook_that_a_message_has_one_run_exists() -> None:
    named = {name for texts in TEXTS.values() for one in texts for name in re.findall(_RUN, one)}
    assert {"pin", "deploy"} <= named and not named - set(PLAYBOOKS)


_RUN = re.compile(r"ansible-playbook (?:llmfleet\.sglang\.)?([\w./]+)(?<!\.)")
