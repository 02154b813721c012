"""What the tests of the structural edits share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from ansible_collections.llmfleet.sglang.plugins.module_utils._source.engine import Report, run
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import parse_edits

REPOSITORY = Path(__file__).resolve().parents[3]
RECORD = ".python_source.json"
Text = Union[str, bytes]
OWN: tuple[str, ...] = ("id", "state", "on_conflict", "optional", "since")


def write(root: Path, files: Mapping[str, Text]) -> Path:
    """Write files (text as UTF-8, newlines as they are) below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def read_all(root: Path) -> dict[str, bytes]:
    """Return every file below `root`, hidden ones too."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def dict_edit(key: str = "12", value: str | None = "[]", **options: Any) -> dict[str, Any]:
    """Return a dict edit of NAME; options of the edit itself go to the edit."""
    own = {name: options.pop(name) for name in OWN if name in options}
    entry = {"name": ["NAME"], "within": ["**/*.py"], "key": key, **options}
    if "like" not in entry:
        entry["value"] = value
    return {"id": "entry", **own, "dict_entry": entry}


def gate_edit(**options: Any) -> dict[str, Any]:
    """Return a gate edit of `sm90 or sm100`; options of the edit itself go to the edit."""
    own = {name: options.pop(name) for name in OWN if name in options}
    gate = {
        "all_of": ["_is_sm90", "_is_sm100"],
        "within": ["**/*.py"],
        "function": ["gate"],
        "add": "_is_sm120",
        "like": "_is_sm100",
        **options,
    }
    return {"id": "gate", **own, "gate": gate}


def do(root: Path, *edits: dict[str, Any], check: bool = False, **override: Any) -> Report:
    """Run edits in a tree."""
    return run(str(root), parse_edits([{**edit, **override} for edit in edits]), check)


def done(root: Path, *edits: dict[str, Any]) -> Report:
    """Run edits, show that a second run changes nothing, that check mode said the same, and that they go back."""
    before = read_all(root)
    foretold = do(root, *edits, check=True)
    assert read_all(root) == before
    report = do(root, *edits)
    assert not report.failed, report.failed
    assert {**foretold.to_data()} == {**report.to_data()}
    after = read_all(root)
    again = do(root, *edits)
    assert not again.failed and not again.changed
    assert read_all(root) == after
    back = do(root, *edits, state="absent")
    assert not back.failed, back.failed
    assert read_all(root) == before
    assert [edit.state for edit in back.edits] == ["present" if e.changed else e.state for e in report.edits]
    write(root, dict(after))
    return report
