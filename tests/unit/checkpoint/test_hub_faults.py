# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Hub in trouble, with the real `hf`: stalls, cuts, refusals, wrong answers, and a repository that goes."""

from __future__ import annotations

import dataclasses
import os
import shlex
import typing as t
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import ensure as logic
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.config import Wanted
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError, HubRefused
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import STAMP

from tests.unit.checkpoint.case import Case
from tests.unit.checkpoint.hub_server import REVISION, HubServer, small_model

SHARD = "model-00002-of-00002.safetensors"
WRONG_ETAG = '"' + "e" * 64 + '"'


def watched(case: Case, tmp_path: Path) -> tuple[t.Any, t.Callable[[], list[str]]]:
    """A request whose `hf` notes its environment, and the notes: whether Xet was off at each start."""
    log, wrapper = tmp_path / "starts", tmp_path / "hf"
    note = f'echo "${{HF_HUB_DISABLE_XET:-on}}" >> {shlex.quote(str(log))}'
    wrapper.write_text(f'#!/bin/sh\n{note}\nexec {shlex.quote(str(case.hf))} "$@"\n')
    wrapper.chmod(0o755)
    request = case.request(stall=8.0)
    return dataclasses.replace(request, hf=dataclasses.replace(request.hf, command=str(wrapper))), (
        lambda: log.read_text().split()
    )


def test_a_stall_at_99_percent_is_ended_and_tried_again_without_xet(case: Case, hub: HubServer, tmp_path: Path) -> None:
    hub.stalls.add(SHARD)
    hub.stall_at = 0.99
    request, starts = watched(case, tmp_path)
    wait = hub.release.wait

    def stall_once(timeout: float | None = None) -> bool:
        hub.stalls.clear()
        return wait(timeout)

    hub.release.wait = stall_once  # type: ignore[method-assign]
    assert logic.ensure(request).complete
    assert case.served() == hub.files
    first, *further = starts()
    assert first == "on"
    assert set(further) == {"1"}
    assert hub.asked(SHARD) > 2


def test_an_answer_that_is_cut_in_the_middle_is_asked_for_again(case: Case, hub: HubServer) -> None:
    hub.cuts[SHARD] = 1
    assert case.ensure().complete
    assert case.served() == hub.files
    assert hub.cuts[SHARD] == 0


def test_429_of_a_file_is_waited_out(case: Case, hub: HubServer) -> None:
    hub.statuses[f"get:{SHARD}"] = [(429, {"Retry-After": "1"})] * 2
    assert case.ensure().complete
    assert case.served() == hub.files
    assert hub.statuses[f"get:{SHARD}"] == []


@pytest.mark.parametrize("name", [SHARD, "config.json"])
def test_a_wrong_etag_changes_nothing_of_what_is_believed(case: Case, hub: HubServer, name: str) -> None:
    """The list of files says what is right, and every byte is compared with it."""
    hub.etags[name] = WRONG_ETAG
    assert case.ensure().complete
    assert case.served() == hub.files
    (case.target / name).write_bytes(b"")
    assert case.ensure().fetched_again[0]["file"] == name
    assert case.served() == hub.files


def test_a_repository_that_is_deleted_in_the_middle_is_said_and_nothing_is_linked(case: Case, hub: HubServer) -> None:
    hub.cuts[SHARD] = 99
    with pytest.raises(CheckpointError, match="failed 4 times in a row without a further file"):
        case.ensure()
    hub.deleted = True
    with pytest.raises(CheckpointError, match=r"failed 4 times in a row.*What is complete is kept"):
        case.ensure()
    assert not case.path.is_symlink()
    hub.deleted = False
    hub.cuts.clear()
    assert case.ensure().bytes_downloaded == len(hub.files[SHARD])


def test_a_repository_that_is_deleted_before_is_refused_and_a_complete_copy_serves(case: Case, hub: HubServer) -> None:
    hub.deleted = True
    with pytest.raises(HubRefused, match=r"HTTP 401.*gated, private or does not exist"):
        case.ensure()
    hub.deleted = False
    case.deploy()
    hub.deleted = True
    os.unlink(case.target / STAMP)
    assert case.ensure().complete
    assert case.served() == hub.files


def test_a_revision_that_moved_is_not_followed(case: Case, hub: HubServer) -> None:
    """What main is now is of no account: the pinned commit is asked for, and one that is gone is refused."""
    case.ensure()
    asked = [one for one in hub.requests if "/resolve/" in one or "/tree/" in one]
    assert asked and all(REVISION in one for one in asked)
    with pytest.raises(HubRefused, match=r"HTTP 404.*pinned revision"):
        case.ensure(revision="f" * 40)
    assert os.readlink(case.path) == str(case.target)


def test_a_disk_that_fills_ends_the_download_with_the_arithmetic(
    case: Case, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.stalls.add(SHARD)
    place = "ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint"
    monkeypatch.setattr(f"{place}.child.free_bytes", lambda path: (path, 100))
    with pytest.raises(CheckpointError, match=r"The disk fills: .* has 100 B free, 1\.00 kB shall stay free"):
        case.ensure(reserve=1000)
    assert not case.path.is_symlink()


# what the checkpoint says of itself


WRONG = Wanted({"architecture": "Qwen3_5MoeForConditionalGeneration", "quant_algo": "NVFP4"})


@pytest.mark.parametrize("check", [True, False])
def test_another_checkpoint_is_refused_before_anything_large_is_fetched(
    case: Case, hub: HubServer, check: bool
) -> None:
    with pytest.raises(CheckpointError, match=r"architecture is none in config\.json.*quant_algo is none"):
        case.ensure(wanted=WRONG, check=check)
    assert {one.rpartition("/")[2] for one in hub.requests if "/resolve/" in one} == {"config.json"}
    assert not case.path.is_symlink()
    assert not Path(case.place.staging).exists()


def test_another_checkpoint_is_refused_before_the_link_is_flipped(case: Case, hub: HubServer) -> None:
    case.deploy()
    old = case.root / "old"
    old.mkdir()
    os.unlink(case.path)
    case.path.symlink_to(old)
    with pytest.raises(CheckpointError, match=r"quant_algo is none in config\.json, wanted is NVFP4"):
        case.ensure(wanted=WRONG)
    os.unlink(case.target / STAMP)
    with pytest.raises(CheckpointError, match=r"quant_algo is none in config\.json, wanted is NVFP4"):
        case.ensure(wanted=WRONG)
    assert os.readlink(case.path) == str(old)


def test_a_configuration_of_other_bytes_than_listed_is_not_believed(case: Case, hub: HubServer) -> None:
    hub.served["config.json"] = [b'{"model_type": "other"}\n']
    with pytest.raises(CheckpointError, match=r"gives config\.json of org/model at .* with other bytes"):
        case.ensure(wanted=WRONG)


# what is here already


def look(case: Case, **changes: t.Any) -> t.Any:
    """What a run begins with: take what is here."""
    return case.ensure(here=True, optional=True, **changes)


def test_the_look_takes_what_the_stamp_vouches_for_and_reads_nothing(case: Case, hub: HubServer) -> None:
    assert not look(case).complete
    assert case.everything() == {}
    case.deploy()
    hub.requests.clear()
    outcome = look(case)
    assert (outcome.complete, outcome.bytes_hashed, outcome.changed) == (True, 0, False)
    assert hub.requests == []


def test_the_look_reads_what_changed_and_needs_neither_hub_nor_hf(case: Case, hub: HubServer) -> None:
    case.deploy()
    hub.close()
    case.hf = case.root / "none"
    os.utime(case.target / SHARD, (1, 1))
    foreseen = look(case, check=True)
    assert (foreseen.complete, foreseen.changed, foreseen.bytes_hashed) == (True, False, 0)
    outcome = look(case)
    assert (outcome.complete, outcome.changed, outcome.bytes_hashed) == (True, False, outcome.bytes)
    assert look(case).bytes_hashed == 0


@pytest.mark.parametrize("content", [b"?", b"\0" * len(small_model()[SHARD])], ids=["size", "bytes"])
def test_the_look_says_what_is_wrong_and_leaves_it(case: Case, hub: HubServer, content: bytes) -> None:
    case.deploy()
    (case.target / SHARD).write_bytes(content)
    hub.requests.clear()
    outcome = look(case)
    assert not outcome.complete and not outcome.changed
    assert f"{SHARD}: expected" in outcome.message
    assert hub.requests == []
    assert case.ensure().fetched_again[0]["file"] == SHARD


def test_the_look_takes_a_copy_that_was_moved_here_if_the_hub_lists_it_so(case: Case, hub: HubServer) -> None:
    case.hf = case.root / "none"
    for name, content in hub.files.items():
        (case.target / name).parent.mkdir(parents=True, exist_ok=True)
        (case.target / name).write_bytes(content)
    hub.statuses["tree"] = [(503, {})] * 3
    outcome = look(case)
    assert not outcome.complete and "in 3 tries" in outcome.message
    assert look(case).complete
    assert case.served() == hub.files


def test_a_look_while_another_run_is_at_work_leaves_it_to_that_one(
    case: Case, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.deploy()
    os.unlink(case.target / STAMP)
    locked = type(case.place).locked
    monkeypatch.setattr(type(case.place), "locked", lambda self: locked(self, 0.0))
    with locked(case.place):
        outcome = look(case)
    assert not outcome.complete
    assert "Another run" in outcome.message


def test_a_full_look_finds_what_the_stamp_still_vouches_for(case: Case, hub: HubServer) -> None:
    case.deploy()
    path = case.target / SHARD
    before = path.stat()
    path.write_bytes(b"\0" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert look(case).complete
    foreseen = look(case, full=True, check=True)
    assert foreseen.complete and "would be read again" in foreseen.message
    assert not look(case, full=True).complete
    assert not look(case).complete  # the stamp is gone
    assert case.ensure().complete
    assert look(case, full=True).complete
    assert case.served() == hub.files


# a list of files that is wrong


def test_a_wrong_digest_in_the_list_is_asked_for_anew(case: Case, hub: HubServer) -> None:
    row = hub.row
    asked: list[str] = []

    def wrong_once(path: str) -> dict[str, t.Any]:
        found = row(path)
        if path == SHARD and asked.count(SHARD) < 1:
            found["lfs"]["oid"] = "a" * 64
            asked.append(path)
        return found

    hub.row = wrong_once  # type: ignore[method-assign]
    outcome = case.ensure()
    assert outcome.complete and outcome.fetched_again == []
    assert case.served() == hub.files


def test_a_list_that_stays_wrong_is_forgotten_and_the_folder_said(case: Case, hub: HubServer) -> None:
    row = hub.row

    def wrong(path: str) -> dict[str, t.Any]:
        found = row(path)
        if path == "config.json":
            found["oid"] = "a" * 40
        return found

    hub.row = wrong  # type: ignore[method-assign]
    with pytest.raises(CheckpointError, match=f"What is right is kept in {case.place.files}, and the next run asks"):
        case.ensure()
    hub.row = row  # type: ignore[method-assign]
    assert case.ensure().complete
    assert case.served() == hub.files


def test_files_that_somebody_else_brought_are_compared_and_linked(case: Case, hub: HubServer) -> None:
    for name, content in hub.files.items():
        (case.target / name).parent.mkdir(parents=True, exist_ok=True)
        (case.target / name).write_bytes(content)
    outcome = case.ensure(here=True)
    assert outcome.complete and outcome.changed
    assert case.served() == hub.files
    assert hub.asked("/resolve/") == 0


def test_files_that_somebody_else_brought_wrongly_are_named_and_not_mended(case: Case, hub: HubServer) -> None:
    with pytest.raises(CheckpointError, match=f"{case.target} is not there"):
        case.ensure(here=True)
    case.deploy()
    (case.target / SHARD).write_bytes(b"?")
    hub.requests.clear()
    with pytest.raises(CheckpointError, match=rf"{SHARD}: expected 8\d+ bytes, got 1 bytes.*Bring these files to"):
        case.ensure(here=True)
    assert hub.asked("/resolve/") == 0


def test_check_mode_of_what_somebody_else_will_bring(case: Case) -> None:
    outcome = case.ensure(here=True, check=True)
    assert (outcome.changed, outcome.complete) == (False, False)
