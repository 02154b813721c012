"""Names of a value: bound for sure where the dict is made, or refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.source.helpers import dict_edit, do, done, gate_edit, read_all, write
from tests.unit.source.test_gate import GATE, HEAD, LIB

VALUE = "64 * MiB"
# text: what the refusal says
UNBOUND = {
    "type checking": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from u import MiB\nNAME = {9: 1}\n",
        "is bound in line 3, but has no value there",
    ),
    "dead branch": ("if 0:\n    MiB = 1\nNAME = {9: 1}\n", "is bound in line 2, but has no value there"),
    "deleted": ("MiB = 1\ndel MiB\nNAME = {9: 1}\n", "but has no value there"),
    "exception": ("try:\n    f()\nexcept E as MiB:\n    pass\nNAME = {9: 1}\n", "but has no value there"),
    "enclosing class": ("class A:\n    MiB = 1\n    class B:\n        NAME = {9: 1}\n", "is not defined there"),
    "class of the method": ("class A:\n    MiB = 1\n    def f(self):\n        NAME = {9: 1}\n", "is not defined there"),
    "one branch": ("if x:\n    MiB = 1\nNAME = {9: 1}\n", "has a value there only under a condition, see line 2"),
    "import that may fail": (
        "try:\n    from u import MiB\nexcept ImportError:\n    pass\nNAME = {}\n",
        "under a condition",
    ),
    "suppressed import": ("with suppress(E):\n    from u import MiB\nNAME = {}\n", "only under a condition"),
    "loop": ("for i in x:\n    MiB = i\nNAME = {}\n", "only under a condition"),
    "loop variable": ("for MiB in x:\n    pass\nNAME = {}\n", "only under a condition"),
    "match": ("x = 1\nif x and (MiB := 1):\n    pass\nNAME = {}\n", "only under a condition"),
    "annotation": ("MiB: int\nNAME = {}\n", "is not defined there"),
    "later": ("NAME = {}\nMiB = 1\n", "is defined only later, in line 2"),
    "later on the line": ("NAME = {}; MiB = 1\n", "but has no value there"),
    "later in the function": ("def f():\n    NAME = {}\n    MiB = 1\n", "is defined only later, in line 3"),
    "local hides the module's": (
        "MiB = 1\ndef f():\n    if x:\n        MiB = 2\n    NAME = {}\n",
        "only under a condition, see line 4",
    ),
    "deleted after the function": ("MiB = 1\ndef f():\n    NAME = {}\ndel MiB\n", "but has no value there"),
    "after a return": (
        "def f():\n    if x:\n        MiB = 1\n    else:\n        g()\n    NAME = {}\n",
        "under a condition",
    ),
}
BOUND = {
    "before": "MiB = 1\nNAME = {9: 1}\n",
    "before on the line": "MiB = 1; NAME = {9: 1}\n",
    "both branches": "if x:\n    MiB = 1\nelif y:\n    MiB = 3\nelse:\n    MiB = 2\nNAME = {9: 1}\n",
    "same branch": "if x:\n    MiB = 1\n    NAME = {9: 1}\n",
    "import or stop": "try:\n    from u import MiB\nexcept ImportError:\n    raise E\nNAME = {9: 1}\n",
    "import or other": "try:\n    from u import MiB\nexcept ImportError:\n    MiB = 1\nNAME = {9: 1}\n",
    "finally": "try:\n    f()\nfinally:\n    MiB = 1\nNAME = {9: 1}\n",
    "with": "with f() as MiB:\n    pass\nNAME = {9: 1}\n",
    "not type checking": "if TYPE_CHECKING:\n    pass\nelse:\n    MiB = 1\nNAME = {9: 1}\n",
    "walrus": "f(MiB := 1)\nNAME = {9: 1}\n",
    "function, module's": "def f():\n    NAME = {9: 1}\nMiB = 1\n",
    "function, argument": "def f(MiB):\n    NAME = {9: 1}\n",
    "function, outer one's": "def g():\n    MiB = 1\n    def f():\n        NAME = {9: 1}\n",
    "function in a branch": "if x:\n    MiB = 1\n    def f():\n        NAME = {9: 1}\n",
    "method, module's": "MiB = 1\nclass A:\n    def f(self):\n        NAME = {9: 1}\n",
    "class": "class A:\n    MiB = 1\n    NAME = {9: 1}\n",
    "class, module's": "MiB = 1\nclass A:\n    NAME = {9: 1}\n    MiB = 2\n",
    "or return": "def f():\n    if x:\n        MiB = 1\n    else:\n        return 1\n    NAME = {9: 1}\n",
}


@pytest.mark.parametrize("text, message", UNBOUND.values(), ids=UNBOUND.keys())
def test_name_without_a_value(tmp_path: Path, text: str, message: str) -> None:
    root = write(tmp_path, {"a.py": text})
    report = do(root, dict_edit("12", VALUE))
    assert "a.py:" in report.failed and "the value names MiB, which " in report.failed and message in report.failed
    assert read_all(root) == {"a.py": text.encode()}


@pytest.mark.parametrize("text", BOUND.values(), ids=BOUND.keys())
def test_name_with_a_value(tmp_path: Path, text: str) -> None:
    done(write(tmp_path, {"a.py": text}), dict_edit("12", VALUE))


def test_names_inside_comprehensions_and_lambdas(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "class A:\n    M = 1\n    NAME = {9: 1}\n"})
    for value in ("[M for _ in (1, 2)]", "lambda: M", "{x: M for x in (1,)}"):
        assert "the value names M, which" in do(root, dict_edit("12", value)).failed
    for value in ("[m for m in (M,)]", "lambda M: M", "lambda x=M: x"):
        assert not do(root, dict_edit("12", value), check=True).failed


def test_what_an_entry_like_it_names_is_there_already(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "from u import *\nNAME = {9: 1, 10: 64 * MiB}\n"})
    done(root, dict_edit(like="10"))


@pytest.mark.parametrize("name", ["before", "before on the line", "class", "class, module's", "function, module's"])
def test_what_was_taken_imports(tmp_path: Path, name: str) -> None:
    root = write(tmp_path, {"a.py": BOUND[name]})
    done(root, dict_edit("12", VALUE))
    subprocess.run([sys.executable, "-B", "-c", "import a"], cwd=root, check=True)


PROVIDERS = {
    "type checking": "def is_sm90(): pass\ndef is_sm100(): pass\nif TYPE_CHECKING:\n    from v import is_sm120\n",
    "dead": "def is_sm90(): pass\ndef is_sm100(): pass\nif 0:\n    def is_sm120(): pass\n",
    "condition": "def is_sm90(): pass\ndef is_sm100(): pass\nif x:\n    def is_sm120(): pass\n",
    "deleted": LIB + "del is_sm120\n",
    "not exported": "from v import *\n",
}


@pytest.mark.parametrize("lib", PROVIDERS.values(), ids=PROVIDERS.keys())
def test_gate_s_provider_lacks_the_name_at_run_time(tmp_path: Path, lib: str) -> None:
    files = {"a.py": HEAD + GATE, "lib.py": lib, "v.py": '__all__ = ["is_sm90", "is_sm100"]\n' + LIB}
    root = write(tmp_path, dict(files))
    assert "is_sm120 does not exist in lib.py" in do(root, gate_edit()).failed
    assert read_all(root) == {name: text.encode() for name, text in files.items()}


def test_gate_s_provider_has_both_under_the_same_condition(tmp_path: Path) -> None:
    lib = "def is_sm90(): pass\nif x:\n    def is_sm100(): pass\n    def is_sm120(): pass\n"
    done(write(tmp_path, {"a.py": HEAD + GATE, "lib.py": lib}), gate_edit())
    exported = {
        "lib.py": "from v import *\n",
        "v.py": '__all__ = ["is_sm90"]\n__all__ += ["is_sm100", "is_sm120"]\n' + LIB,
    }
    root = write(tmp_path / "b", {"a.py": HEAD + GATE, **exported})
    done(root, gate_edit())


def test_cached_name_that_is_less_sure_than_its_sibling(tmp_path: Path) -> None:
    head = HEAD + "if TYPE_CHECKING:\n    _is_sm120 = is_sm120()\n"
    root = write(tmp_path, {"a.py": head + GATE, "lib.py": LIB})
    report = do(root, gate_edit())
    assert "_is_sm120 is bound in line 5, but has no value there" in report.failed


def test_names_of_a_class_body_count_for_a_gate_in_it(tmp_path: Path) -> None:
    text = HEAD + "class A:\n    _is_sm120 = 0\n    X = _is_sm90 or _is_sm100\n"
    root = write(tmp_path, {"a.py": text, "lib.py": LIB})
    report = do(root, gate_edit(function=[]))
    assert report.edits[0].state == "conflict" and "_is_sm120 is bound already in line 5" in report.failed


def test_function_defined_again(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": HEAD + GATE + "def gate():\n    return 0\n", "lib.py": LIB})
    assert "a.py:6: gate is defined again here, so the one in line 4 counts no more" in do(root, gate_edit()).failed
    write(root, {"a.py": "class A:\n    NAME = {9: 1}\nclass A:\n    pass\n"})
    assert "a.py:3: A is defined again here" in do(root, dict_edit()).failed
    write(root, {"a.py": HEAD + "if x:\n    " + GATE.replace("\n ", "\n     ") + "else:\n    def gate(): pass\n"})
    done(root, gate_edit())


def test_copy_of_an_edited_file_is_ambiguous_and_says_where_ours_stands(tmp_path: Path) -> None:
    root = write(tmp_path, {"lib.py": LIB, "a.py": HEAD + GATE})
    done(root, gate_edit())
    write(root, {"b.py": HEAD + GATE})
    (edit,) = do(root, gate_edit()).edits
    assert (edit.state, edit.file) == ("ambiguous", "a.py") and edit.line
