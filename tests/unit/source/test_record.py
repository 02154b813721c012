"""What we wrote is known as ours: idempotent, upgradable, reversible, in any order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.source.helpers import RECORD, dict_edit, do, gate_edit, read_all, write
from tests.unit.source.test_gate import GATE, HEAD, LIB

TEXT = "NAME = {\n    9: 1,\n}\nOTHER = {9: 1}\n"


def named(ident: str, key: str, value: str, name: str = "NAME") -> dict[str, Any]:
    """Return a dict edit with an id of its own."""
    return {**dict_edit(key, value, name=[name]), "id": ident}


def states(report: Any) -> list[tuple[str, bool]]:
    """Return (state found, changed) of each edit, after checking that the run did not fail."""
    assert not report.failed, report.failed
    return [(edit.state, edit.changed) for edit in report.edits]


def test_second_run_touches_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    assert states(do(root, dict_edit())) == [("absent", True)]
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")} | {root: root.stat().st_mtime_ns}
    report = do(root, dict_edit())
    assert states(report) == [("present", False)] and not report.changed and not report.diff
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} | {root: root.stat().st_mtime_ns} == before
    assert report.edits[0].before == report.edits[0].after == "NAME = {\n    9: 1,\n    12: [],\n}"


def test_digests_of_the_report(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n"})
    one = do(root, dict_edit()).files[0]
    two = do(root, dict_edit()).files[0]
    back = do(root, dict_edit(state="absent")).files[0]
    assert (one.path, one.changed, one.before, one.original) == ("a.py", True, one.original, one.original)
    assert one.after == two.before == two.after == back.before != one.before == back.after == two.original
    assert len(one.after) == 64 and one.after == one.after.lower()


def test_older_form_is_upgraded_once_and_goes_back(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit("12", "[1]"))
    report = do(root, dict_edit("12", "[1, 2]"))
    assert states(report) == [("present", True)]
    assert "12: [1]" in report.edits[0].before and "12: [1, 2]" in report.edits[0].after
    assert states(do(root, dict_edit("12", "[1, 2]"))) == [("present", False)]
    assert (root / "a.py").read_text() == TEXT.replace("1,\n", "1,\n    12: [1, 2],\n")
    assert states(do(root, dict_edit("12", "whatever", state="absent"))) == [("present", True)]
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_edit_under_a_new_id_is_still_ours(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, named("old", "12", "[1]"))
    assert states(do(root, named("new", "12", "[2]"))) == [("present", True)]
    assert states(do(root, {**named("newer", "0xC", "[2]"), "state": "absent"})) == [("present", True)]
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_edit_that_wants_another_place_now(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, named("one", "12", "[]"))
    assert states(do(root, named("one", "12", "[]", "OTHER"))) == [("present", True)]
    assert (root / "a.py").read_text() == TEXT.replace("OTHER = {9: 1}", "OTHER = {9: 1, 12: []}")
    do(root, named("one", "13", "[]", "OTHER"))
    assert (root / "a.py").read_text() == TEXT.replace("OTHER = {9: 1}", "OTHER = {9: 1, 13: []}")


EDITS = [named("a", "12", "[]"), named("b", "13", "[]"), named("c", "12", "{}", "OTHER")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("back", list(itertools.permutations(range(3))), ids=str)
def test_edits_of_one_file_come_and_go_in_any_order(
    tmp_path: Path, order: tuple[int, ...], back: tuple[int, ...]
) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    for index in order:
        assert states(do(root, EDITS[index])) == [("absent", True)]
    assert states(do(root, *EDITS)) == [("present", False)] * 3
    for count, index in enumerate(back, 1):
        assert states(do(root, EDITS[index], state="absent")) == [("present", True)]
        left = [edit for at, edit in enumerate(EDITS) if at not in back[:count]]
        assert states(do(root, *left)) == [("present", False)] * len(left)
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_gate_and_dict_of_one_file(tmp_path: Path) -> None:
    files = {"lib.py": LIB, "a.py": HEAD + TEXT + GATE}
    wanted = None
    for order in (1, -1):
        root = write(tmp_path / str(order), dict(files))
        edits = [gate_edit(), dict_edit()][::order]
        do(root, *edits[:1])
        do(root, *edits)
        wanted = wanted or (root / "a.py").read_text()
        assert (root / "a.py").read_text() == wanted
        assert states(do(root, gate_edit(state="absent"), dict_edit())) == [("present", True), ("present", False)]
        assert (root / "a.py").read_text() == files["a.py"].replace("1,\n}", "1,\n    12: [],\n}")
        do(root, dict_edit(state="absent"))
        assert read_all(root) == {name: text.encode() for name, text in files.items()}


def test_upgrade_below_another_edit(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, EDITS[0], EDITS[1])
    do(root, named("a", "12", "[1, 2, 3]"))
    assert (root / "a.py").read_text() == TEXT.replace("1,\n}", "1,\n    12: [1, 2, 3],\n    13: [],\n}")
    do(root, *EDITS, state="absent")
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_two_gates_on_one_or(tmp_path: Path) -> None:
    lib = LIB + "def is_sm130(): pass\n"
    root = write(tmp_path, {"lib.py": lib, "a.py": HEAD + GATE})
    more = {**gate_edit(add="_is_sm130"), "id": "more"}
    do(root, gate_edit(), more)
    assert "return _is_sm90 or _is_sm100 or _is_sm130 or _is_sm120\n" in (root / "a.py").read_text()
    assert "import is_sm90, is_sm100, is_sm130, is_sm120\n" in (root / "a.py").read_text()
    do(root, gate_edit(state="absent"))
    assert "return _is_sm90 or _is_sm100 or _is_sm130\n" in (root / "a.py").read_text()
    assert "is_sm120" not in (root / "a.py").read_text()
    do(root, more, state="absent")
    assert (root / "a.py").read_text() == HEAD + GATE


def test_upstream_comes_to_say_the_same(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    later = TEXT.replace("9: 1,\n", "9: 1,\n    12: [],\n    13: [],\n")
    write(root, {"a.py": later})
    report = do(root, dict_edit())
    assert states(report) == [("upstream", False)] and not report.changed
    assert "has changed since we last wrote it" in report.edits[0].message
    assert states(do(root, dict_edit(state="absent"))) == [("upstream", False)]
    assert (root / "a.py").read_text() == later


def test_upstream_comes_to_say_something_else(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    write(root, {"a.py": TEXT.replace("9: 1,\n", "9: 1,\n    12: [1],\n")})
    assert "conflict" in do(root, dict_edit()).failed
    assert states(do(root, dict_edit(on_conflict="keep"))) == [("conflict", False)]


def test_file_was_reset_by_someone(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    write(root, {"a.py": TEXT})
    assert states(do(root, dict_edit(state="absent"))) == [("absent", False)]
    assert states(do(root, dict_edit())) == [("absent", True)]
    do(root, dict_edit(state="absent"))
    assert read_all(root) == {"a.py": TEXT.encode()}


def test_new_upstream_without_the_key_is_edited_anew(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    later = "# new\n" + TEXT
    write(root, {"a.py": later})
    assert states(do(root, dict_edit())) == [("absent", True)]
    do(root, dict_edit(state="absent"))
    assert read_all(root) == {"a.py": later.encode()}


def test_without_a_record_an_equal_entry_is_upstreams(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    (root / RECORD).unlink()
    assert states(do(root, dict_edit())) == [("upstream", False)]
    assert states(do(root, dict_edit(state="absent"))) == [("upstream", False)]


def test_absent_where_nothing_is(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": TEXT, "lib.py": "", "b.py": HEAD + GATE})
    # the sibling's import has no counterpart, which is no matter when there is nothing to add
    assert states(do(root, dict_edit(), gate_edit(), state="absent")) == [("absent", False)] * 2
    assert RECORD not in read_all(root)


BROKEN = {
    "no JSON": (lambda data: "{", "cannot be read"),
    "other version": (lambda data: json.dumps({**data, "version": 2}), "its version is 2"),
    "other shape": (lambda data: json.dumps({"version": 1, "files": []}), "cannot be read"),
}


@pytest.mark.parametrize("change, message", BROKEN.values(), ids=BROKEN.keys())
def test_broken_record_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    (root / RECORD).write_text(change(json.loads((root / RECORD).read_text())))
    before = read_all(root)
    report = do(root, dict_edit(state="absent"))
    assert message in report.failed and "restore or remove it" in report.failed
    assert read_all(root) == before


FORGED = {
    "offset": lambda edit: edit["splices"][0].update(at=3),
    "text": lambda edit: edit["splices"][0].update(inserted="x"),
    "far away": lambda edit: edit["splices"][0].update(at=10**9),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_record_that_does_not_fit_is_not_believed(tmp_path: Path, forge: Any) -> None:
    root = write(tmp_path, {"a.py": TEXT})
    do(root, dict_edit())
    data = json.loads((root / RECORD).read_text())
    forge(data["files"]["a.py"]["edits"][0])
    (root / RECORD).write_text(json.dumps(data))
    assert states(do(root, dict_edit(state="absent"))) == [("upstream", False)]


def test_record_of_one_file_stands_beside_it(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n", "b.py": "NAME = {}\n"})
    assert states(do(root / "a.py", dict_edit(within=["no/such.py"]))) == [("absent", True)]
    assert set(read_all(root)) == {"a.py", "b.py", ".a.py.python_source.json"}
    assert states(do(root / "a.py", dict_edit())) == [("present", False)]
    do(root / "a.py", dict_edit(state="absent"))
    assert set(read_all(root)) == {"a.py", "b.py"}


def test_records_of_several_runs_add_up(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n", "b.py": "OTHER = {}\n"})
    do(root, named("a", "1", "2"))
    do(root, named("b", "1", "2", "OTHER"))
    assert set(json.loads((root / RECORD).read_text())["files"]) == {"a.py", "b.py"}
    do(root, named("a", "1", "2"), state="absent")
    assert states(do(root, named("b", "1", "2", "OTHER"))) == [("present", False)]
