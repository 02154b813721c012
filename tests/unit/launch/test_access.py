# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service user may read, run and write: tried as another user, on real files."""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch.access import Denied, Wanted, problems, words
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch.probe import ProbeFailed

USER = "nobody"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another user")


@pytest.fixture
def checkpoint() -> Iterator[Path]:
    """A checkpoint that everybody may read, served through a link, in a folder that everybody may pass."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        files = Path(top, "store", "abc")
        files.mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (files / name).write_text("x")
            (files / name).chmod(0o644)
        Path(top, "served").symlink_to(files)
        yield Path(top, "served")


def asked(
    checkpoint: Path | str = "", user: str = USER, python: str = "", writable: tuple[Path, ...] = ()
) -> list[str]:
    return problems(Wanted(python, str(checkpoint), tuple(map(str, writable))), user)


@as_root
def test_what_everybody_may_read_is_no_problem(checkpoint: Path) -> None:
    assert asked(checkpoint, python="/usr/bin/python3") == []


@as_root
@pytest.mark.parametrize("closed", ["store/abc", "store"])
def test_a_folder_on_the_way_that_may_not_be_passed(checkpoint: Path, closed: str) -> None:
    folder = checkpoint.parent / closed
    folder.chmod(0o700)
    assert asked(checkpoint) == [f"{USER} cannot read what lies in {folder}: chmod o+rx {folder}"]
    assert asked(checkpoint, user="root") == []


@as_root
def test_files_that_may_not_be_read(checkpoint: Path) -> None:
    files = checkpoint.resolve()
    (files / "config.json").chmod(0o600)
    assert asked(checkpoint) == [f"{USER} cannot read {files}/config.json: chmod o+r {files}/config.json"]
    for number in range(9):
        (files / f"{number}.safetensors").touch(0o600)
    assert asked(checkpoint)[3] == f"… and 7 more: chmod -R o+rX {checkpoint}/"


@as_root
def test_a_link_to_nowhere_is_no_matter_of_rights(checkpoint: Path) -> None:
    (checkpoint / "config.json").unlink()
    (checkpoint / "config.json").symlink_to("nowhere")
    assert asked(checkpoint) == [f"{USER} cannot read {checkpoint}/config.json: No such file or directory"]


@as_root
def test_an_interpreter_that_may_not_be_run(checkpoint: Path) -> None:
    python = checkpoint.resolve() / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert asked(python=str(python)) == []
    python.chmod(0o700)
    assert asked(python=str(python)) == [f"{USER} cannot run {python}: chmod o+rx {python}"]
    python.chmod(0o755)
    checkpoint.resolve().chmod(0o700)
    folder = python.parent
    assert asked(python=str(python)) == [f"{USER} cannot run what lies in {folder}: chmod o+rx {folder}"]


@as_root
def test_an_interpreter_that_fails_says_why(checkpoint: Path) -> None:
    python = checkpoint.resolve() / "python"
    python.write_text("#!/bin/sh\necho libpython is not there >&2\nexit 127\n")
    python.chmod(0o755)
    assert asked(python=str(python)) == [f"{USER} cannot run {python}: libpython is not there"]


@as_root
def test_a_cache_of_its_own_with_somebody_elses_folder_in_it(checkpoint: Path) -> None:
    cache = checkpoint.resolve() / "cache"
    (cache / "release" / "triton").mkdir(parents=True)
    assert asked(writable=(cache, cache / "missing")) == []  # root's as a whole: systemd gives it to the user
    owner = pwd.getpwnam(USER)
    for folder in (cache, cache / "release"):
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    stuck = f"{cache}/release/triton"
    assert asked(writable=(cache,)) == [
        f"{USER} cannot write to {stuck}, though the folder above is its own: chown -R {USER}: {stuck}"
    ]
    assert sorted(one.name for one in cache.rglob("*")) == ["release", "triton"]


def test_whoever_runs_it_is_asked_without_a_name(tmp_path: Path) -> None:
    assert asked(tmp_path, user="", python=sys.executable) == []


def test_a_user_that_there_is_not() -> None:
    with pytest.raises(ProbeFailed, match="there is no user nobody-of-that-name"):
        asked(user="nobody-of-that-name")


def test_one_culprit_is_named_once() -> None:
    one, other = (Denied("read", f"/m/x y/{name}", "/m/x y", folder=True, denied=True) for name in "ab")
    assert words([one, other], "u") == ["u cannot read what lies in /m/x y: chmod o+rx '/m/x y'"]
