"""Tests for a capability: found, judged and grouped."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.filter.source import gate_line
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.capability import Site, audit, compare
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SourceError
from ansible_collections.llmfleet.sglang.plugins.modules import capability_gates_info

from tests.unit.source.helpers import write

# text of a condition: (kind, falls, treats)
CONDITIONS = {
    "is_sm90_supported()": ("predicate", "out", False),
    "_is_sm100_supported": ("predicate", "out", False),
    "get_platform().is_sm100": ("predicate", "out", False),
    "not get_platform().is_sm100": ("predicate", "in", False),
    "_is_sm90_supported or _is_sm100_supported": ("predicate", "out", False),
    "_is_sm90_supported or x or _is_sm120_supported": ("predicate", "in", True),
    "is_hopper_with_cuda_12_3()": ("predicate", "out", False),
    "is_blackwell()": ("predicate", "in", True),
    "is_sm100_or_newer()": ("predicate", "in", False),
    "is_sm120()": ("predicate", "in", True),
    "is_sm121()": ("predicate", "out", True),
    "get_device_capability()[0] == 9": ("equal", "out", False),
    "get_device_capability()[0] != 10": ("not_equal", "in", False),
    "get_device_capability()[0] >= 10": ("at_least", "in", False),
    "get_device_capability() >= (9, 0)": ("at_least", "in", False),
    "get_device_capability() < (10, 0)": ("below", "out", False),
    "self.device_sm_major > 9": ("above", "in", False),
    "self.device_capability <= 10": ("at_most", "out", False),
    "100 <= device_sm": ("at_least", "in", False),
    "device_sm in (100, 103)": ("member", "out", False),
    "get_device_sm() not in [100, 103]": ("not_member", "in", False),
    "capability in [(10, 0), (10, 3)]": ("member", "out", False),
    "capability == (12, 0)": ("equal", "in", True),
    "get_device_capability()[0] == 9 and x": ("equal", "out", False),
    "get_device_capability()[0] == 9 or get_device_capability()[0] >= 10": ("at_least+equal", "in", False),
    "x and not (is_sm90() or y)": ("predicate", "in", False),
    "(9, 0) <= get_device_capability() < (10, 0)": ("range", "out", False),
    "(10, 0) > get_device_capability() >= (8, 0)": ("range", "out", False),
    "100 <= device_sm <= 120": ("range", "in", True),
    "device_sm in range(100, 110)": ("member", "out", False),
    "device_capability in frozenset({(10, 0), (10, 3)})": ("member", "out", False),
}


def one(text: str, **options: Any) -> list[Site]:
    """Return the tests of one file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {"a.py": text})
        return audit(folder, ["**/*.py"], options.pop("capability", "12.0"), options.pop("every", True))


@pytest.mark.parametrize("condition, wanted", CONDITIONS.items(), ids=CONDITIONS.keys())
def test_condition(condition: str, wanted: tuple[str, str, bool]) -> None:
    (site,) = one(f"def f():\n    if {condition}:\n        pass\n")
    assert (site.kind, site.falls, site.treats) == wanted
    assert (site.line, site.function) == (2, "f") and site.expression == ast.unparse(ast.parse(condition, mode="eval"))


NO_TESTS = [
    "from x import is_sm90_supported",
    "_is_sm100_supported = is_cuda() and is_sm100_supported()",
    "is_sm120 = lru_cache(is_sm120_supported)",
    "if get_device_capability()[0] >= 8: pass",
    "if capability >= x: pass",
    "if capability_name == 'sm': pass",
    "if sys.version_info.major >= 10: pass\ncapability = 1",
    "x = {9: 1}\ncapability = 1",
    "if get_device_capability() >= (9, 4) and hip: pass",
    "major, minor = get_device_capability()\nif major == 8 and minor == 9: pass",
    "cap = get_device_capability()\nif cap[1] == 9: pass",
    "# capability\nmajor, minor = torch.version.cuda.split('.')\nif int(major) >= 10 or major == 12: pass",
    "def get_min_capability(): return 80",
    "_IS_SM90 = is_cuda() and is_sm90()",
    "def is_sm90_supported(): return get_x()",
    "SM100_SIZE = 4\nf(SM100_SIZE)",
]


@pytest.mark.parametrize("text", NO_TESTS)
def test_no_test(text: str) -> None:
    assert one(text + "\n") == []


# text: (line, expression, falls, treats) of the test that only the names' definitions explain
DEFINED = {
    "part of a capability": (
        "cap = torch.cuda.get_device_capability()\nif cap[0] != 10: pass\n",
        (2, "cap[0] != 10", "in", False),
    ),
    "attribute": (
        "class A:\n    def f(self):\n        self.cap = get_device_capability()\n        return self.cap[0] == 10\n",
        (4, "self.cap[0] == 10", "out", False),
    ),
    "properties": (
        "p = torch.cuda.get_device_properties(0)\nif p.major >= 10: pass\n",
        (2, "p.major >= 10", "in", False),
    ),
    "one number": (
        "p = torch.cuda.get_device_properties(0)\nsm = p.major * 10 + p.minor\nif sm >= 100: pass\n",
        (3, "sm >= 100", "in", False),
    ),
    "argument": ("# capability\ndef f(major):\n    return major >= 10\n", (3, "major >= 10", "in", False)),
    "constant": ("ARCHS = (9, 10)\nif device_sm_major in ARCHS: pass\n", (2, "device_sm_major in ARCHS", "out", False)),
    "table of capabilities": (
        "ARCHS = {(10, 0): 'a', (10, 3): 'b'}\ndef f(x):\n    return get_device_capability() in ARCHS\n",
        (3, "get_device_capability() in ARCHS", "out", False),
    ),
    "name that says more than its definition": (
        "def f(x):\n    use_blackwell_triton = x and get_platform().is_sm100\n    if x or use_blackwell_triton: pass\n",
        (3, "x or use_blackwell_triton", "out", False),
    ),
    "name that says less": (
        "_is_sm100_supported = get_device_capability()[0] >= 10\nif _is_sm100_supported: pass\n",
        (2, "_is_sm100_supported", "in", False),
    ),
    "definition that mentions the chip": (
        "_is_sm100 = get_platform().is_sm100 or get_device_sm() in (120, 121)\nif _is_sm100: pass\n",
        (2, "_is_sm100", "in", True),
    ),
    "definition of a definition": (
        "use_sm100 = x and is_sm100()\nuse_sm100_more = use_sm100 and y\nif not use_sm100_more: pass\n",
        (3, "not use_sm100_more", "in", False),
    ),
    "majors of a partial": (
        "is_blackwell = cache(partial(check, device_capability_majors=[10, 11]))\nif is_blackwell(): pass\n",
        (2, "is_blackwell()", "out", False),
    ),
    "definition by itself": ("is_sm90 = cache(is_sm90)\nif is_sm90(): pass\n", (2, "is_sm90()", "out", False)),
    "two that do not agree": (
        "if x:\n    _is_sm90 = cap_major == 12\nelse:\n    _is_sm90 = cc_major == 9\ny = _is_sm90\n",
        (5, "_is_sm90", "out", False),
    ),
    "function": (
        "def is_blackwell():\n    if not cuda:\n        return False\n    return check() and cc_major >= 12\n"
        "if is_blackwell(): pass\n",
        (5, "is_blackwell()", "in", True),
    ),
    "least capability": (
        "class A:\n    def get_min_capability(cls):\n        return 100\n",
        (3, "return 100", "in", False),
    ),
}


@pytest.mark.parametrize("text, wanted", DEFINED.values(), ids=DEFINED.keys())
def test_definitions(text: str, wanted: tuple[int, str, str, bool]) -> None:
    site = one(text)[-1]
    assert (site.line, site.expression, site.falls, site.treats) == wanted


def test_definition_in_another_file(tmp_path: Path) -> None:
    files = {
        "config.py": "DEEPGEMM_BLACKWELL = JIT and get_platform().is_sm100\nARCHS = {90, 100}\n",
        "old.py": "def is_blackwell():\n    return get_device_capability()[0] == 10\n",
        "use.py": "from config import ARCHS\nimport config\nx = y and not config.DEEPGEMM_BLACKWELL\n"
        "if get_platform().is_blackwell: pass\nif get_device_sm() in ARCHS: pass\n",
    }
    sites = [site for site in audit(str(write(tmp_path, files)), ["*.py"], "12.0") if site.file == "use.py"]
    assert [(site.line, site.falls, site.capabilities) for site in sites] == [
        (3, "in", ["10.0"]),
        (4, "out", ["10.0"]),
        (5, "out", ["9.0", "10.0"]),
    ]


@pytest.mark.skipif(sys.version_info < (3, 10), reason="match needs Python 3.10")
def test_match() -> None:
    text = "match get_device_capability()[0]:\n    case 9 | 8: a\n    case 10:\n        is_sm90()\n{}    case _: b\n"
    assert [(site.line, site.falls, site.treats) for site in one(text.format(""))] == [
        (2, "out", False),
        (3, "out", False),
        (4, "out", False),
    ]
    assert [site.treats for site in one(text.format("    case 12: c\n"))] == [True, True, False, True]


def test_chain_longer_than_the_stack_is_deep() -> None:
    chain = "if x == 0: pass\n" + "".join(f"elif x == {number}: pass\n" for number in range(1, 1500))
    assert [site.line for site in one(f"{chain}elif is_sm90(): pass\n")] == [1501]


def test_too_deep_is_said(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "capability = " + "-" * 20000 + "x\n"})
    with pytest.raises(SourceError, match=r"a\.py:1"):
        audit(str(root), [], "12.0")


def test_chain_of_elifs_treats_the_chip() -> None:
    text = "if is_sm90():\n    a\nelif is_sm100():\n    b\n{}\nif is_sm90(): c\n"
    assert [site.treats for site in one(text.format("elif is_sm120():\n    d"))] == [True, True, True, False]
    assert [site.treats for site in one(text.format("else:\n    d"))] == [False, False, False]


def test_tables() -> None:
    sites = one(
        "capability = 1\nA = {9: 1, 10: 2}\nB = {9: 1, 10: 2, 12: 3}\nC = {(9, 0): 1, (10, 3): 2}\n"
        "D = {90: 1, 100: 2}\n"
    )
    assert [(site.kind, site.falls, site.treats) for site in sites] == [
        ("table", "out", False),
        ("table", "in", True),
        ("table", "out", False),
        ("table", "out", False),
    ]


def test_names_taken_from_a_capability() -> None:
    text = "def f():\n    major, minor = torch.cuda.get_device_capability()\n    return major == 10 or other == 10\n"
    (site,) = one(text)
    assert site.expression == "major == 10 or other == 10" and site.capabilities == ["10.0"]


def test_inside_other_expressions() -> None:
    text = "class A:\n    def f(self):\n        return g([x for x in y if is_sm90()], 1 if is_sm100() else 2)\n"
    assert [(site.function, site.expression) for site in one(text)] == [("A.f", "is_sm90()"), ("A.f", "is_sm100()")]


def test_another_chip() -> None:
    text = "if is_sm90(): pass\nif get_device_capability() >= (10, 3): pass\n"
    assert [site.falls for site in one(text, capability="9.0")] == ["in", "out"]
    assert [site.falls for site in one(text, capability="10.3")] == ["out", "in"]
    with pytest.raises(SourceError, match="no compute capability"):
        one(text, capability="sm120")


def test_groups_and_fusion(tmp_path: Path) -> None:
    files = {
        "arg_groups/overrides.py": "arguments",
        "srt/configs/x.py": "arguments",
        "distributed/configs/custom_all_reduce_v2.py": "communication",
        "distributed/device_communicators/x.py": "communication",
        "layers/moe/x.py": "moe",
        "layers/attention/x.py": "attention",
        "layers/quantization/fp8_utils.py": "gemm",
        "mem_cache/memory_pool.py": "kv_cache",
        "models/x.py": "other",
    }
    root = write(tmp_path, {name: "if is_sm90(): pass\n" for name in files})
    assert {site.file: site.group for site in audit(str(root), [], "12")} == files
    (site,) = one("def flashinfer_ar_fusion_applies():\n    return is_sm90()\n")
    assert site.fusion and site.group == "communication"


def test_file_that_does_not_parse_is_named(tmp_path: Path) -> None:
    files = {
        "a.py": "is_sm90(\n",
        "b.py": "is_sm90()\n",
        "c.py": "no Python, no test\n",
        "pyproject.toml": 'requires-python=">=3.99"\n',
    }
    root = write(tmp_path, files)
    with pytest.raises(SourceError, match=r"Python >=3.99\): a.py:1"):
        audit(str(root), [], "12.0")


def test_compare() -> None:
    old = one("if is_sm90(): pass\nif is_sm90(): pass\nif is_sm100(): pass\n")
    new = one("\n\nif is_sm90(): pass\nif is_sm103(): pass\n")
    appeared, gone = compare([vars(site) for site in old], new)
    assert [site["expression"] for site in appeared] == ["is_sm103()"]
    assert sorted(site["expression"] for site in gone) == ["is_sm100()", "is_sm90()"]


def test_compare_sees_what_a_long_test_ends_with_and_its_capabilities() -> None:
    start = " and ".join(f"condition_{number}" for number in range(30))
    old, new = one(f"if {start} and is_sm100(): pass\n"), one(f"if {start} and is_sm90(): pass\n")
    appeared, gone = compare([vars(site) for site in old], new)
    assert (len(appeared), len(gone)) == (1, 1)
    assert gate_line(appeared[0]).startswith("a.py:1: … is_sm90() … (predicate")
    define = "_is_sm100 = cc_major == {}\nif _is_sm100: pass\n"
    appeared, gone = compare([vars(site) for site in one(define.format(10))], one(define.format(11)))
    assert [site["capabilities"] for site in (*appeared, *gone)] == [["11.0"], ["10.0"]]


@pytest.mark.parametrize("baseline", [["x"], [{"file": "x"}], [None]])
def test_baseline_that_is_none(baseline: list[Any]) -> None:
    with pytest.raises(SourceError, match="baseline: element 1 is no test"):
        compare(baseline, [])


def test_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, {"sglang/srt/a.py": "if is_sm90(): pass\nif is_sm120(): pass\n"})

    def run(**options: Any) -> dict[str, Any]:
        with patch_module_args({"root": str(root), **options}), pytest.raises(SystemExit):
            capability_gates_info.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    result = run()
    assert [site["expression"] for site in result["gates"]] == ["is_sm90()"] and result["counts"] == {"other": 1}
    assert len(run(every=True)["gates"]) == 2
    compared = run(baseline=[])
    assert compared["appeared"] == result["gates"] and compared["gone"] == []
    documented = yaml.safe_load(capability_gates_info.RETURN)
    assert set(documented["gates"]["contains"]) == set(result["gates"][0])
    assert set(documented) == set(compared) - {"changed", "invocation"}
    assert "no compute capability" in run(capability="x")["msg"]
    assert "baseline: element 1" in run(baseline=[{"file": "x"}])["msg"]
