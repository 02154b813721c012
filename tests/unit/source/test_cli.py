"""The command line: the same logic on a tree, without Ansible."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.cli import main

from tests.unit.source.helpers import REPOSITORY, dict_edit, read_all, write

PACKAGE = REPOSITORY / "plugins" / "module_utils" / "_source"
FILES = {
    "root/a.py": "NAME = {\n    9: 1,\n}\n",
    "set.yml": "edits:\n  - id: e\n    dict_entry: {name: NAME, key: 12, value: '[]'}\n",
}
DIFF = """--- a.py (before)
+++ a.py (after)
@@ -1,3 +1,4 @@
 NAME = {
     9: 1,
+    12: [],
 }
"""


def call(tree: Path, *options: str) -> int:
    """Run the command line on the tree."""
    return main([str(tree / "root"), str(tree / "set.yml"), *options])


@pytest.mark.parametrize("command", [[str(PACKAGE / "edit.py")], ["-m", "_source.edit"]], ids=["file", "-m"])
def test_without_ansible(tmp_path: Path, command: list[str]) -> None:
    write(tmp_path, {**FILES, "set.json": json.dumps({"edits": [dict_edit()]})})
    result = subprocess.run(
        [
            sys.executable,
            "-I" if command[0] != "-m" else "-E",
            *command,
            str(tmp_path / "root"),
            str(tmp_path / "set.json"),
        ],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("entry: absent changed a.py:1\na.py: sha256 ")
    assert (tmp_path / "root/a.py").read_text() == "NAME = {\n    9: 1,\n    12: [],\n}\n"


def test_check_and_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, dict(FILES))
    before = read_all(tmp_path)
    assert call(tmp_path, "--check", "--diff") == 0
    assert capsys.readouterr().out.endswith(DIFF)
    assert read_all(tmp_path) == before


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, dict(FILES))
    before = read_all(tmp_path)
    assert call(tmp_path) == call(tmp_path) == 0
    assert "e: present a.py:1\n" in capsys.readouterr().out
    assert call(tmp_path, "--state", "absent") == 0
    assert read_all(tmp_path) == before


def test_json_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, dict(FILES))
    assert call(tmp_path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["changed"] and report["edits"][0]["state"] == "absent"


def test_one_edit_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, dict(FILES))
    assert call(tmp_path, "--only", "other") == 2
    assert "no edit is named other" in capsys.readouterr().err
    assert call(tmp_path, "--only", "e") == 0


ERRORS = {
    "no set": ({"set.yml": "edits: []"}, 2, "has no list `edits`"),
    "no YAML": ({"set.yml": "edits: ["}, 2, "neither JSON nor YAML"),
    "wrong edit": ({"set.yml": "edits: [{id: e}]"}, 2, "exactly one of dict_entry and gate"),
    "not found": ({"root/a.py": "x = 1\n"}, 1, "not_found: none of the 1 files"),
}


@pytest.mark.parametrize("files, code, message", ERRORS.values(), ids=ERRORS.keys())
def test_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], code: int, message: str
) -> None:
    write(tmp_path, {**FILES, **files})
    assert call(tmp_path) == code
    assert message in capsys.readouterr().err


def test_missing_patch_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "none.yml")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_patch_set_that_is_no_text_or_holds_no_mappings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**FILES, "set.yml": b"\xff\xfe"})
    assert call(tmp_path) == 2 and "is no UTF-8 text" in capsys.readouterr().err
    write(tmp_path, {"set.yml": "edits: [x]"})
    assert call(tmp_path, "--state", "absent") == 2 and "edit 1 is no mapping" in capsys.readouterr().err
    write(tmp_path, {"set.yml": FILES["set.yml"] + "    optional: 'false'\n"})
    assert call(tmp_path) == 2 and "optional is 'false', has to be true or false" in capsys.readouterr().err


def test_followed_link_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, dict(FILES))
    (tmp_path / "root/a.py").rename(tmp_path / "root/real")
    (tmp_path / "root/a.py").symlink_to("real")
    assert call(tmp_path) == 0 and "real (followed the link a.py): sha256 " in capsys.readouterr().out
