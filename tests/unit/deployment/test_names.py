# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that is nearly one of ours would do nothing, and is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import names

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sglang_argumentz", "sglang_arguments"),
        ("sglang_serail", "sglang_serial"),
        ("sglang_failure_allowed", "sglang_failures_allowed"),
        ("sglang_drain_task", "sglang_drain_tasks"),
        ("sglang_modles", "sglang_models"),
        ("sgalng_port", "sglang_port"),
        ("slang_port", "sglang_port"),
        ("sglan_serial", "sglang_serial"),
        ("sglang_prot", "sglang_port"),
    ],
)
def test_a_slip_is_refused_with_the_name_that_is_meant(given: str, meant: str) -> None:
    [text] = names.slips(["ansible_host", given])
    assert text.startswith(f"{given} is no variable of this collection") and meant in text


@pytest.mark.parametrize(
    "given",
    ["sglang_rack", "sglang_own_note", "ansible_port", "site", "sg_arguments_of_mine", "golang_version", "slang_own"],
)
def test_an_operators_own_names_are_his(given: str) -> None:
    assert names.slips([given]) == []


def test_no_name_that_the_collection_itself_uses_is_taken_for_a_slip() -> None:
    files = [path for folder in ("playbooks", "roles", "inventories") for path in (ROOT / folder).rglob("*.yml")]
    used = {name for path in files for name in re.findall(r"\bsglang_[a-z0-9_]+", path.read_text())}
    assert len(used) > 100
    assert names.slips(sorted(used)) == []
