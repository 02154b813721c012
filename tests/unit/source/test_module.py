"""The module: arguments in, report out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible.release import __version__ as ansible_version
from ansible_collections.llmfleet.sglang.plugins.modules import python_source

from tests.unit.source.helpers import dict_edit, gate_edit, read_all, write

TEXT = "NAME = {\n    9: 1,\n}\n"


def run(capsys: pytest.CaptureFixture[str], root: Path, *edits: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run the module; return what it prints."""
    with patch_module_args({"root": str(root), "edits": list(edits), **options}), pytest.raises(SystemExit):
        python_source.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    foretold = run(capsys, root, dict_edit(), _ansible_check_mode=True, _ansible_diff=True)
    assert read_all(root) == {"a.py": TEXT.encode()}
    result = run(capsys, root, dict_edit(), _ansible_diff=True)
    for told in (foretold, result):
        told.pop("invocation", None)  # the arguments, which Ansible tells up to 2.20
    assert foretold == result and result["changed"]
    assert result["diff"][0]["prepared"].splitlines()[5] == "+    12: [],"
    second = run(capsys, root, dict_edit())
    assert not second["changed"] and "diff" not in second and "warnings" not in second
    assert run(capsys, root, dict_edit(state="absent"))["changed"]
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_failure_says_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"a.py": TEXT + "NAME = {}\n"})
    result = run(capsys, root, dict_edit())
    assert result["failed"] and result["msg"].endswith("; nothing was written") and not result["changed"]
    assert result["edits"][0]["candidates"] == ["a.py:1 (NAME)", "a.py:4 (NAME)"]


def test_on_conflict_of_the_module_and_of_the_edit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"a.py": "NAME = {12: 1}\n"})
    assert run(capsys, root, dict_edit())["failed"]
    assert run(capsys, root, dict_edit(), on_conflict="keep")["edits"][0]["state"] == "conflict"
    assert run(capsys, root, dict_edit(on_conflict="fail"), on_conflict="keep")["failed"]


@pytest.mark.parametrize(
    "edit, message",
    [
        ({"id": "a"}, "one of the following is required: dict_entry, gate"),
        ({**dict_edit(), "gate": gate_edit()["gate"]}, "mutually exclusive"),
        (dict_edit("12", None), "one of value and like are needed"),
        (dict_edit("12", "1 +"), "is no Python expression"),
        (dict_edit(state="gone"), "value of state must be one of"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: dict[str, Any], message: str
) -> None:
    assert message in run(capsys, tmp_path, edit)["msg"]


def test_keys_are_no_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    # Ansible 2.21 tells the arguments if it is asked to; before, it always does.
    asked = {"_ansible_inject_invocation": True} if ansible_version >= "2.21" else {}
    result = run(capsys, root, dict_edit(), **asked)
    assert result["invocation"]["module_args"]["edits"][0]["dict_entry"]["key"] == "12"


def test_documented_is_returned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    result = run(capsys, root, dict_edit())
    documented = yaml.safe_load(python_source.RETURN)
    assert set(documented) == set(result) - {"changed", "invocation"}
    for name in ("edits", "files"):
        assert set(documented[name]["contains"]) == set(result[name][0])


def test_documented_options_are_those_of_the_argument_spec() -> None:
    options = yaml.safe_load(python_source.DOCUMENTATION)["options"]["edits"]["suboptions"]
    assert set(options) == set(python_source.EDIT)
    assert set(options["dict_entry"]["suboptions"]) == set(python_source.DICT_ENTRY)
    assert set(options["gate"]["suboptions"]) == set(python_source.GATE)


def test_examples_are_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for task in yaml.safe_load(python_source.EXAMPLES):
        options = task["llmfleet.sglang.python_source"]
        message = run(capsys, tmp_path / "none", *options["edits"])["msg"]
        assert re.fullmatch(r"root .* does not exist; nothing was written", message)
