# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases stay: never one that anything names; and what goes is gone whole."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import identity, keep, source

from tests.unit.release.repository import Repository

DAY = 86400.0


class Host:
    """A host's folders, empty."""

    def __init__(self, folder: Path) -> None:
        self.units = folder / "units"
        self.proc = folder / "proc"
        self.places = keep.Places(
            root=folder / "root",
            state=folder / "state",
            units=(self.units, folder / "no-such-folder"),
            proc=self.proc,
            caches=folder / "caches",
        )
        for one in (self.places.releases, self.places.state / "qwen" / "next", self.units, self.proc):
            one.mkdir(parents=True)

    def release(self, number: int, *, finished: bool = True) -> str:
        """Make a release; the higher its number, the newer."""
        name = f"0.5.23-abcdef012-{number:016x}"
        path = self.places.releases / name
        (path / "venv" / "bin").mkdir(parents=True)
        if finished:
            record = {"id": name, "built_at": f"2026-01-{number:02d}T00:00:00+00:00"}
            (path / identity.RECORD).write_text(json.dumps(record))
        return name

    def judge(self, number: int = 1, age: float = DAY, now: float | None = None, deployed: str = "") -> keep.Verdict:
        """Judge with `number` to keep."""
        return keep.judge(self.places, number, age, now, deployed)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def gone(verdict: keep.Verdict) -> list[str]:
    return sorted(path.name for path in verdict.remove)


def test_the_newest_stay(host: Host) -> None:
    names = [host.release(number) for number in (1, 2, 3, 4)]
    assert gone(host.judge(3)) == names[:1]
    assert gone(host.judge(1)) == names[:3]
    assert gone(host.judge(9)) == []


def test_an_empty_host_has_nothing_to_lose(tmp_path: Path) -> None:
    assert keep.judge(keep.Places(tmp_path / "none", tmp_path / "none"), 1, 0).all == []


@pytest.mark.parametrize(
    "place", ["units/sglang-x.service", "units/sglang-x.service.d/10.conf", "state/qwen/record.json"]
)
def test_a_release_that_a_file_names_stays(host: Host, place: str) -> None:
    old, newer = host.release(1), host.release(2)
    path = host.places.root.parent / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"ExecStart": f"{host.places.releases}/{old}/venv/bin/python -m sglang"}))
    verdict = host.judge(1)
    assert verdict.kept == {old: f"named in {path}"}
    assert gone(verdict) == [newer]
    assert gone(host.judge(2)) == []


def test_a_release_to_roll_back_to_stays(host: Host) -> None:
    """A snapshot holds unit files in base64, drop-ins too."""
    old, _newer = host.release(1), host.release(2)
    unit = f"[Service]\nExecStart={host.places.releases}/{old}/venv/bin/python -m sglang.launch_server\n"
    content = base64.b64encode(unit.encode()).decode()
    snapshot = {"services": [{"files": {"drop_ins": {"a.conf": {"content": content, "mode": 420}}}}]}
    path = host.places.state / "qwen" / "snapshot.json"
    path.write_text(json.dumps(snapshot))
    assert host.judge(1).kept == {old: f"named in {path}"}


@pytest.mark.parametrize("folder", ["answered", "rejected"])
def test_what_once_answered_or_was_rejected_keeps_no_release(host: Host, folder: str) -> None:
    old, newer = host.release(1), host.release(2)
    path = host.places.state / "qwen" / folder / f"{old}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"release": old}))
    verdict = host.judge(1)
    assert (gone(verdict), list(verdict.kept)) == ([old], [newer])


def test_a_prepared_unit_keeps_its_release(host: Host) -> None:
    old, _newer = host.release(1), host.release(2)
    (host.places.state / "qwen" / "next" / "sglang-qwen.service").write_text(f"ExecStart=/x/{old}/venv/bin/python")
    assert old in host.judge(1).kept


@pytest.mark.parametrize("how", ["cmdline", "environ", "maps", "exe", "cwd"])
def test_a_release_that_a_process_uses_stays(host: Host, how: str) -> None:
    """A worker renames itself, so its command line tells nothing; what it has mapped does."""
    old, newer = host.release(1), host.release(2)
    process = host.proc / "4711"
    process.mkdir()
    for name in ("cmdline", "environ", "maps"):
        (process / name).write_bytes(b"sglang::scheduler\0")
    used = f"/opt/sglang/releases/{old}/venv/lib/x.so"
    if how in ("exe", "cwd"):
        (process / how).symlink_to(used)
    else:
        (process / how).write_bytes(b"7f00-7f01 r-xp 00000000 fe:00 1 " + used.encode() + b"\n")
    verdict = host.judge(1)
    assert verdict.kept == {old: "in use by process 4711"}
    assert gone(verdict) == [newer]


def test_a_real_process_is_seen(host: Host) -> None:
    old, _newer = host.release(1), host.release(2)
    places = keep.Places(host.places.root, host.places.state, (host.units,))
    wait = [sys.executable, "-c", "input()", str(host.places.releases / old)]
    with subprocess.Popen(wait, stdin=subprocess.PIPE) as process:
        verdict = keep.judge(places, 1, 0)
        process.communicate(b"\n", timeout=30)
    assert verdict.kept[old] == f"in use by process {process.pid}"


def test_the_release_that_is_deployed_stays_and_counts(host: Host) -> None:
    names = [host.release(number) for number in (1, 2, 3)]
    assert gone(host.judge(1, deployed=names[0])) == names[1:]
    # A check run has not built it: what the real run would remove is foreseen.
    assert gone(host.judge(3, deployed="0.5.24-new")) == names[:1]
    (host.units / "sglang-qwen.service").write_text(f"ExecStart={host.places.releases}/{names[0]}/venv/bin/python")
    assert gone(host.judge(3, deployed="0.5.24-new")) == [names[1]]


def test_where_something_cannot_be_read_nothing_is_decided(host: Host) -> None:
    host.release(1)
    host.release(2)
    path = host.places.state / "qwen" / "snapshot.json"
    path.write_text("{ cut in the mid")
    with pytest.raises(keep.CannotTell, match=r"snapshot\.json is no JSON"):
        host.judge()


def test_a_dangling_link_and_a_masked_unit_are_no_trouble(host: Host) -> None:
    host.release(1)
    (host.units / "masked.service").symlink_to(os.devnull)
    (host.units / "gone.service").symlink_to(host.units / "nowhere")
    assert host.judge().all == []


def test_debris_goes_once_nobody_has_touched_it(host: Host) -> None:
    finished, dead = host.release(1), host.release(2, finished=False)
    path = host.places.releases / dead
    touched = path.stat().st_mtime
    assert host.judge(age=100, now=touched + 50).debris == []
    verdict = host.judge(age=100, now=touched + 200)
    assert verdict.debris == [path]
    assert list(verdict.kept) == [finished]
    inner = path / "venv" / "bin"
    os.utime(inner, (touched + 150, touched + 150))
    assert host.judge(age=100, now=touched + 200).debris == []


def test_debris_that_is_named_or_deployed_stays(host: Host) -> None:
    """A unit may name a release whose record was lost; where nothing else goes, too."""
    host.release(1)
    dead = host.release(2, finished=False)
    path = host.places.releases / dead
    later = path.stat().st_mtime + 200
    assert host.judge(9, age=100, now=later).debris == [path]
    assert host.judge(9, age=100, now=later, deployed=dead).debris == []
    (host.units / "mine.service").write_text(f"ExecStart={path}/venv/bin/python")
    assert host.judge(9, age=100, now=later).debris == []


def test_a_cache_that_is_a_link_is_left_and_no_obstacle(host: Host) -> None:
    name = host.release(1)
    elsewhere, link = host.places.root / "elsewhere", host.places.caches / "sglang-qwen" / name
    (elsewhere / "triton").mkdir(parents=True)
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    keep.remove(host.places.releases / name, host.places.caches)
    assert not (host.places.releases / name).exists()
    assert link.is_symlink() and (elsewhere / "triton").is_dir()


def test_what_goes_is_gone_whole(host: Host) -> None:
    name = host.release(1)
    cache = host.places.caches / "sglang-qwen"
    (cache / name / "triton").mkdir(parents=True)
    (cache / "another").mkdir()
    keep.remove(host.places.releases / name, host.places.caches)
    assert not (host.places.releases / name).exists()
    assert [path.name for path in cache.iterdir()] == ["another"]


def test_killed_in_the_middle_it_is_no_release_any_more(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    name = host.release(1)
    path = host.places.releases / name

    def die(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", die)
    with pytest.raises(KeyboardInterrupt):
        keep.remove(path, host.places.caches)
    assert identity.debris(host.places.releases) == [path]


def test_a_removed_worktree_is_forgotten(tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    commit = upstream.commit("[project]\n")
    mirror, tree = tmp_path / "mirror.git", tmp_path / "tree"
    source.update(mirror, upstream.url)
    source.add_worktree(mirror, commit, tree)
    assert str(tree) in source.run_git(["--git-dir", str(mirror), "worktree", "list"])
    shutil.rmtree(tree)
    source.prune_worktrees(mirror)
    assert str(tree) not in source.run_git(["--git-dir", str(mirror), "worktree", "list"])
    source.prune_worktrees(tmp_path / "no-mirror")


@pytest.mark.parametrize("again", [True, False])
def test_a_worktree_that_was_killed_while_it_was_laid_out_is_no_obstacle(tmp_path: Path, again: bool) -> None:
    """Git locks a worktree while it lays it out, and that lock stays behind."""
    upstream = Repository(tmp_path / "upstream")
    commit = upstream.commit("[project]\n")
    mirror, tree = tmp_path / "mirror.git", tmp_path / "tree"
    source.update(mirror, upstream.url)
    source.add_worktree(mirror, commit, tree)
    source.run_git(["--git-dir", str(mirror), "worktree", "lock", "--reason", "initializing", str(tree)])
    shutil.rmtree(tree)
    if again:
        source.add_worktree(mirror, commit, tree)
        assert (tree / "python" / "pyproject.toml").exists()
    else:
        source.prune_worktrees(mirror)
        assert str(tree) not in source.run_git(["--git-dir", str(mirror), "worktree", "list"])
