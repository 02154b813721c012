"""Figures for the structural edits: our logic beside libcst, the module beside Ansible's ping, replace and lineinfile.

    python benchmarks/python_source.py ~/.cache/llmfleet/wheels/sglang-0.5.23-*.whl [--repeats 7]

Everything runs on the same copy of the same tree, in one run, over the same local connection. Prints medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, Callable

import libcst
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "plugins" / "module_utils"))

from _source import dicts  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from _source.engine import run  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from _source.prove import prove, prove_compiles  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from _source.spec import parse_edits  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from _source.text import SourceText, apply_splices  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

FOLDER = "sglang/srt/distributed/device_communicators"
SIZES = "{2: 64 * MiB, 4: 64 * MiB, 6: 128 * MiB, 8: 128 * MiB}"
ADDED = {"TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES": SIZES, "_WORLD_SIZES_MULTIMEM": "[]"}


class AddKey(libcst.CSTTransformer):
    """The same two edits with libcst."""

    def leave_Assign(self, original_node: libcst.Assign, updated_node: libcst.Assign) -> libcst.Assign:
        """Add the entry to the dicts."""
        target = updated_node.targets[0].target
        value = updated_node.value
        if not isinstance(target, libcst.Name) or target.value not in ADDED or not isinstance(value, libcst.Dict):
            return updated_node
        last = value.elements[-1]
        key, text = libcst.Integer("12"), libcst.parse_expression(ADDED[target.value])
        elements = [*value.elements[:-1], last.with_changes(comma=value.elements[0].comma)]
        new = libcst.DictElement(key, text, comma=getattr(last, "comma", libcst.MaybeSentinel.DEFAULT))
        return updated_node.with_changes(value=value.with_changes(elements=[*elements, new]))


def with_libcst(root: Path) -> None:
    """Find the files by their bytes, as we do, edit them, check that they parse, write them."""
    for path in sorted((root / FOLDER).glob("*.py")):
        raw = path.read_bytes()
        if any(name.encode() in raw for name in ADDED):
            code = libcst.parse_module(raw).visit(AddKey()).bytes
            if code != raw:
                compile(code, path.name, "exec")
                path.write_bytes(code)


def in_memory(sources: list[SourceText], edits: list[Any]) -> None:
    """Locate, splice and prove both edits, without files."""
    for source, edit in zip(sources, edits):
        (target,) = dicts.find(source, edit.what)
        assert dicts.state(target, edit.what)[0] == "absent"
        expected = source.fresh_tree()
        splices = sorted(dicts.plan(target, edit.what, expected))
        after = source.with_text(apply_splices(source.text, splices))
        prove(after, expected, 1)
        prove_compiles(after)


def median(count: int, work: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> float:
    """Return the median time of `work` in milliseconds; `before` is not counted."""
    times = []
    for _count in range(count):
        before()
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def play(tasks: list[dict[str, Any]], folder: Path) -> list[float]:
    """Run tasks on localhost; return the seconds of each, as Ansible's own callback counts them."""
    book = folder / "play.yml"
    book.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
    }
    interpreter = f"ansible_python_interpreter={sys.executable}"
    # beside this Python, where PATH does not lead to it
    beside = Path(sys.executable).with_name("ansible-playbook")
    command = [
        str(beside) if beside.exists() else "ansible-playbook",
        "-i",
        "localhost,",
        "-c",
        "local",
        "-e",
        interpreter,
        str(book),
    ]
    times: list[float] = []
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True)
    last = None
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("TASK ["):
            now = time.perf_counter()
            if last is not None:
                times.append((now - last) * 1000)
            last = now
        elif line.startswith("PLAY RECAP") and last is not None:
            times.append((time.perf_counter() - last) * 1000)
        elif "FAILED" in line or "fatal" in line:
            raise SystemExit(line)
    if process.wait():
        raise SystemExit(f"ansible-playbook ended with {process.returncode}")
    return times


def module_times(root: Path, edits: list[dict[str, Any]], repeats: int, folder: Path) -> dict[str, float]:
    """Return the wall time of each module in milliseconds."""
    sizes, worlds = root / FOLDER / "all_reduce_utils.py", root / FOLDER / "torch_symm_mem.py"

    def ours(state: str) -> dict[str, Any]:
        edited = [{**edit, "state": state} for edit in edits]
        return {"llmfleet.sglang.python_source": {"root": str(root), "edits": edited}}

    kinds: dict[str, dict[str, Any]] = {
        "ping": {"ansible.builtin.ping": {}},
        "python_source, first run": ours("present"),
        "python_source, second run": ours("present"),
        "python_source, taken back": ours("absent"),
        "replace, one file": {
            "ansible.builtin.replace": {
                "path": str(sizes),
                "regexp": r"(?m)^\}\n\Z",
                "replace": f"    12: {SIZES},\n}}\n",
            }
        },
        "replace back": {
            "ansible.builtin.replace": {"path": str(sizes), "regexp": r"(?m)^    12: .*\n", "replace": ""}
        },
        "lineinfile, one file": {
            "ansible.builtin.lineinfile": {
                "path": str(worlds),
                "line": "        12: [],",
                "insertafter": r"^        10: \[4, 6, 8\],$",
            }
        },
        "lineinfile back": {
            "ansible.builtin.lineinfile": {"path": str(worlds), "line": "        12: [],", "state": "absent"}
        },
    }
    tasks = [{"name": name, **task} for _repeat in range(repeats) for name, task in kinds.items()]
    # the first task pays for what Ansible loads once
    times = play([{"name": "warm-up", "ansible.builtin.ping": {}}, *tasks], folder)[1:]
    return {name: statistics.median(times[at :: len(kinds)]) for at, name in enumerate(kinds)}


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="wheel of SGLang 0.5.23")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    edits = yaml.safe_load((REPOSITORY / "playbooks/patch_sets/sm120.yml").read_text())["edits"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with zipfile.ZipFile(options.wheel) as archive:
            archive.extractall(folder / "tree", [n for n in archive.namelist() if n.endswith(".py") and "/srt/" in n])
        shutil.copytree(folder / "tree" / FOLDER, folder / "kept")
        root = folder / "tree"

        def reset() -> None:
            shutil.rmtree(root / FOLDER)
            shutil.copytree(folder / "kept", root / FOLDER)
            (root / ".python_source.json").unlink(missing_ok=True)

        def ours() -> None:
            report = run(str(root), parse_edits(edits))
            assert not report.failed, report.failed

        many, parsed = options.repeats * 3, parse_edits(edits)
        raws = [(folder / "kept" / name).read_bytes() for name in ("all_reduce_utils.py", "torch_symm_mem.py")]
        figures = {
            "in memory: ours, proof included": median(
                many, lambda: in_memory([SourceText("a.py", raw) for raw in raws], parsed)
            ),
            "in memory: libcst, no proof": median(
                many, lambda: [libcst.parse_module(raw).visit(AddKey()).bytes for raw in raws]
            ),
            "tree: ours, first run": median(many, ours, reset),
            "tree: ours, second run": median(many, ours),
            "tree: ours, check mode": median(many, lambda: run(str(root), parsed, True), reset),
            "tree: libcst": median(many, lambda: with_libcst(root), reset),
        }
        reset()
        figures.update({f"Ansible: {k}": v for k, v in module_times(root, edits, options.repeats, folder).items()})
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0
    for label, value in figures.items():
        print(f"{label:38} {value:8.1f} ms")
    ratio = figures["in memory: libcst, no proof"] / figures["in memory: ours, proof included"]
    print(f"{'libcst / ours, in memory':38} {ratio:8.1f}")
    print(f"{'libcst / ours, tree':38} {figures['tree: libcst'] / figures['tree: ours, first run']:8.1f}")
    for label in ("first", "second"):
        ratio = figures[f"Ansible: python_source, {label} run"] / figures["Ansible: ping"]
        print(f"python_source / ping, {label + ' run':16} {ratio:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
