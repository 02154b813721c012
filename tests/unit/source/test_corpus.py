"""The shipped patch sets on real SGLang releases, and our edits in every file of the standard library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._source import dicts, gates
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SourceError
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.prove import prove, prove_compiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import DictEntry, Gate
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.text import (
    SourceText,
    apply_splices,
    undo_splices,
)

from tests.unit.source.helpers import REPOSITORY, do, read_all

pytestmark = pytest.mark.corpus

WHEELS = Path("~/.cache/llmfleet/wheels").expanduser()
# every change of the three places between 0.5.3 and 0.5.23 lies between two of these
VERSIONS = ["0.5.3", "0.5.4.post3", "0.5.7", "0.5.8", "0.5.13", "0.5.18", "0.5.20", "0.5.21", "0.5.23"]
COMMUNICATORS = "sglang/srt/distributed/device_communicators"

REASONS = ("may undo the edit", "unpacks another mapping", "twice", "keys of type")


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def wheel(version: str) -> Path:
    """Return the wheel of a release, fetched once."""
    found = list(WHEELS.glob(f"sglang-{version}-*.whl"))
    if not found:
        WHEELS.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(WHEELS), f"sglang=={version}"], check=True)
        found = list(WHEELS.glob(f"sglang-{version}-*.whl"))
    return found[0]


@pytest.fixture(params=VERSIONS)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return (version, folder with the Python source of the release)."""
    with zipfile.ZipFile(wheel(request.param)) as archive:
        names = [name for name in archive.namelist() if name.startswith("sglang/srt/") and name.endswith(".py")]
        archive.extractall(
            tmp_path, [*names, *(n for n in archive.namelist() if n.endswith(("version.py", "METADATA")))]
        )
    return request.param, tmp_path


def patch_set(name: str) -> list[dict[str, Any]]:
    """Return the edits of a shipped patch set."""
    data = yaml.safe_load((REPOSITORY / "playbooks" / "patch_sets" / f"{name}.yml").read_text())
    assert data["name"] == name and data["summary"]
    return list(data["edits"])


def evaluate(root: Path, file: str, name: str) -> Any:
    """Return the value of a dict of literals and MiB in a patched file."""
    for node in ast.walk(ast.parse((root / file).read_text())):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return eval(compile(ast.Expression(node.value), file, "eval"), {"MiB": 1024 * 1024})
    raise AssertionError(f"{file} has no {name}")


def test_both_dicts(release: tuple[str, Path]) -> None:
    version, root = release
    before = read_all(root)
    report = do(root, *patch_set("sm120"))
    assert not report.failed
    assert [(edit.state, edit.changed) for edit in report.edits] == [("absent", True)] * 2
    renamed, moved = version_key(version) >= (0, 5, 4, 3), version_key(version) >= (0, 5, 4, 3)
    sizes, worlds = report.edits
    assert sizes.file == f"{COMMUNICATORS}/all_reduce_utils.py"
    assert worlds.file == f"{COMMUNICATORS}/{'torch_symm_mem' if moved else 'symm_mem'}.py"
    table = evaluate(root, sizes.file, ("TORCH_" if renamed else "") + "SYMM_MEM_ALL_REDUCE_MAX_SIZES")
    assert list(table) == [9, 10, 12] and table[12] == {2: 2**26, 4: 2**26, 6: 2**27, 8: 2**27}
    assert evaluate(root, worlds.file, "_WORLD_SIZES_MULTIMEM")[12] == []
    after = read_all(root)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {sizes.file, worlds.file} == {file.path for file in report.files}
    for name in changed:
        old, new = before[name].splitlines(), after[name].splitlines()
        assert len(new) == len(old) + 1 and [line for line in new if line in old] == [
            x for x in new if b"12: " not in x
        ]
    again = do(root, *patch_set("sm120"))
    assert not again.changed and read_all(root) == after
    assert do(root, *patch_set("sm120"), state="absent").changed
    assert read_all(root) == before


def test_gate(release: tuple[str, Path]) -> None:
    version, root = release
    before = read_all(root)
    report = do(root, *patch_set("sm120_fusion"))
    edit = report.edits[0]
    if version_key(version) < (0, 5, 4):
        assert "is_sm120_supported does not exist in sglang/srt/utils/__init__.py" in report.failed
        assert f"this tree says it is {version}" in report.failed and edit.state == "not_found"
        assert read_all(root) == before
        return
    assert not report.failed and (edit.state, edit.changed) == ("absent", True)
    new = version_key(version) >= (0, 5, 21)
    assert edit.file == "sglang/srt/layers/" + ("layer_boundary/residual/add_norm.py" if new else "communicator.py")
    after = read_all(root)
    assert {name for name in before if before[name] != after[name]} == {edit.file}
    added = [line for line in after[edit.file].decode().splitlines() if line not in before[edit.file].decode()]
    assert any(
        re.fullmatch(r" +\(_is_sm\d+_supported or _is_sm\d+_supported or _is_sm120_supported\)", x) for x in added
    )
    if version_key(version) >= (0, 5, 19):
        assert "_is_sm120_supported = _is_cuda and get_platform().is_sm120" in added and len(added) == 2
    else:
        cuda = "_is_cuda" if version_key(version) >= (0, 5, 7) else "is_cuda()"
        assert f"_is_sm120_supported = {cuda} and is_sm120_supported()" in added
        assert "    is_sm120_supported," in added and len(added) == 3
    assert not do(root, *patch_set("sm120_fusion")).changed
    both = do(root, *patch_set("sm120"), *patch_set("sm120_fusion"), state="absent")
    assert not both.failed and read_all(root) == before


def library() -> list[Path]:
    """Return every Python file of the standard library."""
    return sorted(
        path for path in Path(sysconfig.get_path("stdlib")).rglob("*.py") if "site-packages" not in path.parts
    )


def dict_names(source: SourceText) -> list[str]:
    """Return the names in a file that one dict literal is assigned to."""
    names = Counter(
        target.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    return [name for name, count in names.items() if count == 1]


def add_key(source: SourceText, name: str) -> str:
    """Add a key to a dict and take it back; return "done" or why that was refused."""
    why = ""
    for key in ("'llmfleet'", "987654321", "(98, 76)", "987.25", "b'llmfleet'", "int.llmfleet"):
        what = DictEntry((name,), (), key, "[1, 2]", None)
        (target,) = (target for target in dicts.find(source, what) if isinstance(target.node, ast.Dict))
        try:
            assert dicts.state(target, what)[0] == "absent"
            expected = source.fresh_tree()
            splices = dicts.plan(target, what, expected)
        except SourceError as exc:
            why = exc.reason
            # beside keys of unknown value only one of unknown value can go
            if "keys of type" in why or "does not tell" in why:
                continue
            break
        there_and_back(source, splices, expected)
        return "done"
    return next((reason for reason in REASONS if reason in why), why)


def there_and_back(source: SourceText, splices: list[Any], expected: ast.Module) -> None:
    """Prove a change and that its inverse gives the same bytes."""
    splices = sorted(splices, key=lambda splice: splice.start)
    after = source.with_text(apply_splices(source.text, splices))
    prove(after, expected, 1)
    prove_compiles(after)
    assert source.with_text(undo_splices(after.text, splices)).raw == source.raw


def add_term(source: SourceText, node: ast.BoolOp) -> None:
    """Add a term behind a random operand of an `or` and take it back."""
    index = node.lineno % len(node.values)
    target = gates.GateTarget(source, "", (source.tree,), node)
    what = Gate((ast.unparse(node.values[index]),), (), (), "llmfleet", "")
    expected = source.fresh_tree()
    there_and_back(source, gates.plan_term(target, what, expected), expected)


def test_standard_library() -> None:
    counts: Counter[str] = Counter()
    for path in library():
        try:
            source = SourceText(path.name, path.read_bytes())
            tree = source.tree
            compile(source.raw, path.name, "exec")
        except (SourceError, SyntaxError):
            counts["bad on purpose"] += 1
            continue
        counts["files"] += 1
        inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for name in dict_names(source)[:2]:
            counts[f"dicts {add_key(source, name)}"] += 1
        ors = [n for n in ast.walk(tree) if isinstance(n, ast.BoolOp) and isinstance(n.op, ast.Or) and n not in inside]
        for node in ors[:: max(1, len(ors) // 2)][:2]:
            add_term(source, node)
            counts["gates done"] += 1
    print(dict(counts))
    assert counts["files"] > 500 and counts["bad on purpose"] < 40
    assert counts["gates done"] > 500 and counts["dicts done"] > 300
    known = {"files", "bad on purpose", "gates done", "dicts done", *(f"dicts {reason}" for reason in REASONS)}
    assert set(counts) <= known
