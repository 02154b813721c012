"""Dict entries: where the text goes, and that nothing else moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.source.helpers import dict_edit, do, done, write

PLACES = {
    "trailing comma": ("NAME = {\n    9: [4],\n}\n", "NAME = {\n    9: [4],\n    12: [],\n}\n"),
    "no trailing comma": ("NAME = {\n    9: [4]\n}\n", "NAME = {\n    9: [4],\n    12: []\n}\n"),
    "comment after the comma": ("NAME = {\n    9: [4],  # a\n}\n", "NAME = {\n    9: [4],  # a\n    12: [],\n}\n"),
    "comment, no comma": ("NAME = {\n    9: [4]  # a\n}\n", "NAME = {\n    9: [4],  # a\n    12: []\n}\n"),
    "comment after the last entry": (
        "NAME = {\n    9: [4],\n    # more to come, {9: 1}\n}\n",
        "NAME = {\n    9: [4],\n    12: [],\n    # more to come, {9: 1}\n}\n",
    ),
    "comment inside the value": (
        "NAME = {\n    9: [\n        4,  # ]\n    ],\n}\n",
        "NAME = {\n    9: [\n        4,  # ]\n    ],\n    12: [],\n}\n",
    ),
    "one line": ("NAME = {9: [4], 10: [6]}\n", "NAME = {9: [4], 10: [6], 12: []}\n"),
    "one line, trailing comma": ("NAME = {9: [4],}\n", "NAME = {9: [4], 12: [],}\n"),
    "one line, spaces": ("NAME = { 9: [4] }  # end\n", "NAME = { 9: [4], 12: [] }  # end\n"),
    "empty": ("NAME = {}\n", "NAME = {12: []}\n"),
    "empty, spaces": ("NAME = { }\n", "NAME = { 12: []}\n"),
    "empty over lines": ("NAME = {\n}\n", "NAME = {\n    12: [],\n}\n"),
    "empty with a comment": ("NAME = {  # none\n    # yet\n}\n", "NAME = {  # none\n    # yet\n    12: [],\n}\n"),
    "entries share a line": ("NAME = {\n    9: 1, 10: 2,\n}\n", "NAME = {\n    9: 1, 10: 2, 12: [],\n}\n"),
    "brace on the last line": ("NAME = {9: 1,\n        10: 2}\n", "NAME = {9: 1,\n        10: 2, 12: []}\n"),
    "comma in front": ("NAME = {\n    9: 1\n    , 10: 2\n}\n", "NAME = {\n    9: 1\n    , 10: 2, 12: []\n}\n"),
    "comma on its own line": ("NAME = {\n    9: 1\n    ,\n}\n", "NAME = {\n    9: 1, 12: []\n    ,\n}\n"),
    "value in parentheses": ("NAME = {\n    9: (1),\n}\n", "NAME = {\n    9: (1),\n    12: [],\n}\n"),
    "value in parentheses over lines": (
        "NAME = {\n    9: (\n        1\n    )\n}\n",
        "NAME = {\n    9: (\n        1\n    ),\n    12: []\n}\n",
    ),
    "key in parentheses": ("NAME = {\n    (9): 1,\n}\n", "NAME = {\n    (9): 1, 12: [],\n}\n"),
    "whole in parentheses": ("NAME = (\n    {9: 1}\n)\n", "NAME = (\n    {9: 1, 12: []}\n)\n"),
    "tabs": ("class A:\n\tNAME = {\n\t\t9: 1,\n\t}\n", "class A:\n\tNAME = {\n\t\t9: 1,\n\t\t12: [],\n\t}\n"),
    "form feed": ("\x0c\nNAME = {\n    9: 1,\x0c\n}\n\x0c", "\x0c\nNAME = {\n    9: 1,\x0c\n    12: [],\n}\n\x0c"),
    "no newline at the end": ("NAME = {\n    9: 1,\n}", "NAME = {\n    9: 1,\n    12: [],\n}"),
    "one line, no newline at the end": ("NAME = {9: 1}", "NAME = {9: 1, 12: []}"),
    "non-ASCII before it": ("a = 'äöü€😀'; NAME = {9: 'é'}\n", "a = 'äöü€😀'; NAME = {9: 'é', 12: []}\n"),
    "class body": ("class A:\n    NAME = {9: 1}\n", "class A:\n    NAME = {9: 1, 12: []}\n"),
    "nested class": ("class A:\n  class B:\n    NAME = {9: 1}\n", "class A:\n  class B:\n    NAME = {9: 1, 12: []}\n"),
    "function": ("def f():\n    NAME = {9: 1}\n", "def f():\n    NAME = {9: 1, 12: []}\n"),
    "under if": ("if x:\n    NAME = {9: 1}\n", "if x:\n    NAME = {9: 1, 12: []}\n"),
    "under except": (
        "try:\n    import a\nexcept ImportError:\n    NAME = {9: 1}\n",
        "try:\n    import a\nexcept ImportError:\n    NAME = {9: 1, 12: []}\n",
    ),
    "annotated": ("NAME: dict[int, list[int]] = {9: [1]}\n", "NAME: dict[int, list[int]] = {9: [1], 12: []}\n"),
    "two targets": ("OTHER = NAME = {9: 1}\n", "OTHER = NAME = {9: 1, 12: []}\n"),
    "nested dicts": ("NAME = {9: {1: {2: 3}}}\n", "NAME = {9: {1: {2: 3}}, 12: []}\n"),
    "lambda as the last value": ("NAME = {9: lambda: 1}\n", "NAME = {9: lambda: 1, 12: []}\n"),
    "continuation": ("NAME = \\\n    {9: 1}\n", "NAME = \\\n    {9: 1, 12: []}\n"),
    "docstring and future": (
        '"""NAME = {}"""\nfrom __future__ import annotations\nNAME = {9: 1}\n',
        '"""NAME = {}"""\nfrom __future__ import annotations\nNAME = {9: 1, 12: []}\n',
    ),
    "braces in strings": ("NAME = {9: '}', 10: '''\n}'''}\n", "NAME = {9: '}', 10: '''\n}''', 12: []}\n"),
    "keys that are expressions": (
        "B = 3\nNAME = {B * 3: 1, -(1 + 1): 2}\n",
        "B = 3\nNAME = {B * 3: 1, -(1 + 1): 2, 12: []}\n",
    ),
}


@pytest.mark.parametrize("before, after", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_place(tmp_path: Path, before: str, after: str, newline: str) -> None:
    root = write(tmp_path, {"a.py": before.replace("\n", newline)})
    report = done(root, dict_edit())
    assert (root / "a.py").read_bytes().decode() == after.replace("\n", newline)
    assert [(edit.state, edit.changed, edit.file) for edit in report.edits] == [("absent", True, "a.py")]


KEYS = {
    "string": ("NAME = {'a': 1}\n", "'b'", "NAME = {'a': 1, 'b': []}\n"),
    "tuple": ("NAME = {(9, 0): 1}\n", "(12, 0)", "NAME = {(9, 0): 1, (12, 0): []}\n"),
    "negative": ("NAME = {-9: 1}\n", "-12", "NAME = {-9: 1, -12: []}\n"),
    "expression": ("NAME = {1 << 3: 1}\n", "1 << 4", "NAME = {1 << 3: 1, 1 << 4: []}\n"),
    "name": ("A = 1\nB = 2\nNAME = {A: 1}\n", "B", "A = 1\nB = 2\nNAME = {A: 1, B: []}\n"),
    "None": ("NAME = {None: 1}\n", "...", None),
    "empty dict takes any": ("NAME = {}\n", "'b'", "NAME = {'b': []}\n"),
}


@pytest.mark.parametrize("before, key, after", KEYS.values(), ids=KEYS.keys())
def test_key(tmp_path: Path, before: str, key: str, after: str | None) -> None:
    root = write(tmp_path, {"a.py": before})
    if after is None:
        assert "keys of type NoneType" in do(root, dict_edit(key)).failed
        return
    done(root, dict_edit(key))
    assert (root / "a.py").read_text() == after


def test_several_values_and_names(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "K = 2\nNAME = {\n    9: 1,\n}\nB = {1: 2}\n"})
    other = {**dict_edit("2", "(K, max(K, 3))", name=["A", "B"]), "id": "other"}
    done(root, dict_edit("12", "[\n    K,\n    *(i for i in range(K)),\n]"), other)
    assert (root / "a.py").read_text() == (
        "K = 2\nNAME = {\n    9: 1,\n    12: [\n        K,\n        *(i for i in range(K)),\n    ],\n}\n"
        "B = {1: 2, 2: (K, max(K, 3))}\n"
    )


LIKE = {
    "verbatim": (
        "M = 4\nNAME = {\n    9: 1,\n    10: {\n        2: 64 * M,  # 64 MB\n    },\n}\n",
        "M = 4\nNAME = {\n    9: 1,\n    10: {\n        2: 64 * M,  # 64 MB\n    },\n"
        "    12: {\n        2: 64 * M,  # 64 MB\n    },\n}\n",
    ),
    "parentheses": ("NAME = {10: ((1)), 9: 2}\n", "NAME = {10: ((1)), 9: 2, 12: ((1))}\n"),
    "key in parentheses": ("NAME = {(10): 1}\n", "NAME = {(10): 1, 12: 1}\n"),
}


@pytest.mark.parametrize("before, after", LIKE.values(), ids=LIKE.keys())
def test_like(tmp_path: Path, before: str, after: str) -> None:
    root = write(tmp_path, {"a.py": before})
    done(root, dict_edit(like="10"))
    assert (root / "a.py").read_text() == after


def test_qualified_name(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "class A:\n    NAME = {9: 1}\nclass B:\n    NAME = {9: 1}\n"})
    done(root, dict_edit(name=["B.NAME"]))
    assert (root / "a.py").read_text() == "class A:\n    NAME = {9: 1}\nclass B:\n    NAME = {9: 1, 12: []}\n"


UPSTREAM = {
    "same text": "NAME = {12: []}\n",
    "other spelling": "NAME = {0xC: [ ]}\n",
    "key by name": "TWELVE = 12\nNAME = {TWELVE: []}\n",
}


@pytest.mark.parametrize("text", UPSTREAM.values(), ids=UPSTREAM.keys())
def test_upstream(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"a.py": text})
    for state in ("present", "absent"):
        report = do(root, dict_edit(), state=state)
        assert not report.failed and not report.changed
        assert report.edits[0].state == "upstream"
    assert (root / "a.py").read_text() == text
    assert not (root / ".python_source.json").exists()


MEANINGS = [
    ("64 * 1024", "65536", "upstream"),
    ("64 * K", "1 << 16", "upstream"),
    ("{2: K}", "{2: 1024}", "upstream"),
    ("[1]", "(1,)", "conflict"),
    ("True", "1", "conflict"),
    ("1.0", "1", "conflict"),
    ("f(1)", "f(1)", "upstream"),
    ("f(1)", "f(2)", "conflict"),
]


@pytest.mark.parametrize("found, wanted, state", MEANINGS)
def test_meaning(tmp_path: Path, found: str, wanted: str, state: str) -> None:
    root = write(tmp_path, {"a.py": f"K = 1024\nNAME = {{12: {found}}}\n"})
    report = do(root, dict_edit("12", wanted, on_conflict="keep"))
    assert report.edits[0].state == state
    assert not report.changed and not report.failed
    strict = do(root, dict_edit("12", wanted))
    assert bool(strict.failed) == (state == "conflict")
    if state == "conflict":
        assert "a.py:2" in strict.failed and "another meaning" in strict.failed
