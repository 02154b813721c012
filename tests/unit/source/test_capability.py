"""Tests for a capability: found, judged and grouped."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
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
    "def is_sm90_supported(): return get_x()",
    "SM100_SIZE = 4\nf(SM100_SIZE)",
]


@pytest.mark.parametrize("text", NO_TESTS)
def test_no_test(text: str) -> None:
    assert one(text + "\n") == []


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
