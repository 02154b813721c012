"""The filters around the source modules, and the shipped patch sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.source import (
    FilterModule,
    edit_line,
    gate_line,
    patch_set_edits,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import DictEntry, Gate, parse_edits

from tests.unit.source.helpers import REPOSITORY


def test_shipped_sets_are_valid_and_give_reasons() -> None:
    names = sorted(path.stem for path in (REPOSITORY / "playbooks/patch_sets").glob("*.yml"))
    assert names == ["sm120", "sm120_fusion"]
    edits = parse_edits(patch_set_edits(names))
    assert all(edit.reason and edit.since and edit.what.within for edit in edits)
    assert [type(edit.what) for edit in edits] == [DictEntry, DictEntry, Gate]
    assert [edit.on_conflict for edit in edits] == ["keep", "keep", "fail"]
    assert edits[1].what.wanted() == ("12", "[]", None)


def test_states_and_own_files(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text("edits: [{id: a}]\n")
    assert patch_set_edits(["sm120", str(path)], "absent")[2] == {"id": "a", "state": "absent"}
    assert len(patch_set_edits("sm120")) == 2
    path.write_text("name: x\n")
    with pytest.raises(AnsibleFilterError, match="has no list 'edits'"):
        patch_set_edits(str(path))
    with pytest.raises(AnsibleFilterError, match="Shipped are sm120, sm120_fusion"):
        patch_set_edits("sm121")


def test_lines() -> None:
    gate = {"file": "a.py", "line": 3, "function": "", "expression": "is_sm90()", "kind": "predicate", "falls": "out"}
    assert gate_line(gate) == "a.py:3: is_sm90() (predicate, falls out)"
    assert gate_line({**gate, "function": "f"}) == "a.py:3 f: is_sm90() (predicate, falls out)"
    edit = {"id": "e", "state": "absent", "changed": True, "file": "a.py", "line": 1, "message": ""}
    assert edit_line(edit) == "e: absent, changed a.py:1"
    assert edit_line({**edit, "file": None, "changed": False, "message": "why"}) == "e: absent - why"


def test_every_filter_is_documented() -> None:
    for name in FilterModule().filters():
        assert (REPOSITORY / "plugins/filter" / f"{name}.yml").is_file()
