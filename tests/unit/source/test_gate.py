"""Gates: where the term goes, and how its name is defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.source.helpers import do, done, gate_edit, write

LIB = "def is_sm90():\n    return 1\ndef is_sm100():\n    return 1\ndef is_sm120():\n    return 0\n"
OLD = "from lib import is_sm90, is_sm100\n"
NEW = "from lib import is_sm90, is_sm100, is_sm120\n"
HEAD = OLD + "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
NEW_HEAD = NEW + "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n_is_sm120 = is_sm120()\n"

BODIES = {
    "return": ("return _is_sm90 or _is_sm100", "return _is_sm90 or _is_sm100 or _is_sm120"),
    "other order": ("return _is_sm100 or _is_sm90", "return _is_sm100 or _is_sm90 or _is_sm120"),
    "among others": (
        "return hip or _is_sm90 or x or _is_sm100 or y",
        "return hip or _is_sm90 or x or _is_sm100 or _is_sm120 or y",
    ),
    "parentheses": (
        "return (_is_sm90 or _is_sm100) and x",
        "return (_is_sm90 or _is_sm100 or _is_sm120) and x",
    ),
    "each in parentheses": (
        "return (_is_sm90) or ((_is_sm100)) and x or (_is_sm100)",
        "return (_is_sm90) or ((_is_sm100)) and x or (_is_sm100) or _is_sm120",
    ),
    "first one last": ("return ((_is_sm90) or (_is_sm100))", "return ((_is_sm90) or (_is_sm100) or _is_sm120)"),
    "lines, operator in front": (
        "return (\n        _is_sm90\n        or _is_sm100  # yes\n        and not\\\n x or _is_sm100 # no\n"
        "        # end\n    )",
        "return (\n        _is_sm90\n        or _is_sm100  # yes\n        and not\\\n"
        " x or _is_sm100 or _is_sm120 # no\n"
        "        # end\n    )",
    ),
    "lines, comments": (
        "return (\n        # a\n        _is_sm90  # b\n        or _is_sm100  # c\n        # d\n    )",
        "return (\n        # a\n        _is_sm90  # b\n        or _is_sm100  # c\n        or _is_sm120\n"
        "        # d\n    )",
    ),
    "lines, operator behind": (
        "return (\n        _is_sm90 or  # b\n        _is_sm100  # c\n    )",
        "return (\n        _is_sm90 or  # b\n        _is_sm100 or  # c\n        _is_sm120\n    )",
    ),
    "operator behind, nothing after": (
        "return (\n        _is_sm90 or\n        _is_sm100\n    )",
        "return (\n        _is_sm90 or\n        _is_sm100 or\n        _is_sm120\n    )",
    ),
    "operator behind, more after": (
        "return (\n        _is_sm90 or\n        _is_sm100 or\n        x\n    )",
        "return (\n        _is_sm90 or\n        _is_sm100 or _is_sm120 or\n        x\n    )",
    ),
    "newline in an operand's own parentheses": (
        "return _is_sm90 or (\n        _is_sm100)",
        "return _is_sm90 or (\n        _is_sm100) or _is_sm120",
    ),
    "newline in the first one's parentheses": (
        "return (\n        _is_sm90) or _is_sm100",
        "return (\n        _is_sm90) or _is_sm100 or _is_sm120",
    ),
    "continuation": (
        "return _is_sm90 \\\n        or _is_sm100",
        "return _is_sm90 \\\n        or _is_sm100 or _is_sm120",
    ),
    "comment in between": (
        "return (_is_sm90  # or _is_sm100 )\n or (  # (\n _is_sm100))",
        "return (_is_sm90  # or _is_sm100 )\n or (  # (\n _is_sm100) or _is_sm120)",
    ),
    "if": ("if _is_sm90 or _is_sm100:\n        pass", "if _is_sm90 or _is_sm100 or _is_sm120:\n        pass"),
    "inline if": ("if _is_sm90 or _is_sm100: pass", "if _is_sm90 or _is_sm100 or _is_sm120: pass"),
    "elif": (
        "if x:\n        pass\n    elif _is_sm90 or _is_sm100:\n        pass",
        "if x:\n        pass\n    elif _is_sm90 or _is_sm100 or _is_sm120:\n        pass",
    ),
    "while": ("while _is_sm90 or _is_sm100: x()", "while _is_sm90 or _is_sm100 or _is_sm120: x()"),
    "lambda": ("return lambda: _is_sm90 or _is_sm100", "return lambda: _is_sm90 or _is_sm100 or _is_sm120"),
    "comprehension": (
        "return [y for y in x if _is_sm90 or _is_sm100]",
        "return [y for y in x if _is_sm90 or _is_sm100 or _is_sm120]",
    ),
    "walrus": ("if (z := _is_sm90 or _is_sm100): pass", "if (z := _is_sm90 or _is_sm100 or _is_sm120): pass"),
    "ternary": ("return 1 if _is_sm90 or _is_sm100 else 2", "return 1 if _is_sm90 or _is_sm100 or _is_sm120 else 2"),
    "not": ("return not (_is_sm90 or _is_sm100)", "return not (_is_sm90 or _is_sm100 or _is_sm120)"),
    "argument": ("f(_is_sm90 or _is_sm100, 1)", "f(_is_sm90 or _is_sm100 or _is_sm120, 1)"),
    "before a lambda": (
        "return _is_sm90 or _is_sm100 or (lambda: 1)",
        "return _is_sm90 or _is_sm100 or _is_sm120 or (lambda: 1)",
    ),
    "non-ASCII before": (
        "return 'äö😀' and (_is_sm90 or _is_sm100)",
        "return 'äö😀' and (_is_sm90 or _is_sm100 or _is_sm120)",
    ),
    "nested function": (
        "def inner():\n        return _is_sm90 or _is_sm100\n    return inner",
        "def inner():\n        return _is_sm90 or _is_sm100 or _is_sm120\n    return inner",
    ),
}


@pytest.mark.parametrize("before, after", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_term(tmp_path: Path, before: str, after: str, newline: str) -> None:
    text = f"{HEAD}def gate(x, y, hip):\n    {before}\n".replace("\n", newline)
    root = write(tmp_path, {"lib.py": LIB, "a.py": text})
    report = done(root, gate_edit())
    assert (root / "a.py").read_bytes().decode() == f"{NEW_HEAD}def gate(x, y, hip):\n    {after}\n".replace(
        "\n", newline
    )
    assert report.edits[0].state == "absent" and report.edits[0].line and "_is_sm120" in report.edits[0].after


ONE_TERM = {
    "and": ("return _is_sm100 and x", "return (_is_sm100 or _is_sm120) and x"),
    "if": ("if _is_sm100: pass", "if (_is_sm100 or _is_sm120): pass"),
    "if over lines": (
        "if (\n        _is_sm100\n        and x\n    ): pass",
        "if (\n        (_is_sm100 or _is_sm120)\n        and x\n    ): pass",
    ),
    "or": ("return _is_sm100 or x", "return _is_sm100 or _is_sm120 or x"),
    "or, behind": ("return x or (_is_sm100)", "return x or (_is_sm100) or _is_sm120"),
    "ternary": ("return 1 if _is_sm100 else 2", "return 1 if (_is_sm100 or _is_sm120) else 2"),
    "comprehension": ("return [y for y in x if _is_sm100]", "return [y for y in x if (_is_sm100 or _is_sm120)]"),
    "lambda": ("return lambda: _is_sm100", "return lambda: (_is_sm100 or _is_sm120)"),
    "return": ("return _is_sm100", "return (_is_sm100 or _is_sm120)"),
    "walrus": ("if (z := _is_sm100): pass", "if (z := (_is_sm100 or _is_sm120)): pass"),
}


@pytest.mark.parametrize("before, after", ONE_TERM.values(), ids=ONE_TERM.keys())
def test_one_term(tmp_path: Path, before: str, after: str) -> None:
    root = write(tmp_path, {"lib.py": LIB, "a.py": f"{HEAD}def gate(x):\n    {before}\n"})
    done(root, gate_edit(all_of=["_is_sm100"]))
    assert (root / "a.py").read_text() == f"{NEW_HEAD}def gate(x):\n    {after}\n"


def test_one_term_twice_is_ambiguous(tmp_path: Path) -> None:
    root = write(
        tmp_path, {"lib.py": LIB, "a.py": f"{HEAD}def gate(x):\n    if _is_sm100: pass\n    return _is_sm100\n"}
    )
    report = do(root, gate_edit(all_of=["_is_sm100"]))
    assert report.edits[0].state == "ambiguous"
    assert report.edits[0].candidates == ["a.py:5 (gate)", "a.py:6 (gate)"]
    assert "a.py:5" in report.failed and "a.py:6" in report.failed


GATE = "def gate():\n    return _is_sm90 or _is_sm100\n"
NEW_GATE = "def gate():\n    return _is_sm90 or _is_sm100 or _is_sm120\n"
CACHED = "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
HEADS = {
    "lines": (
        "from lib import (\n    is_sm90,\n    is_sm100,\n)\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n",
        "from lib import (\n    is_sm90,\n    is_sm100,\n    is_sm120,\n)\n_is_sm90 = is_sm90()\n"
        "_is_sm100 = is_sm100()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "lines, no comma, comment": (
        "from lib import (  # x\n    is_sm90,\n    is_sm100  # why\n)\n_is_sm90 = is_sm90()\n"
        "_is_sm100 = is_sm100()  # y\n",
        "from lib import (  # x\n    is_sm90,\n    is_sm100,  # why\n    is_sm120\n)\n_is_sm90 = is_sm90()\n"
        "_is_sm100 = is_sm100()  # y\n_is_sm120 = is_sm120()\n",
    ),
    "not the last one": (
        "from lib import is_sm100, is_sm90\n_is_sm100 = is_sm100()\n_is_sm90 = is_sm90()\n",
        "from lib import is_sm100, is_sm120, is_sm90\n_is_sm100 = is_sm100()\n_is_sm120 = is_sm120()\n"
        "_is_sm90 = is_sm90()\n",
    ),
    "parentheses on one line": (
        "from lib import (is_sm90, is_sm100)\n_is_sm90, _is_sm100 = 1, 2\n_is_sm100 = is_sm100()\n",
        None,
    ),
    "continuation": (
        "from lib import is_sm90, \\\n    is_sm100\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n",
        "from lib import is_sm90, \\\n    is_sm100, is_sm120\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "cuda and": (
        OLD + "c = 1\n_is_sm90 = c and is_sm90()\n_is_sm100 = c and is_sm100()\n",
        NEW + "c = 1\n_is_sm90 = c and is_sm90()\n_is_sm100 = c and is_sm100()\n_is_sm120 = c and is_sm120()\n",
    ),
    "platform object": (
        "from plat import get\n_is_sm90 = get().is_sm90\n_is_sm100 = get().is_sm100\n",
        "from plat import get\n_is_sm90 = get().is_sm90\n_is_sm100 = get().is_sm100\n_is_sm120 = get().is_sm120\n",
    ),
    "module attribute": (
        "import lib\n_is_sm90 = lib.is_sm90()\n_is_sm100 = lib.is_sm100()\n",
        "import lib\n_is_sm90 = lib.is_sm90()\n_is_sm100 = lib.is_sm100()\n_is_sm120 = lib.is_sm120()\n",
    ),
    "module as": (
        "import pack.deep as d\n_is_sm90 = d.is_sm90()\n_is_sm100 = d.is_sm100()\n",
        "import pack.deep as d\n_is_sm90 = d.is_sm90()\n_is_sm100 = d.is_sm100()\n_is_sm120 = d.is_sm120()\n",
    ),
    "imported as the cached name": (
        "from lib import is_sm90 as _is_sm90, is_sm100 as _is_sm100\n",
        "from lib import is_sm90 as _is_sm90, is_sm100 as _is_sm100, is_sm120 as _is_sm120\n",
    ),
    "imported as another name": (
        "from lib import is_sm90 as h, is_sm100 as b\n_is_sm90 = h()\n_is_sm100 = b()\n",
        "from lib import is_sm90 as h, is_sm100 as b, is_sm120\n_is_sm90 = h()\n_is_sm100 = b()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "re-exported": (
        "from pack import is_sm90, is_sm100\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n",
        "from pack import is_sm90, is_sm100, is_sm120\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "numbers": (
        "from torch import cap\n_is_sm90 = cap()[0] == 9\n_is_sm100 = cap()[0] == 10\n",
        "from torch import cap\n_is_sm90 = cap()[0] == 9\n_is_sm100 = cap()[0] == 10\n_is_sm120 = cap()[0] == 12\n",
    ),
    "numbers of three digits": (
        "from torch import sm\n_is_sm90 = sm() == 90\n_is_sm100 = sm() in (100,)\n",
        "from torch import sm\n_is_sm90 = sm() == 90\n_is_sm100 = sm() in (100,)\n_is_sm120 = sm() in (120,)\n",
    ),
    "statements on one line": (
        OLD + "_is_sm90 = is_sm90(); _is_sm100 = is_sm100(); x = 1\n",
        NEW + "_is_sm90 = is_sm90(); _is_sm100 = is_sm100(); _is_sm120 = is_sm120(); x = 1\n",
    ),
    "body on the line of the if": (
        OLD + "_is_sm90 = is_sm90()\nif 1: _is_sm100 = is_sm100()\n",
        NEW + "_is_sm90 = is_sm90()\nif 1: _is_sm100 = is_sm100(); _is_sm120 = is_sm120()\n",
    ),
    "two branches": (
        OLD + "_is_sm90 = is_sm90()\nif x:\n    _is_sm100 = is_sm100()\nelse:\n    _is_sm100 = not is_sm100()\n",
        NEW + "_is_sm90 = is_sm90()\nif x:\n    _is_sm100 = is_sm100()\n"
        "    _is_sm120 = is_sm120()\nelse:\n    _is_sm100 = not is_sm100()\n    _is_sm120 = not is_sm120()\n",
    ),
    "type checking": (
        "from lib import is_sm90\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib import is_sm100\n"
        "else:\n    from lib import is_sm100\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n",
        "from lib import is_sm90\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from lib import is_sm100, is_sm120\n"
        "else:\n    from lib import is_sm100, is_sm120\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "try import": (
        "try:\n    from lib import is_sm90, is_sm100\nexcept ImportError:\n    is_sm90 = None\n"
        "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n",
        "try:\n    from lib import is_sm90, is_sm100, is_sm120\nexcept ImportError:\n    is_sm90 = None\n"
        "_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n_is_sm120 = is_sm120()\n",
    ),
    **{
        f"or else {name}": (
            f"try:\n    from lib import is_sm90, is_sm100\nexcept ImportError:\n    {text}\n{CACHED}",
            f"try:\n    from lib import is_sm90, is_sm100, is_sm120\nexcept ImportError:\n    {text}\n"
            f"    {text.replace('100', '120')}\n{CACHED}_is_sm120 = is_sm120()\n",
        )
        for name, text in {
            "None": "is_sm100 = None",
            "False": "is_sm100: object = False",
            "lambda": "is_sm100 = lambda *_: False",
            "def": "def is_sm100(x=None):\n        'no'\n        return False",
            "pass": "def is_sm100(): pass",
        }.items()
    },
    "or else False, cached": (
        OLD + "_is_sm90 = is_sm90()\nif c:\n    _is_sm100 = is_sm100()\nelse:\n    _is_sm100 = False  # no\n",
        NEW + "_is_sm90 = is_sm90()\nif c:\n    _is_sm100 = is_sm100()\n    _is_sm120 = is_sm120()\n"
        "else:\n    _is_sm100 = False  # no\n    _is_sm120 = False\n",
    ),
    "over lines": (
        OLD + "_is_sm90 = is_sm90()\n_is_sm100: bool = (\n    1  # c\n    and is_sm100()\n)  # d\n",
        NEW + "_is_sm90 = is_sm90()\n_is_sm100: bool = (\n    1  # c\n    and is_sm100()\n)  # d\n"
        "_is_sm120: bool = (\n    1  # c\n    and is_sm120()\n)\n",
    ),
    "name there already": (
        "from lib import *\nfrom lib import is_sm90, is_sm100, is_sm120\n_is_sm90 = is_sm90()\n"
        "_is_sm100 = is_sm100()\n",
        "from lib import *\nfrom lib import is_sm90, is_sm100, is_sm120\n_is_sm90 = is_sm90()\n_is_sm100 = is_sm100()\n"
        "_is_sm120 = is_sm120()\n",
    ),
    "cached name there already": (NEW_HEAD, NEW_HEAD),
}
PACKAGE = {
    "lib.py": LIB,
    "plat.py": "P = {'is_sm120': 1}\nclass X:\n    def __getattr__(self, n): return P[n]\ndef get(): return X()\n",
    "pack/__init__.py": "from .deep import *\n",
    "pack/deep.py": "if 1:\n    from lib import is_sm90, is_sm100, is_sm120\n",
}


@pytest.mark.parametrize("before, after", HEADS.values(), ids=HEADS.keys())
def test_definition(tmp_path: Path, before: str, after: str | None) -> None:
    root = write(tmp_path, {**PACKAGE, "a.py": before + GATE})
    if after is None:
        assert "cannot be copied" in do(root, gate_edit()).failed
        return
    done(root, gate_edit())
    assert (root / "a.py").read_text() == after + NEW_GATE


def test_calls_as_terms(tmp_path: Path) -> None:
    text = OLD + "def gate():\n    return is_sm90() or is_sm100()\n"
    root = write(tmp_path, {**PACKAGE, "a.py": text})
    done(root, gate_edit(all_of=["is_sm90()", "is_sm100()"], add="is_sm120()", like="is_sm100()"))
    wanted = NEW + "def gate():\n    return is_sm90() or is_sm100() or is_sm120()\n"
    assert (root / "a.py").read_text() == wanted


def test_attributes_as_terms(tmp_path: Path) -> None:
    text = "import plat as p\ndef gate():\n    return p.get().is_sm90 or p.get().is_sm100\n"
    root = write(tmp_path, {**PACKAGE, "a.py": text})
    terms = {"all_of": ["p.get().is_sm90", "p.get().is_sm100"], "add": "p.get().is_sm120", "like": "p.get().is_sm100"}
    done(root, gate_edit(**terms))
    assert "p.get().is_sm100 or p.get().is_sm120\n" in (root / "a.py").read_text()


def test_names_of_a_function(tmp_path: Path) -> None:
    text = (
        "import lib\ndef gate():\n    from lib import is_sm100\n    _is_sm90 = lib.is_sm90()\n"
        "    _is_sm100 = is_sm100()\n"
        "    return _is_sm90 or _is_sm100\n"
    )
    root = write(tmp_path, {**PACKAGE, "a.py": text})
    done(root, gate_edit())
    assert (root / "a.py").read_text() == (
        "import lib\ndef gate():\n    from lib import is_sm100, is_sm120\n    _is_sm90 = lib.is_sm90()\n"
        "    _is_sm100 = is_sm100()\n    _is_sm120 = is_sm120()\n    return _is_sm90 or _is_sm100 or _is_sm120\n"
    )


def test_relative_import_in_a_package_below_the_root(tmp_path: Path) -> None:
    write(tmp_path, {"top/__init__.py": "", "top/lib.py": LIB, "top/sub/__init__.py": ""})
    head = HEAD.replace("from lib", "from ..lib")
    write(tmp_path, {"top/sub/a.py": head + GATE})
    for root in (tmp_path, tmp_path / "top", tmp_path / "top" / "sub"):
        done(root, gate_edit())
        report = do(root, gate_edit(state="absent"))
        assert report.changed


def test_decorated_method_and_any_function(tmp_path: Path) -> None:
    text = (
        HEAD + "class A:\n    @staticmethod\n    @deco(x or y)\n    def gate():\n        return _is_sm90 or _is_sm100\n"
    )
    root = write(tmp_path, {"lib.py": LIB, "a.py": text})
    for function in (["A.gate"], ["gate", "other"], []):
        done(root, gate_edit(function=function))
        assert do(root, gate_edit(state="absent")).changed


def test_decorator_as_gate(tmp_path: Path) -> None:
    text = HEAD + "@deco(_is_sm90 or _is_sm100)\ndef f(x=1):\n    pass\n"
    root = write(tmp_path, {"lib.py": LIB, "a.py": text})
    done(root, gate_edit(function=[]))
    assert "@deco(_is_sm90 or _is_sm100 or _is_sm120)" in (root / "a.py").read_text()


def test_decoys_stay(tmp_path: Path) -> None:
    files = {
        "lib.py": LIB,
        "decoy.py": HEAD + GATE.replace("gate", "other"),
        "sub/b.py": NEW_HEAD + "def other():\n    return _is_sm90 or _is_sm100 or _is_sm120\n",
        "a.py": HEAD + "def before():\n    return _is_sm90 or _is_sm100\n" + GATE,
    }
    root = write(tmp_path, dict(files))
    done(root, gate_edit())
    assert (root / "a.py").read_text() == NEW_HEAD + "def before():\n    return _is_sm90 or _is_sm100\n" + NEW_GATE
    assert (root / "decoy.py").read_text() == files["decoy.py"]


UPSTREAM = {
    "by name": NEW_HEAD + NEW_GATE,
    "spelled out": HEAD.replace("is_sm100\n", "is_sm100, is_sm120\n", 1) + GATE[:-1] + " or is_sm120()\n",
    "after a decoy definition": NEW_HEAD.replace("_is_sm120 =", "_is_sm120: bool =") + NEW_GATE,
}


@pytest.mark.parametrize("text", UPSTREAM.values(), ids=UPSTREAM.keys())
def test_upstream(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"lib.py": LIB, "a.py": text})
    for state in ("present", "absent"):
        report = do(root, gate_edit(), state=state)
        assert (report.edits[0].state, report.changed, report.failed) == ("upstream", False, "")


CONFLICTS = {
    "constant": HEAD + "_is_sm120 = False\n" + NEW_GATE,
    "in the gate's file only": HEAD + "_is_sm120 = False\n" + GATE,
    "function": HEAD + "def _is_sm120():\n    pass\n" + GATE,
    "other import": HEAD + "from lib import is_sm90 as _is_sm120\n" + GATE,
}


@pytest.mark.parametrize("text", CONFLICTS.values(), ids=CONFLICTS.keys())
def test_conflict(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"lib.py": LIB, "a.py": text})
    report = do(root, gate_edit())
    assert report.edits[0].state == "conflict" and "_is_sm120 is bound already in line 4" in report.failed
    kept = do(root, gate_edit(on_conflict="keep"))
    assert not kept.failed and not kept.changed and kept.edits[0].state == "conflict"
