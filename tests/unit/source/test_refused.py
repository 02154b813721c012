"""What cannot be done safely is refused with file, line and reason, and nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._source import tree
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SpecError
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import parse_edits

from tests.unit.source.helpers import Text, dict_edit, do, gate_edit, read_all, write
from tests.unit.source.test_gate import GATE, HEAD, LIB

GOOD = {"good.py": "OTHER = {9: 1}\n"}
GOOD_EDIT = {**dict_edit(name=["OTHER"]), "id": "good"}
DICTS: dict[str, tuple[Text, str]] = {
    "syntax error": ("x = 1\nNAME = {9: 1\n", "a.py:2: does not parse"),
    "null byte": ("NAME = {9: 1}\x00\n", "a.py:1: does not parse"),
    "no text": (b"NAME = {9: '\xff'}\n", "a.py:1: cannot be read as Python text"),
    "wrong cookie": ("# coding: nonsense\nNAME = {}\n", "a.py:1: cannot be read as Python text"),
    "duplicate of the key": ("NAME = {\n    12: 1,\n    12: 2,\n}\n", "a.py:3: NAME has the key 12 twice"),
    "duplicate of another key": ("NAME = {\n    9: 1,\n    0x9: 2,\n}\n", "a.py:3: NAME has the key 0x9 twice"),
    "duplicate by type": ("NAME = {1: 1, True: 2}\n", "a.py:1: NAME has the key True twice"),
    "string keys": ("NAME = {'9': 1, '10': 2}\n", "a.py:1: NAME has keys of type str, the key 12 is int"),
    "tuple keys": ("NAME = {(9, 0): 1}\n", "a.py:1: NAME has keys of type tuple"),
    "call": ("NAME = dict(a=1)\n", "a.py:1: NAME is built by a call"),
    "comprehension": ("NAME = {x: 1 for x in (9, 10)}\n", "a.py:1: NAME is built by a comprehension"),
    "union": ("NAME = {9: 1} | {10: 2}\n", "a.py:1: NAME is not a dict literal"),
    "unpacking": ("B = {}\nNAME = {**B, 9: 1}\n", "a.py:2: NAME unpacks another mapping"),
    "key set later": ("NAME = {9: 1}\n\nNAME[12] = 2\n", "a.py:3: NAME[12] = … changes NAME (a.py:1)"),
    "key of unknown value set later": ("NAME = {9: 1}\nNAME[k] = 2\n", "a.py:2: NAME[k] = …"),
    "key deleted later": ("NAME = {9: 1}\ndel NAME[12]\n", "a.py:2: del NAME[12]"),
    "update": ("NAME = {9: 1}\nif x:\n    NAME.update({12: 3})\n", "a.py:3: NAME.update(…) changes NAME"),
    "setdefault": ("NAME = {9: 1}\nNAME.setdefault(12, 3)\n", "a.py:2: NAME.setdefault(…)"),
    "or-assignment": ("NAME = {9: 1}\nNAME |= {12: 3}\n", "a.py:2: NAME |= …"),
    "del": ("NAME = {9: 1}\ndel NAME\n", "a.py:2: del NAME"),
    "through the class": ("class A:\n    NAME = {9: 1}\nA.NAME[12] = 1\n", "a.py:3: A.NAME[12] = …"),
    "through self": (
        "class A:\n    NAME = {9: 1}\n    def f(self):\n        self.NAME.clear()\n",
        "a.py:4: NAME.clear(…)",
    ),
    "assigned again": ("NAME = {9: 1}\nNAME = f(NAME)\n", "a.py:2: NAME is assigned again here"),
    "mixed line endings": (b"NAME = {\r\n    9: 1,\n}\r\n", "a.py:1: mixed line endings"),
    "too deep": ("NAME = {9: " + "(" * 500 + "1" + ")" * 500 + "}\n", "a.py:1: does not parse"),
}


@pytest.mark.parametrize("text, message", DICTS.values(), ids=DICTS.keys())
def test_dict(tmp_path: Path, text: Text, message: str) -> None:
    root = write(tmp_path, {**GOOD, "a.py": text})
    before = read_all(root)
    for check in (True, False):
        report = do(root, GOOD_EDIT, dict_edit(on_conflict="keep", optional=True), check=check)
        assert message in report.failed
        assert not report.changed and not report.diff and not any(edit.changed for edit in report.edits)
    assert read_all(root) == before


def test_dict_changed_in_a_file_that_imports_it(tmp_path: Path) -> None:
    files = {"a.py": "NAME = {9: 1}\n", "b.py": "from a import NAME\nNAME.update({})\n"}
    root = write(tmp_path, dict(files))
    assert "b.py:2: NAME.update(…) changes NAME (a.py:1)" in do(root, dict_edit()).failed
    write(root, {"b.py": "from a import NAME\nNAME[13] = 1\nprint(NAME[12], NAME.get(12))\n"})
    assert not do(root, dict_edit()).failed


HARMLESS = {
    "argument": "NAME = {9: 1}\ndef f(NAME):\n    NAME.update(x)\n",
    "method and class body": "class A:\n    NAME = {9: 1}\n    def f(self):\n        NAME = {}; NAME[k] = 1\n",
    "function of a function": "def g():\n    NAME = {9: 1}\n    return NAME\ndef f(NAME):\n    NAME.update(x)\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_other_dicts_of_the_same_name_may_change(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"a.py": text})
    name = text.partition(" = {9")[0].split()[-1]
    where = {"class A:\n    N": ["A.NAME"], "def g():\n    N": ["g.NAME"]}.get(text[:14], [name])
    assert not do(root, dict_edit(name=where)).failed


def test_a_local_dict_of_the_same_name_is_a_second_place(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\ndef f():\n    NAME = {}\n    NAME[k] = 1\n"})
    assert "2 places match: a.py:1 (NAME), a.py:3 (f.NAME)" in do(root, dict_edit()).failed


GLOBAL = "NAME = {9: 1}\ndef f():\n    global NAME\n    NAME[k] = 1\n"


def test_change_through_global(tmp_path: Path) -> None:
    assert "a.py:4: NAME[k] = …" in do(write(tmp_path, {"a.py": GLOBAL}), dict_edit()).failed


def test_another_key_set_later_is_fine(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\nNAME[13] = 1\nOTHER.update(NAME)\n"})
    assert not do(root, dict_edit()).failed


VALUES = {
    "undefined": ("64 * MiB", "the value names MiB, which is not defined there"),
    "defined later": ("64 * LATER", "the value names LATER, which is defined only later, in line 2"),
    "key undefined": ("1", "the value names TWELVE, which is not defined there"),
}


@pytest.mark.parametrize("value, message", VALUES.values(), ids=VALUES.keys())
def test_names_of_the_value(tmp_path: Path, value: str, message: str) -> None:
    root = write(tmp_path, {**GOOD, "a.py": "NAME = {}\nLATER = 1\n"})
    report = do(root, GOOD_EDIT, dict_edit("TWELVE" if value == "1" else "12", value))
    assert f"a.py:1: {message}" in report.failed
    assert read_all(root) == {"good.py": b"OTHER = {9: 1}\n", "a.py": b"NAME = {}\nLATER = 1\n"}


@pytest.mark.parametrize(
    "value", ["", "1 +", "x = 1", "1, 2", "1, 13: 2", "*a", "**a", "1}\nx = {2: 3", "pass", "a: 1", "1  # c"]
)
def test_value_is_one_expression(value: str) -> None:
    with pytest.raises(SpecError, match=r"value: .* is no"):
        parse_edits([dict_edit("12", value)])


def test_value_that_the_encoding_lacks(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "# coding: latin-1\nNAME = {}\n"})
    assert "its encoding iso-8859-1 has no way to write" in do(root, dict_edit("12", "'€'")).failed


def test_no_entry_to_be_like(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\n"})
    assert "a.py:1: NAME has no key 10 to be like" in do(root, dict_edit(like="10")).failed


GATES = {
    "no such name": (HEAD + GATE, "def is_sm90(): pass\ndef is_sm100(): pass\n", "is_sm120 does not exist in lib.py"),
    "no such module": (HEAD.replace("lib", "lab") + GATE, LIB, "a.py:1: lab, which would have to provide is_sm120"),
    "private star": (
        HEAD.replace("lib", "star").replace("is_sm", "_is_sm").replace("__is", "__is") + GATE.replace("_is", "__is"),
        "def _is_sm90(): pass\ndef _is_sm100(): pass\ndef _is_sm120(): pass\n",
        "_is_sm120 does not exist in star.py",
    ),
    "sibling not bound": (GATE, LIB, "a.py: _is_sm100, which _is_sm120 is to be made like, is not bound"),
    "sibling bound in a loop": (
        HEAD + "for _is_sm100 in (1, 2): pass\n" + GATE,
        LIB,
        "a.py:4: _is_sm100 is bound here",
    ),
    "sibling is an argument": (GATE.replace("()", "(_is_sm100=1)"), LIB, "a.py:1: _is_sm100 is bound here"),
    "sibling is a function": ("def _is_sm100(): pass\n" + GATE, LIB, "a.py:1: _is_sm100 is bound here"),
    "nothing to change": ("_is_sm100 = f(True)\n" + GATE, LIB, "a.py:1: this definition names no sm100"),
    "attribute not known": (
        "from lib import get\n_is_sm100 = get().is_sm100\n" + GATE,
        "def get(): pass\n",
        "a.py:2: get() is not known to have is_sm120",
    ),
    **{
        f"number, {text}": (f"_is_sm90 = 1\n_is_sm100 = {text}\n" + GATE, LIB, "may be about sm100 or not")
        for text in (
            "100 <= get_device_sm() < 110",
            "10 <= major < 11",
            "major >= 10",
            "major != 10",
            "major == 10 and torch_version >= (2, 10)",
            "version == 10",
            "check(majors=[10], retries=10)",
            "sm in (100, 103)",
            "cap in [(10, 0), (10, 3)]",
            "check('sm100') and major == 10",
            "arch == 'sm100'",
        )
    },
    "name and number": (
        HEAD.replace("is_sm100()", "is_sm100() and major == 10") + GATE,
        LIB,
        "a.py:3: 10 here may be about sm100",
    ),
    "true as a fallback": (
        "try:\n    from lib import is_sm90, is_sm100\nexcept ImportError:\n    is_sm100 = True\n"
        "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n" + GATE,
        LIB,
        "a.py:4: this definition names no sm100",
    ),
    "set by a function": (
        HEAD + "def f():\n    global _is_sm100\n    _is_sm100 = 0\n" + GATE,
        LIB,
        "a.py:4: f sets _is_sm100 too",
    ),
    "no gate": (
        HEAD + "def gate():\n    return _is_sm90 and _is_sm100\n",
        LIB,
        "the function is there without it: a.py:4",
    ),
    "one term left": (
        HEAD + "def gate():\n    return _is_sm100\n",
        LIB,
        "has an `or` of _is_sm90 and _is_sm100 in gate",
    ),
    "other function": (HEAD + GATE.replace("gate", "gates"), LIB, "has an `or` of _is_sm90 and _is_sm100 in gate"),
    "twice": (HEAD + GATE + GATE, LIB, "2 places match: a.py:5 (gate), a.py:7 (gate)"),
    "in an f-string": (HEAD + "def gate():\n    return f'{_is_sm90 or _is_sm100}'\n", LIB, "has an `or` of"),
}


@pytest.mark.parametrize("text, lib, message", GATES.values(), ids=GATES.keys())
def test_gate(tmp_path: Path, text: str, lib: str, message: str) -> None:
    root = write(tmp_path, {**GOOD, "a.py": text, "lib.py": lib, "star.py": "from lib import *\n"})
    before = read_all(root)
    edit = gate_edit()
    if "__is" in text:
        edit = gate_edit(all_of=["__is_sm90", "__is_sm100"], add="__is_sm120", like="__is_sm100")
    for check in (True, False):
        report = do(root, GOOD_EDIT, edit, check=check)
        assert message in report.failed
    assert read_all(root) == before


def test_newer_source_says_which_python(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\nnot yet Python ?\n", "pyproject.toml": 'requires-python = ">=3.99"\n'})
    message = do(root, dict_edit()).failed
    assert "a.py:2" in message and "the tree asks for >=3.99" in message and "run with the Python" in message


def test_two_dicts_are_ambiguous(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n", "b/c.py": "\nclass A:\n    NAME = {}\n"})
    report = do(root, dict_edit())
    assert report.edits[0].state == "ambiguous"
    assert report.edits[0].candidates == ["a.py:1 (NAME)", "b/c.py:3 (A.NAME)"]
    assert "a.py:1" in report.failed and "b/c.py:3" in report.failed
    assert not do(root, dict_edit(optional=True)).failed


def test_not_found_says_where_it_looked_and_how_old_the_tree_is(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "OTHER = {}\n", "pack/version.py": '__version__ = "0.4.9"\n'})
    report = do(root, dict_edit(since="0.5.3"))
    assert report.edits[0].state == "not_found"
    assert "none of the 2 files in **/*.py has an assignment to NAME" in report.failed
    assert "from 0.5.3 on; this tree says it is 0.4.9" in report.failed
    nothing = do(root, dict_edit(within=["b/*.py"]))
    assert "no file matches b/*.py" in nothing.failed
    assert not do(root, dict_edit(optional=True), GOOD_EDIT | {"optional": True}).failed


def test_chain_longer_than_the_stack_is_deep(tmp_path: Path) -> None:
    chain = "if x == 0: pass\n" + "".join(f"elif x == {number}: pass\n" for number in range(1, 1500))
    root = write(tmp_path, {"a.py": f"MiB = 1\n{chain}NAME = {{9: 1}}\n"})
    report = do(root, dict_edit("12", "64 * MiB"))
    # whether Python itself compiles this depends on its version; an answer there is in any case
    assert report.edits[0].state == "absent" and (
        report.changed or "nested" in report.failed or "compile" in report.failed
    )


@pytest.mark.parametrize("pattern", [".", "./.", "../*.py", "/etc/*.py", "a/../../b.py", "", "a//b.py"])
def test_within_stays_below_the_root(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, {"x.py": "NAME = {}\n", "root/a.py": ""})
    if not pattern:
        with pytest.raises(SpecError):
            parse_edits([dict_edit(within=[pattern])])
        return
    assert "leaves the root" in do(tmp_path / "root", dict_edit(within=[pattern])).failed


def test_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FILE_BYTES", 100)
    root = write(tmp_path, {"a.py": "NAME = {}\n" + "#" * 100})
    assert "a.py: is 110 bytes long, more than the limit of 100" in do(root, dict_edit()).failed


def test_read_only_file(tmp_path: Path) -> None:
    root = write(tmp_path, {**GOOD, "a.py": "NAME = {}\n"})
    (root / "a.py").chmod(0o444)
    for check in (True, False):
        assert "a.py: is read-only" in do(root, GOOD_EDIT, dict_edit(), check=check).failed
    assert set(read_all(root)) == {"a.py", "good.py"}


def test_missing_root_and_no_plain_file(tmp_path: Path) -> None:
    assert "does not exist" in do(tmp_path / "none", dict_edit()).failed
    os.mkfifo(tmp_path / "a.py")
    assert "no file matches" in do(tmp_path, dict_edit()).failed
    assert "is no plain file" in do(tmp_path / "a.py", dict_edit()).failed


SPECS = {
    "no id": ({"dict_entry": {}}, "id is missing"),
    "nothing": ({"id": "a"}, "exactly one of dict_entry and gate"),
    "both": ({"id": "a", "dict_entry": {"key": "1"}, "gate": {"add": "x"}}, "exactly one of dict_entry and gate"),
    "unknown": ({"id": "a", "dict": {}}, "unknown option dict"),
    "unknown inside": ({"id": "a", "dict_entry": {"names": "x"}}, "unknown option names"),
    "value and like": (
        dict_edit(like="1") | {"dict_entry": {"name": "N", "key": "1", "value": "1", "like": "2"}},
        "one of",
    ),
    "state": (dict_edit(state="there"), "state is 'there'"),
    "list": (dict_edit(name=[1]), "name has to be a list of strings"),
    "like elsewhere": (gate_edit(like="other"), "like has to be one of all_of"),
    "add in all_of": (gate_edit(add="_is_sm90"), "add none of them"),
    "term": (gate_edit(add="a + b"), "is no name, attribute or call"),
    "key": (dict_edit("1, 2"), "is not one expression"),
    "no mapping": ("x", "is no mapping"),
}


@pytest.mark.parametrize("edit, message", SPECS.values(), ids=SPECS.keys())
def test_spec(edit: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_edits([edit])


def test_same_id_twice_and_words_that_are_not_alike(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="edit 2 has the id 'entry' of edit 1"):
        parse_edits([dict_edit(), dict_edit()])
    root = write(tmp_path, {"lib.py": LIB, "a.py": HEAD + GATE})
    assert "have to differ in exactly one word" in do(root, gate_edit(add="has_sm120")).failed


def test_two_edits_want_the_same_place(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n"})
    one, two = dict_edit(), {**dict_edit("0xC", "1"), "id": "two"}
    assert "the edits entry and two want the same place" in do(root, one, two).failed
    assert read_all(root) == {"a.py": b"NAME = {}\n"}
