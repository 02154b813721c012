# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin for pytest: run the tests of what runs on a target, which needs no Ansible, on an old Python too.

Ansible's newest version needs Python 3.12, its modules 3.9. So the private logic, which is pure Python, is tested under
3.9 and 3.10 without Ansible: pytest -p tests.matrix.target_side tests/unit
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .pythons import ROOT

COLLECTION = "ansible_collections.llmfleet.sglang."
# What runs on the controller, what imports Ansible, and what tests this repository's own tools.
CONTROLLER = ("ansible", "fleet", "benchmarks", "jinja2", "testinfra")
PLUGINS = tuple(f"{COLLECTION}plugins.{kind}" for kind in ("action", "filter", "modules", "plugin_utils"))
OWN = ("test_house.py", "matrix", "docs", "fleet")


def imports(path: Path) -> Iterator[str]:
    """Name what a file imports, anywhere in it, and what of Ansible or the collection it starts."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and str(node.value).startswith(("ansible-", COLLECTION)):
            yield str(node.value).replace("ansible-", "ansible.", 1)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def needs_ansible(path: Path) -> bool:
    """Say whether a test, or a helper that it imports, needs Ansible or the controller's side."""
    for name in imports(path):
        if name.split(".")[0] in CONTROLLER or name.startswith(PLUGINS):
            return True
        helper = ROOT.joinpath(*name.removeprefix(COLLECTION).split(".")).with_suffix(".py")
        if name.removeprefix(COLLECTION).startswith("tests.") and helper.is_file() and needs_ansible(helper):
            return True
    return False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what cannot be tested without Ansible."""
    if OWN[0] == collection_path.name or set(OWN[1:]) & set(collection_path.relative_to(ROOT).parts):
        return True
    return True if collection_path.suffix == ".py" and needs_ansible(collection_path) else None
