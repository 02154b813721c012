# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of all findings and the code say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import CATALOGUE, ORDER
from ansible_collections.llmfleet.sglang.tests.unit.host import test_checks, test_fit

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| `(\w+)` \| ([\w, ]+) \|", re.MULTILINE)
# Severities that have a test of their own instead of a row.
OTHERS = {("disk", "warns"), ("gpu_memory", "blocks"), ("gpu_hardly_seen", "informs"), ("gpu_starved", "warns")}
OTHERS |= {("memory_fit", severity) for severity in ORDER}


def rows() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "preflight.md").read_text("utf-8")
    found = ROW.findall(text)
    assert len(found) == len({name for name, _severities in found}), "a finding is on the page twice"
    return {name: set(severities.split(", ")) for name, severities in found}


def emitted() -> set[str]:
    """Every identifier that the code makes a finding of, read from its source."""
    names = set()
    for path in (ROOT / "plugins" / "module_utils").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Finding"
                and node.args
            ):
                assert isinstance(node.args[0], ast.Constant), path
                names.add(str(node.args[0].value))
    return names


def test_the_page_has_every_finding_that_the_code_can_emit_and_no_other() -> None:
    assert set(rows()) == set(CATALOGUE) == emitted()


def test_the_page_has_every_severity_that_is_tested_and_no_other() -> None:
    tested = {(name, severity) for _changes, name, severity, _words in test_checks.BAD} | OTHERS
    tested |= {(name, severity) for _changes, _wanted, name, severity, _words in test_fit.BAD}
    assert {(name, severity) for name, severities in rows().items() for severity in severities} == tested
