# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The depot's wheels: pins, batches, pages and the stand-in for the kernel package."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from fleet import depot
from fleet.wheels import (
    Pin,
    batches,
    metadata_of,
    normalised,
    project_of,
    read_pins,
    sha256_of,
    write_kernel_stand_in,
)

DIGEST = "a" * 64


def test_pins_are_read_with_comments_and_normalised_names() -> None:
    text = f"# a comment\n\nHugging_Face.hub==2.4.0 --hash=sha256:{DIGEST}  # why\n"
    assert read_pins(text, "f") == [Pin("hugging-face-hub", "2.4.0", DIGEST)]


@pytest.mark.parametrize(
    "line",
    [
        "torch",
        "torch>=2 --hash=sha256:" + DIGEST,
        "torch==2",
        "torch==2 --hash=sha256:abc",
        f"torch==2 --hash=md5:{DIGEST}",
    ],
)
def test_a_line_that_is_no_pin_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"req\.txt:2: "):
        read_pins(f"# first\n{line}\n", "req.txt")


def test_no_batch_names_a_project_twice() -> None:
    pins = [Pin("a", "1", DIGEST), Pin("b", "1", DIGEST), Pin("a", "2", DIGEST), Pin("a", "3", DIGEST)]
    result = batches(pins)
    assert sorted(map(str, (pin for batch in result for pin in batch))) == sorted(map(str, pins))
    assert all(len({pin.name for pin in batch}) == len(batch) for batch in result)
    assert len(result) == 3


def test_the_project_s_own_pins_are_in_order() -> None:
    pins = depot.pins()
    assert {"torch", "transformers", "uv", "setuptools"} <= {pin.name for pin in pins}
    assert len(set(pins)) == len(pins)
    assert "sglang" not in {pin.name for pin in pins}, "the engine is built from source, never from the depot"


@pytest.mark.parametrize(("name", "wanted"), [("A_b.C", "a-b-c"), ("x--y", "x-y"), ("uv", "uv")])
def test_names_are_normalised(name: str, wanted: str) -> None:
    assert normalised(name) == wanted


def test_the_stand_in_is_the_same_every_time_and_a_whole_wheel(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = write_kernel_stand_in(tmp_path / "a"), write_kernel_stand_in(tmp_path / "b")
    assert sha256_of(one) == sha256_of(other)
    assert project_of(one.name) == "sglang-kernel"
    assert b"Stand-in" in metadata_of(one)
    with zipfile.ZipFile(one) as archive:
        record = archive.read("sglang_kernel-0.4.10.dist-info/RECORD").decode()
        assert {line.split(",")[0] for line in record.splitlines()} == set(archive.namelist())


def test_the_stand_in_imports_and_its_functions_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write_kernel_stand_in(tmp_path)))
    monkeypatch.delitem(sys.modules, "sgl_kernel", raising=False)
    module = importlib.import_module("sgl_kernel")
    with pytest.raises(RuntimeError, match="rmsnorm needs a GPU"):
        module.rmsnorm(1, 2)
    with pytest.raises(AttributeError):
        _wrapped = module.__wrapped__
    monkeypatch.delitem(sys.modules, "sgl_kernel")


def test_pages_link_every_wheel_with_its_digest_and_metadata(tmp_path: Path) -> None:
    (tmp_path / "depot").mkdir()
    wheel = write_kernel_stand_in(tmp_path / "depot")
    depot.write_pages(tmp_path, {wheel.name: sha256_of(wheel)})
    metadata = tmp_path / "depot" / f"{wheel.name}.metadata"
    assert metadata.read_bytes() == metadata_of(wheel)
    page = (tmp_path / "simple/sglang-kernel/index.html").read_text()
    assert f'href="../../depot/{wheel.name}#sha256={sha256_of(wheel)}"' in page
    assert f'data-core-metadata="sha256={sha256_of(metadata)}"' in page
    assert f'href="{wheel.name}#sha256=' in (tmp_path / "depot/index.html").read_text()
    assert 'href="sglang-kernel/"' in (tmp_path / "simple/index.html").read_text()


def test_a_damaged_wheel_of_the_store_is_removed_and_not_taken(tmp_path: Path) -> None:
    wheel = write_kernel_stand_in(tmp_path)
    good = Pin("sglang-kernel", "0.4.10", sha256_of(wheel))
    assert depot._present(tmp_path, [good]) == {good: wheel}
    wheel.write_bytes(wheel.read_bytes()[:-1])
    assert depot._present(tmp_path, [good]) == {}
    assert not wheel.exists()
