"""All files or none, also when the process is killed at any moment or the disk says no."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._source import commit

from tests.unit.source.helpers import dict_edit, do, read_all, write

FILES = {"a.py": "NAME = {\n    9: 1,\n}\n", "s/b.py": "OTHER = {}\n", "c.py": "x = 1\n"}
EDITS = [dict_edit(), {**dict_edit(name=["OTHER"]), "id": "other"}]
NOTHING = {**dict_edit(name=["x.y.z"]), "id": "nothing", "optional": True}
OLD = {name: text.encode() for name, text in FILES.items()}
CALLS = ("open", "replace", "unlink", "fsync", "fchown", "chown", "utime", "stat")


def intrude(number: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Call `act` in place of the `number`th call that the writing code makes to the operating system."""
    count = [0]

    class Intruder:
        """The module os, as the writing code sees it."""

        def __getattr__(self, name: str) -> Any:
            real = getattr(os, name)
            if name not in CALLS:
                return real

            def call(*args: Any, **options: Any) -> Any:
                count[0] += 1
                if count[0] == number:
                    act()
                return real(*args, **options)

            return call

    monkeypatch.setattr(commit, "os", Intruder())
    return count


def killed_at(root: Path, number: int, edits: list[dict[str, Any]], **options: Any) -> bool:
    """Run edits in a process that is killed at the `number`th call; return whether it was."""
    child = os.fork()
    if child == 0:
        monkeypatch = pytest.MonkeyPatch()
        intrude(number, lambda: os.kill(os.getpid(), signal.SIGKILL), monkeypatch)
        report = do(root, *edits, **options)
        os._exit(1 if report.failed else 0)
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def kill_points(tmp_path: Path, start: Path, edits: list[dict[str, Any]], **options: Any) -> list[Path]:
    """Return a copy of the tree `start` for every moment at which the run can be killed."""
    roots: list[Path] = []
    while True:
        root = tmp_path / f"killed{len(roots)}"
        shutil.copytree(start, root)
        if not killed_at(root, len(roots) + 1, edits, **options):
            assert len(roots) > 20
            return roots
        roots.append(root)


def patched(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """Return a tree with the edits done, and its files."""
    root = write(tmp_path / "patched", dict(FILES))
    assert do(root, *EDITS).changed
    return root, read_all(root)


def sources(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the source files alone."""
    return {name: raw for name, raw in files.items() if name in FILES}


@pytest.mark.parametrize("way", ["there", "back"])
def test_killed_at_any_moment(tmp_path: Path, way: str) -> None:
    done, new = patched(tmp_path)
    fresh = write(tmp_path / "fresh", dict(FILES))
    start, state = (fresh, "present") if way == "there" else (done, "absent")
    halves = 0
    for root in kill_points(tmp_path, start, EDITS, state=state):
        halves += sources(read_all(root)) not in (OLD, sources(new))
        left = read_all(root)
        foretold = do(root, *EDITS, check=True, state=state)
        assert read_all(root) == left, "check mode wrote something"
        other = shutil.copytree(root, root.with_suffix(".other"))
        reverse = shutil.copytree(root, root.with_suffix(".reverse"))

        report = do(root, *EDITS, state=state)
        assert not report.failed
        assert foretold.to_data() == report.to_data()
        assert read_all(root) == (new if way == "there" else OLD)

        # a run that has nothing to do with it leaves all or none
        assert not do(other, NOTHING).failed
        assert read_all(other) in (OLD, new)

        assert not do(reverse, *EDITS, state="absent" if way == "there" else "present").failed
        assert read_all(reverse) == (OLD if way == "there" else new)
    assert halves, "no kill hit the moment between two replacements"


def test_killed_while_repairing(tmp_path: Path) -> None:
    start = write(tmp_path / "start", dict(FILES))
    _done, new = patched(tmp_path)
    half = next(
        root for root in kill_points(tmp_path, start, EDITS) if sources(read_all(root)) not in (OLD, sources(new))
    )
    roots = kill_points(tmp_path / "again", half, EDITS)
    for root in roots:
        assert not do(root, *EDITS).failed
        assert read_all(root) == new


def test_file_that_changed_after_the_kill_is_left_alone(tmp_path: Path) -> None:
    start = write(tmp_path / "start", dict(FILES))
    _done, new = patched(tmp_path)
    root = next(
        root for root in kill_points(tmp_path, start, EDITS) if sources(read_all(root)) not in (OLD, sources(new))
    )
    write(root, {"a.py": "NAME = {1: 1}\n"})
    report = do(root, *EDITS)
    assert not report.failed and any("changed since; left alone" in line for line in report.recovered)
    assert (root / "a.py").read_text() == "NAME = {1: 1, 12: []}\n"
    assert not do(root, *EDITS, state="absent").failed
    assert read_all(root) == {**OLD, "a.py": b"NAME = {1: 1}\n"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_disk_says_no_at_any_moment(tmp_path: Path, code: int) -> None:
    _done, new = patched(tmp_path)
    failures = 0
    for number in range(1, 200):
        root = write(tmp_path / str(number), dict(FILES))
        with pytest.MonkeyPatch.context() as monkeypatch:

            def fail() -> None:
                raise OSError(code, os.strerror(code), "somewhere")

            count = intrude(number, fail, monkeypatch)
            report = do(root, *EDITS)
        if count[0] < number:
            break
        assert sources(read_all(root)) == (OLD if report.failed else sources(new))
        failures += bool(report.failed)
        assert not do(root, *EDITS).failed
        assert read_all(root) == new
    assert failures > 20


def test_file_that_changes_under_us(tmp_path: Path) -> None:
    root = write(tmp_path, dict(FILES))

    def change() -> None:
        (root / "s/b.py").write_text("OTHER = {1: 2}\n")

    with pytest.MonkeyPatch.context() as monkeypatch:
        intrude(12, change, monkeypatch)
        report = do(root, *EDITS)
    assert "s/b.py: changed while it was being edited; run again" in report.failed
    assert read_all(root) == {**OLD, "s/b.py": b"OTHER = {1: 2}\n"}


def test_one_run_at_a_time(tmp_path: Path) -> None:
    root = write(tmp_path, dict(FILES))
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert "another run is editing" in do(root, *EDITS).failed
        assert not do(root, *EDITS, check=True).failed
    finally:
        os.close(handle)
    assert do(root, *EDITS).changed


def test_broken_journal(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, ".python_source.journal.json": "{"})
    assert "the journal" in do(root, *EDITS).failed


JOURNALS = ["[]", "null", "1", '"a"', "{}", '{"files": {}}', '{"files": []}', '{"files": {"a.py": {}}, "record": {}}']
EMPTY = '"record": {"version": 1, "files": {}}'


@pytest.mark.parametrize(
    "text",
    [
        *JOURNALS,
        '{"files": [], RECORD}',
        '{"files": {"a.py": {}}, RECORD}',
        '{"files": {"a.py": {"before": "a", "after": "b", "old": "?"}}, RECORD}',
        '{"files": {"a.py": {"before": 1, "after": "b", "old": ""}}, RECORD}',
    ],
)
def test_journal_that_is_not_as_we_write_it(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {"a.py": "NAME = {9: 1}\n", ".python_source.journal.json": text.replace("RECORD", EMPTY)})
    before = read_all(root)
    for check in (True, False):
        report = do(root, dict_edit(), check=check)
        assert "journal" in report.failed and "restore or remove it" in report.failed
    assert read_all(root) == before
