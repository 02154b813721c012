# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room on the disk before a build, with figures; and building that gives way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import room

INPUTS = {"lock": ["torch==2.14.1 sha256:aa"]}


def release(releases: Path, name: str, size: int, lock: list[str], mode: str = "hardlink") -> None:
    """Make a finished release that took `size` bytes."""
    (releases / name).mkdir(parents=True)
    record = {"id": name, "bytes": size, "inputs": {"lock": lock}, "link_mode": mode}
    (releases / name / "release.json").write_text(json.dumps(record))


def test_the_first_release_needs_what_was_said(tmp_path: Path) -> None:
    assert room.needed(tmp_path / "none", INPUTS, 30_000_000_000, "hardlink").size == 30_000_000_000
    release(tmp_path, "other", 10**9, ["torch==2.13.0 sha256:bb"])
    (tmp_path / "durations.json").write_text("{}")
    assert room.needed(tmp_path, INPUTS, 30_000_000_000, "hardlink").size == 30_000_000_000


def test_one_with_the_same_packages_needs_what_that_took(tmp_path: Path) -> None:
    release(tmp_path, "a", 2_000_000_000, INPUTS["lock"])
    release(tmp_path, "b", 3_000_000_000, INPUTS["lock"])
    need = room.needed(tmp_path, INPUTS, 30_000_000_000, "hardlink")
    assert need == room.Need(3_600_000_000, "b, with the same packages, took 3.0 GB")
    release(tmp_path, "c", 0, INPUTS["lock"])  # of a time when that was not measured
    assert room.needed(tmp_path, INPUTS, 30_000_000_000, "hardlink") == need


def test_links_say_nothing_of_the_room_that_copies_take(tmp_path: Path) -> None:
    release(tmp_path, "a", 559_000_000, INPUTS["lock"], "symlink")
    assert room.needed(tmp_path, INPUTS, 30_000_000_000, "symlink").size == int(559_000_000 * 1.2)
    assert room.needed(tmp_path, INPUTS, 30_000_000_000, "copy").size == 30_000_000_000
    record = tmp_path / "a" / "release.json"  # of a time when the mode was not kept
    record.write_text(json.dumps({"id": "a", "bytes": 559_000_000, "inputs": INPUTS}))
    assert room.needed(tmp_path, INPUTS, 30_000_000_000, "symlink").size == 30_000_000_000


def test_an_error_of_a_full_disk_names_the_file_system_and_the_next_step(tmp_path: Path) -> None:
    assert room.full("[Errno 13] Permission denied", tmp_path) == ""
    said = room.full(f"[Errno 28] {os.strerror(28)}: 'x'", tmp_path / "not" / "there", tmp_path)
    mount = next(str(place) for place in (tmp_path, *tmp_path.parents) if place.is_mount())
    assert said.startswith(f". It is about the file system {mount} with ")
    assert said.count(" free") == 1
    assert "sglang_keep_releases" in said and "run again" in said


def test_a_disk_that_is_too_small_is_told_with_figures(tmp_path: Path) -> None:
    need = room.Need(11_000_000_000, "why")
    assert room.problem(tmp_path / "not" / "there", need, free=11_000_000_000) == ""
    assert room.problem(tmp_path / "not" / "there", need, free=1_200_000_000) == (
        f"{tmp_path} has 1.2 GB free, and the release needs 11.0 GB (why): 9.8 GB are missing"
    )
    assert room.problem(tmp_path, room.Need(1 << 60, "why"))


def test_what_has_a_link_elsewhere_takes_no_room(tmp_path: Path) -> None:
    cache, release_folder = tmp_path / "cache", tmp_path / "release"
    cache.mkdir()
    (release_folder / "deep").mkdir(parents=True)
    (cache / "large").write_bytes(b"x" * 1_000_000)
    os.link(cache / "large", release_folder / "large")
    (release_folder / "link").symlink_to(cache / "large")
    (release_folder / "deep" / "own").write_bytes(b"x" * 200_000)
    assert 200_000 <= room.own_bytes(release_folder) < 300_000


@pytest.mark.skipif(not shutil.which("ionice"), reason="there is no ionice here")
def test_a_build_and_all_that_it_starts_give_way() -> None:
    code = (
        "import subprocess\n"
        "from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import build_gives_way\n"
        "build_gives_way(); build_gives_way()\n"
        "print(subprocess.run(['sh', '-c', 'nice; ionice'], capture_output=True, text=True).stdout)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / ".collections")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["19", "idle"]
