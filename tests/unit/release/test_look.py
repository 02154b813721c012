# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a host tells what is there: with a real repository, a real worktree and a real environment."""

from __future__ import annotations

import dataclasses
import getpass
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import (
    drift,
    flags,
    identity,
    interpreter,
    lock,
    look,
    record,
    source,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs

from tests.unit.release.repository import Repository

LOCK = "click==8.1.7 --hash=sha256:ae74\n"
TABLES = "python/sglang/tables.py"


class Host:
    """A host that has nothing but an upstream to look at."""

    def __init__(self, folder: Path) -> None:
        self.upstream = Repository(folder / "upstream")
        self.upstream.commit("TABLE = {}\n", path=TABLES)
        commit = self.upstream.commit("[project]\n")
        self.upstream.git("tag", "v0.5.23")
        root = folder / "opt"
        self.wanted = look.Wanted(
            root=root,
            commit=commit,
            version="0.5.23",
            patch_sets=[],
            rules=[],
            python=sys.executable,
            overrides="",
            uv_version="0.13.9",
            flags={"A": "1"},
            device="cpu",
            compute_capability="12.0",
            tool=root / "tools" / "uv",
            users=[getpass.getuser()],
            folders=[root / "releases"],
            owner=getpass.getuser(),
        )

    def prepare(self) -> None:
        """Make what a release is made from."""
        source.update(self.wanted.mirror, self.upstream.url)
        for path in (self.wanted.tool / "bin" / "uv", self.wanted.tool / ".complete"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.wanted.folders[0].mkdir(parents=True)
        request = lock.LockRequest("[project]\n", "", sys.executable, str(self.wanted.tool / "bin/uv"), "0.13.9")
        path = self.wanted.root / "locks" / f"{request.key(interpreter.describe(sys.executable))}.txt"
        path.parent.mkdir()
        path.write_text(LOCK)

    def build(self) -> Path:
        """Make the release that is wanted."""
        found = look.look(self.wanted)
        folder = Path(found.path)
        source.add_worktree(self.wanted.mirror, self.wanted.commit, folder / "src")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=120)
        record.write_record(
            folder, {"id": found.id, "inputs": found.inputs, "digests": {}, **drift.ask_interpreter(folder)}
        )
        return folder


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_fresh_host_lacks_everything(host: Host) -> None:
    wanted = dataclasses.replace(host.wanted, users=["no-such-user"])
    found = look.look(wanted)
    assert [one.split(" in ")[0].split(" of ")[0] for one in found.missing] == [
        "the user no-such-user",
        f"the folder {wanted.root}/releases",
        "uv 0.13.9",
        f"the commit {wanted.commit}",
    ]
    assert (found.built, found.lock, found.id) == (False, "", "")
    assert not wanted.root.exists()


def test_a_host_with_all_but_the_release_has_its_identifier(host: Host) -> None:
    host.prepare()
    found = look.look(host.wanted)
    assert (found.missing, found.built, found.lock, found.describe) == ([], False, LOCK, "v0.5.23")
    assert found.inputs == identity.inputs(
        commit=host.wanted.commit,
        version="0.5.23",
        patch_sets=[],
        lock=LOCK,
        interpreter=interpreter.describe(sys.executable),
        environment={"A": "1"},
    )
    assert found.id == identity.release_id("0.5.23", found.inputs)
    assert int(found.compilers["MAX_JOBS"]) >= 1


def test_without_a_lock_there_is_no_identifier(host: Host) -> None:
    host.prepare()
    other = dataclasses.replace(host.wanted, overrides="torch; python_version < '3'")
    found = look.look(other)
    assert found.missing == [f"a lock of its packages in {host.wanted.root}/locks"]
    assert (found.id, found.describe) == ("", "v0.5.23")


def test_a_finished_release_is_found_and_compared(host: Host) -> None:
    host.prepare()
    folder = host.build()
    found = look.look(host.wanted)
    assert (found.missing, found.built, found.drift) == ([], True, [])
    (folder / "src" / TABLES).write_text("by hand\n")
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    (site / "torch-9.dist-info").mkdir()
    (site / "torch-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9\n")
    assert [(one["kind"], one["name"]) for one in look.look(host.wanted).drift] == [
        ("tree", f"src/{TABLES}"),
        ("package", "torch"),
    ]


def test_a_release_that_lost_its_environment_is_told_with_the_way_out(host: Host) -> None:
    host.prepare()
    folder = host.build()
    (folder / "venv" / "pyvenv.cfg").unlink()
    with pytest.raises(ValueError, match=rf"{folder} cannot be compared .* no environment in ") as told:
        look.look(host.wanted)
    assert "It may serve" in str(told.value)
    assert "remove" not in str(told.value)


def test_a_mirror_that_was_lost_and_made_anew_breaks_no_finished_release(host: Host) -> None:
    host.prepare()
    folder = host.build()
    shutil.rmtree(host.wanted.mirror)
    assert "the commit" in look.look(host.wanted).missing[0]
    source.update(host.wanted.mirror, host.upstream.url)
    found = look.look(host.wanted)
    assert (found.missing, found.built, found.drift) == ([], True, [])
    # A worktree made since has the name that this one had.
    source.add_worktree(host.wanted.mirror, host.wanted.commit, host.wanted.root / "releases" / "other" / "src")
    (folder / "src" / TABLES).write_text("by hand\n")
    (folder / "src" / "new").write_text("by hand\n")
    assert [(one["name"], one["found"]) for one in look.look(host.wanted).drift] == [
        (f"src/{TABLES}", "edited"),
        ("src/new", "not of the commit"),
    ]


def test_files_say_of_an_environment_what_its_interpreter_says(host: Host) -> None:
    host.prepare()
    folder = host.build()
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    for name, version in (("flashinfer-python", "0.7.2"), ("sglang", "0.5.23")):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    assert drift.installed(folder) == drift.ask_interpreter(folder)


@pytest.mark.parametrize(
    ("given", "capabilities", "says"),
    [
        ({}, ["12.0"], ({"TORCH_CUDA_ARCH_LIST": "12.0a", "FLASHINFER_CUDA_ARCH_LIST": "12.0a"}, "4")),
        ({"MAX_JOBS": 2}, [], ({}, "2")),
    ],
)
def test_flags_and_compilers(given: dict[str, Any], capabilities: list[str], says: tuple[dict[str, str], str]) -> None:
    made, compilers = flags.build_flags(
        Needs(), given, version="0.5.23", commit="a" * 40, describe="v0.5.23", capabilities=capabilities, jobs=4
    )
    assert made == says[0]
    assert compilers == {**says[0], "MAX_JOBS": says[1]}


def test_a_record_that_is_no_record_is_no_release(host: Host) -> None:
    host.prepare()
    folder = Path(look.look(host.wanted).path)
    folder.mkdir(parents=True)
    (folder / "release.json").write_text(json.dumps({"id": "another"}))
    assert not look.look(host.wanted).built
