# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which revisions go, and which are in use."""

from __future__ import annotations

import base64
import json
import mmap
import os
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import prune
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import STAMP, Stamp
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.keep import CannotTell, Places

OLD, MIDDLE, NEW, HALF = ("1" * 40, "2" * 40, "3" * 40, "4" * 40)


class Host:
    """A store with three verified revisions and one that never was."""

    def __init__(self, root: Path) -> None:
        self.models = root / "models"
        self.store = self.models / ".checkpoints"
        self.state, self.units, self.proc = root / "state", root / "units", root / "proc"
        for folder in (self.state, self.units, self.proc, self.store / ".staging" / "x"):
            folder.mkdir(parents=True)
        for day, revision in enumerate((OLD, MIDDLE, NEW), 1):
            folder = self.folder(revision)
            folder.mkdir(parents=True)
            (folder / "weights").write_bytes(b"x" * 1000)
            (folder / STAMP).write_bytes(Stamp("d", f"2026-11-0{day}T00:00:00Z", {}).encoded())
        self.folder(HALF).mkdir()

    def folder(self, revision: str) -> Path:
        """A revision's folder."""
        return self.store / "org--model" / revision

    def look(self, keep: int) -> list[prune.Revision]:
        """What is said of each revision."""
        places = Places(root=self.store, state=self.state, units=(self.units,), proc=self.proc)
        return prune.judge(str(self.store), str(self.models), str(self.state), "org/model", keep, places)

    def judge(self, keep: int) -> dict[str, str]:
        """Why each revision stays, by its name; empty for one that goes."""
        return {os.path.basename(one.path): one.kept for one in self.look(keep)}

    def going(self, keep: int) -> set[str]:
        """The revisions that go."""
        return {name for name, kept in self.judge(keep).items() if not kept}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_ones_that_were_verified_last_stay(host: Host) -> None:
    assert host.going(1) == {OLD, MIDDLE}
    assert host.going(2) == {OLD}
    assert host.going(9) == set()


def test_a_copy_that_was_never_verified_stays(host: Host) -> None:
    """It may have been put there by hand, to be verified by the next run."""
    assert host.judge(0)[HALF].startswith("never verified here")


def test_revisions_of_another_repository_stay_verified_or_not(host: Host) -> None:
    for number in ("5", "6"):
        (host.store / "other--model" / (number * 40)).mkdir(parents=True)
    (host.store / "other--model" / ("6" * 40) / STAMP).write_bytes(Stamp("d", "2026-11-09T00:00:00Z", {}).encoded())
    said = host.judge(1)
    assert said["5" * 40] == said["6" * 40] == "not of org/model"
    assert host.going(1) == {OLD, MIDDLE}


def test_one_that_a_link_points_to_stays_besides(host: Host) -> None:
    (host.models / "qwen").symlink_to(host.folder(OLD))
    assert host.going(0) == {MIDDLE, NEW}
    assert host.going(1) == {MIDDLE}
    assert host.judge(0)[OLD] == f"{host.models}/qwen points to it"


def test_one_that_a_link_in_a_folder_of_the_models_leads_into_stays(host: Host) -> None:
    """A unit may name the link, which names no revision."""
    (host.models / "team" / "a").mkdir(parents=True)
    (host.models / "team" / "a" / "qwen").symlink_to(host.folder(OLD))
    (host.models / "team" / "weights").symlink_to(host.folder(MIDDLE) / "weights")
    assert host.going(0) == {NEW}
    assert host.judge(0)[OLD] == f"{host.models}/team/a/qwen points to it"


def test_one_that_a_unit_names_stays(host: Host) -> None:
    (host.units / "mine.service").write_text(f"ExecStart=/x --model-path {host.folder(OLD)}\n")
    assert OLD not in host.going(0)


def test_one_that_a_snapshot_names_stays(host: Host) -> None:
    unit = base64.b64encode(f"--model-path {host.folder(OLD)}".encode()).decode()
    (host.state / "snapshot.json").write_text(json.dumps({"unit": unit}))
    assert OLD not in host.going(0)


def test_one_whose_weights_a_process_has_mapped_stays(host: Host) -> None:
    """The link may have moved on; the engine still reads what it was started with."""
    own = f"/proc/{os.getpid()}"
    with open(host.folder(OLD) / "weights", "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ):
        (host.proc / "77").symlink_to(own)
        assert host.judge(0)[OLD] == "in use by process 77"


def test_what_cannot_be_read_ends_it(host: Host) -> None:
    (host.state / "odd.json").write_text("{")
    with pytest.raises(CannotTell):
        host.judge(0)


def test_nothing_but_revisions_is_looked_at(host: Host) -> None:
    (host.store / "org--model" / "notes").mkdir()
    (host.store / "org--model" / ("5" * 40)).write_text("a file")
    assert set(host.judge(0)) == {OLD, MIDDLE, NEW, HALF}


def test_a_link_in_the_store_is_no_revision_of_it(host: Host, tmp_path: Path) -> None:
    """What it leads to is somebody else's, verified or not."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / STAMP).write_bytes(Stamp("d", "2026-11-09T00:00:00Z", {}).encoded())
    (host.store / "org--model" / ("5" * 40)).symlink_to(elsewhere)
    (host.store / "org--model" / f".{'6' * 40}.going").symlink_to(elsewhere)
    (host.store / "other--model").symlink_to(host.store / "org--model")
    assert sorted(os.path.relpath(one.path, host.store) for one in host.look(1)) == [
        f"org--model/{name}" for name in (OLD, MIDDLE, NEW, HALF)
    ]


def test_removing_leaves_no_empty_folder_of_the_repository(host: Host) -> None:
    host.folder(HALF).rmdir()
    found = host.look(0)
    assert {one.bytes >= 1000 for one in found if one.verified_at} == {True}
    for one in found:
        prune.remove(one)
    assert not host.folder(OLD).parent.exists()
    assert (host.store / ".staging" / "x").exists()


def test_a_removal_that_was_killed_is_ended_the_next_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(path: str) -> None:
        raise KeyboardInterrupt

    [old] = [one for one in host.look(2) if not one.kept]
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr("shutil.rmtree", die)
        prune.remove(old)
    assert not host.folder(OLD).exists()
    [rest] = [one for one in host.look(2) if not one.kept]
    assert rest.bytes >= 1000
    prune.remove(rest)
    assert host.going(2) == set()
    assert sorted(path.name for path in host.folder(OLD).parent.iterdir()) == [MIDDLE, NEW, HALF]


def test_a_store_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    places = Places(root=tmp_path, state=tmp_path / "state", units=(), proc=tmp_path)
    assert prune.judge(str(tmp_path / "none"), str(tmp_path), str(tmp_path / "state"), "o/m", 1, places) == []
