"""What replaces or changes a dict after it was made, and so undoes an edit, is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.source.helpers import dict_edit, do, done, read_all, write

MODULE = {
    "tuple": "NAME, E = {9: 1}, 2",
    "list": "[NAME] = [{}]",
    "walrus": "(NAME := {9: 2})",
    "import": "from u import NAME",
    "import as": "import u as NAME",
    "def": "def NAME(): pass",
    "class": "class NAME: pass",
    "for": "for NAME in ({},): pass",
    "with": "with f() as NAME: pass",
    "except": "try: pass\nexcept E as NAME: pass",
    "global": "def f():\n    global NAME\n    NAME = load()",
    "globals": "globals()['NAME'] = {}",
    "globals, key": "globals()['NAME'][12] = 1",
    "setattr": "setattr(x, 'NAME', {})",
    "other name": "OTHER = NAME\nOTHER[12] = 1",
    "__ior__": "NAME.__ior__({12: 1})",
    "dict.update": "dict.update(NAME, {12: 1})",
    "setitem": "operator.setitem(NAME, 12, 1)",
    "itself by name": "import a\na.NAME = {}",
}
CLASS = {
    "class": "A.NAME = {}",
    "class, tuple": "A.NAME, x = {}, 1",
    "self": "    def f(self):\n        self.NAME = {}",
    "cls": "    @classmethod\n    def f(cls):\n        cls.NAME = load()",
    "type": "def f(x):\n    type(x).NAME = {}",
    "setattr": "setattr(A, 'NAME', {})",
    "del": "del A.NAME",
    "again": "    from u import NAME",
}
OTHER_FILES = {
    "from as": "from a import NAME as E\nE[12] = 1\n",
    "module": "import a\na.NAME[12] = 1\n",
    "module as": "import a as m\nm.NAME = {}\n",
    "in a package": "import top.a\ntop.a.NAME.update({})\n",
    "from package": "from . import a\na.NAME |= {}\n",
    "monkeypatch": "import a\nsetattr(a, 'NAME', {})\n",
}


@pytest.mark.parametrize("text", MODULE.values(), ids=MODULE.keys())
def test_module(tmp_path: Path, text: str) -> None:
    check(tmp_path, f"NAME = {{9: 1, 10: 2}}\n{text}\n", "NAME")


@pytest.mark.parametrize("text", CLASS.values(), ids=CLASS.keys())
def test_class(tmp_path: Path, text: str) -> None:
    check(tmp_path, f"class A:\n    NAME = {{9: 1, 10: 2}}\n{text}\n", "A.NAME")


def check(root: Path, text: str, name: str) -> None:
    """Check that an edit is refused with a place after the dict's own line, and nothing is written."""
    write(root, {"a.py": text})
    report = do(root, dict_edit(name=[name]))
    assert "a.py:" in report.failed and "undo the edit" in report.failed
    assert read_all(root) == {"a.py": text.encode()}


@pytest.mark.parametrize("text", OTHER_FILES.values(), ids=OTHER_FILES.keys())
def test_other_file(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\n", "b.py": text})
    report = do(root, dict_edit())
    assert report.edits[0].state == "conflict" and "b.py:2: " in report.failed and "undo the edit" in report.failed


def test_other_file_changes_a_class(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "class A:\n    NAME = {9: 1}\n", "b.py": "from a import A\nA.NAME[12] = 1\n"})
    assert "b.py:2: A.NAME[12] = … changes A.NAME (a.py:2)" in do(root, dict_edit(name=["A.NAME"])).failed


HARMLESS = {
    "instance of another class": "NAME = {9: 1}\nclass B:\n    def f(self):\n        self.NAME = 1\n",
    "class body": "NAME = {9: 1}\nclass B:\n    def NAME(self): pass\n",
    "local": "NAME = {9: 1}\ndef f():\n    for NAME in (): pass\n",
    "annotation": "NAME: dict\nNAME = {9: 1}\n",
    "use": "NAME = {9: 1}\nOTHER = NAME\nOTHER.get(12)\nx.update(NAME)\nsetattr(x, 'OTHER', NAME)\n",
    "nested dict": "NAME = {9: 1}\nNAME[9][12] = 1\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_harmless(tmp_path: Path, text: str) -> None:
    done(write(tmp_path, {"a.py": text}), dict_edit())


def test_other_file_that_only_reads(tmp_path: Path) -> None:
    text = "from a import NAME\nimport c\nprint(NAME[12])\nc.NAME = {}\n"
    done(write(tmp_path, {"a.py": "NAME = {9: 1}\n", "b.py": text, "c.py": ""}), dict_edit())


def test_same_name_built_elsewhere_is_ambiguous(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\n", "b.py": "NAME = dict()\n"})
    report = do(root, dict_edit())
    assert report.edits[0].candidates == ["a.py:1 (NAME)", "b.py:1 (NAME)"]
    write(root, {"b.py": "def f():\n    NAME = dict()\n"})
    done(root, dict_edit())


def test_only_in_an_except_branch(tmp_path: Path) -> None:
    text = "try:\n    from u import NAME\nexcept ImportError:\n    NAME = {9: 1}\n"
    assert "a.py:2: NAME is bound again here" in do(write(tmp_path, {"a.py": text}), dict_edit()).failed


def test_key_of_a_value_that_is_not_known(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "from u import SM120\nNAME = {9: 1, SM120: 2}\n"})
    message = "a.py:2: NAME has the key SM120, whose value the source does not tell; it may be 12"
    assert message in do(root, dict_edit()).failed
    write(root, {"a.py": "NAME = {A.B: 1}\nclass A: pass\n"})
    assert "it may be 12" in do(root, dict_edit()).failed
