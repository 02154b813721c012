# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a release since it was built."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import drift, listing, record, source

from tests.unit.release.repository import Repository

PATCHED = "src/python/sglang/tables.py"


class Release:
    """A release with a real worktree and a real environment, patched as a build patches it."""

    def __init__(self, folder: Path) -> None:
        upstream = Repository(folder / "upstream")
        upstream.commit("TABLE = {}\n", path="python/sglang/tables.py")
        upstream.commit("__pycache__/\n*.egg-info/\n", path=".gitignore")
        commit = upstream.commit("plain\n", path="python/sglang/plain.py")
        source.update(folder / "mirror.git", upstream.url)
        self.folder = folder / "release"
        source.add_worktree(folder / "mirror.git", commit, self.folder / "src")
        (self.folder / PATCHED).write_text("TABLE = {12: 1}\n")
        (self.folder / "src/python/.python_source.json").write_text("{}")
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(self.folder / "venv")], check=True, timeout=120
        )
        self.package("torch", "2.14.1")
        self.record: dict[str, Any] = {
            "digests": {PATCHED: record.file_digest(self.folder / PATCHED)},
            **drift.ask_interpreter(self.folder),
        }

    def package(self, name: str, version: str) -> Path:
        """Install a package that is nothing but its metadata."""
        site = next((self.folder / "venv" / "lib").glob("python*/site-packages"))
        folder = site / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return folder

    def drift(self) -> list[tuple[str, str, str]]:
        """What is found: kind, name, what became of it."""
        return [(one.kind, one.name, one.found) for one in drift.compare(self.folder, self.record)]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def test_a_release_as_it_was_built_has_not_drifted(release: Release) -> None:
    assert json.loads(json.dumps(release.record))["packages"] == ["torch==2.14.1"]
    caches = release.folder / "src/python/sglang/__pycache__"
    caches.mkdir()
    (caches / "x.pyc").write_bytes(b"")
    assert release.drift() == []


def test_a_patched_file_that_was_edited_is_told_once(release: Release) -> None:
    (release.folder / PATCHED).write_text("TABLE = {12: 2}\n")
    [(kind, name, found)] = release.drift()
    assert (kind, name) == ("patched_file", PATCHED)
    assert found == record.file_digest(release.folder / PATCHED)
    (release.folder / PATCHED).unlink()
    assert release.drift() == [("patched_file", PATCHED, "missing")]


def test_other_files_of_the_tree_are_looked_at_too(release: Release) -> None:
    sglang = release.folder / "src/python/sglang"
    (sglang / "plain.py").write_text("edited\n")
    (sglang / "new file.py").write_text("new\n")
    assert sorted(release.drift()) == [
        ("tree", "src/python/sglang/new file.py", "not of the commit"),
        ("tree", "src/python/sglang/plain.py", "edited"),
    ]
    (sglang / "plain.py").unlink()
    assert ("tree", "src/python/sglang/plain.py", "removed") in release.drift()


def test_packages_that_changed_are_told(release: Release) -> None:
    site = release.package("flashinfer-python", "0.7.2").parent
    shutil.rmtree(site / "torch-2.14.1.dist-info")
    release.package("torch", "2.13.0")
    assert release.drift() == [
        ("package", "flashinfer-python", "0.7.2"),
        ("package", "torch", "2.13.0"),
    ]
    shutil.rmtree(site / "torch-2.13.0.dist-info")
    assert ("package", "torch", "not there") in release.drift()


def test_a_packages_file_that_was_replaced_and_one_that_was_added_are_told(release: Release) -> None:
    site = release.package("einops", "0.8.0").parent
    release.record.update(drift.ask_interpreter(release.folder))
    for name, text in (("__init__.py", "a = 1\n"), ("layers/torch.py", "b = 1\n"), ("gone.py", "")):
        (site / "einops" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "einops" / name).write_text(text)
    listing.write(release.folder)
    (site / "einops" / "__pycache__").mkdir()
    (site / "einops" / "__pycache__" / "x.pyc").write_bytes(b"")
    assert release.drift() == []
    (site / "einops" / "__init__.py").write_text("a = 2\n")  # as long as before
    (site / "einops" / "gone.py").unlink()
    (site / "zz.pth").write_text("import os\n")
    place = site.relative_to(release.folder)
    assert release.drift() == [
        ("file", f"{place}/einops/__init__.py", "edited, and 1 more files of it differ"),
        ("file", f"{place}/zz.pth", "not of the build"),
    ]


def test_packages_of_links_are_looked_at_where_the_links_lead(release: Release, tmp_path: Path) -> None:
    site = next((release.folder / "venv" / "lib").glob("python*/site-packages"))
    cached = tmp_path / "cached.py"
    cached.write_text("a = 1\n")
    (site / "linked.py").symlink_to(cached)
    listing.write(release.folder)
    cached.write_text("a = 22\n")
    assert [found for _kind, _name, found in release.drift()] == ["edited"]
    cached.unlink()
    assert [found for _kind, _name, found in release.drift()] == ["removed"]


def test_a_list_of_files_that_cannot_be_read_is_no_list(release: Release) -> None:
    (release.folder / listing.FILE).write_bytes(b"no gzip")
    with pytest.raises(drift.CannotCompare, match="list of its packages' files cannot be read"):
        release.drift()


def test_another_interpreter_is_told(release: Release) -> None:
    release.record["python"] = "3.11.0"
    [(kind, _name, found)] = release.drift()
    assert (kind, found) == ("interpreter", sys.version.split()[0])


def test_a_release_without_its_interpreter_cannot_be_compared(release: Release) -> None:
    shutil.rmtree(release.folder / "venv")
    with pytest.raises(drift.CannotCompare, match="does not answer"):
        release.drift()


@pytest.mark.parametrize(
    ("packages", "cuda", "said"),
    [
        (["torch==2.14.1", "flashinfer-python==0.7.2", "flashinfer-cubin==0.7.2+cu130"], "13.0", ""),
        (["nvidia-cudnn-cu13==9.24"], "13.0", ""),
        (["nvidia-cudnn-cu13==9.24"], None, ""),
        (["flashinfer_python==0.7.2", "flashinfer_cubin==0.7.1"], "13.0", "different versions"),
        (["nvidia-cudnn-cu12==9.1"], "13.0", "torch was built for CUDA 13.0, and its libraries are for CUDA 12"),
    ],
)
def test_installed_packages_have_to_fit_each_other(packages: list[str], cuda: str | None, said: str) -> None:
    problem = record.disagreement(packages, cuda)
    assert said in problem if said else problem == ""
