# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole way with the real `hf` and a simulated Hub, with faults."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import ensure as logic
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import (
    CheckpointError,
    HubRefused,
    HubUnreachable,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.hub import Hub
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import MANIFEST, STAMP

from tests.unit.checkpoint.case import Case
from tests.unit.checkpoint.hub_server import REPOSITORY, REVISION, HubServer

SHARD = "model-00002-of-00002.safetensors"


def flipped(content: bytes) -> bytes:
    """The same length, one bit changed in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def spoil(path: Path, content: bytes) -> None:
    """Writes in place, as a bad disk or a careless hand would: the inode stays."""
    path.write_bytes(content)


def test_a_fresh_host_gets_the_verified_files_and_the_link(case: Case, hub: HubServer) -> None:
    outcome = case.ensure()
    assert outcome.changed
    assert case.served() == hub.files
    assert os.readlink(case.path) == str(case.target)
    assert outcome.files == len(hub.files)
    assert outcome.bytes == outcome.bytes_downloaded == sum(map(len, hub.files.values()))
    manifest = json.loads((case.target / MANIFEST).read_text())
    assert (manifest["repository"], manifest["revision"]) == (REPOSITORY, REVISION)
    assert all(len(row["sha256"]) == 64 for row in manifest["files"])


def test_files_are_readable_and_not_writable_by_others_and_no_trash_is_served(case: Case) -> None:
    mask = os.umask(0o077)
    try:
        case.ensure()
    finally:
        os.umask(mask)
    for base, folders, names in os.walk(case.path.parent):
        assert ".cache" not in folders
        if base.endswith(".staging"):
            continue
        assert stat.S_IMODE(os.stat(base).st_mode) == 0o755
        assert all(stat.S_IMODE(os.lstat(Path(base) / name).st_mode) in (0o644, 0o777) for name in names)
    assert not Path(case.place.staging).exists()


def test_a_second_run_changes_nothing_and_asks_nothing(case: Case, hub: HubServer) -> None:
    first = case.ensure()
    before, requests = case.everything(), len(hub.requests)
    second = case.ensure()
    assert not second.changed
    assert second.message == f"unchanged since verified on {first.verified_at}"
    assert second.bytes_hashed == 0
    assert second.manifest_digest == first.manifest_digest
    assert case.everything() == before
    assert len(hub.requests) == requests


def test_a_complete_copy_serves_although_the_hub_is_gone(case: Case, hub: HubServer) -> None:
    case.deploy()
    hub.close()
    os.unlink(case.path)
    assert case.ensure().changed
    assert case.served() == hub.files


def test_a_copy_without_a_stamp_is_read_again_without_the_hub(case: Case, hub: HubServer) -> None:
    case.deploy()
    hub.close()
    os.unlink(case.target / STAMP)
    outcome = case.ensure()
    assert not outcome.changed
    assert outcome.bytes_hashed == outcome.bytes
    assert case.ensure().bytes_hashed == 0


def test_full_reads_every_file_again(case: Case) -> None:
    case.deploy()
    outcome = case.ensure(full=True)
    assert not outcome.changed
    assert outcome.bytes_hashed == outcome.bytes


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "link"])
def test_damage_is_mended_by_fetching_that_file_alone(case: Case, hub: HubServer, damage: str) -> None:
    case.deploy()
    path = case.target / SHARD
    content = hub.files[SHARD]
    if damage == "flipped":
        spoil(path, flipped(content))
    elif damage == "truncated":
        spoil(path, content[:-1])
    else:
        os.unlink(path)
        if damage == "link":
            path.symlink_to("/dev/null")
    others = {name: os.stat(case.target / name).st_ino for name in hub.files if name != SHARD}
    hub.requests.clear()
    outcome = case.ensure()
    assert outcome.changed
    assert [problem["file"] for problem in outcome.fetched_again] == [SHARD]
    assert case.served() == hub.files
    assert {name: os.stat(case.target / name).st_ino for name in others} == others
    assert {request.rsplit("/", 1)[-1] for request in hub.requests if "/resolve/" in request} == {SHARD}
    assert not case.ensure().changed


def test_a_reader_of_the_damaged_file_keeps_what_it_has_open(case: Case, hub: HubServer) -> None:
    case.deploy()
    path = case.target / SHARD
    spoil(path, flipped(hub.files[SHARD]))
    with open(path, "rb") as stream:
        case.ensure()
        assert stream.read() == flipped(hub.files[SHARD])


def test_wrong_bytes_of_the_right_length_are_fetched_again_once(case: Case, hub: HubServer) -> None:
    hub.served[SHARD] = [flipped(hub.files[SHARD])]
    outcome = case.ensure()
    assert [problem["file"] for problem in outcome.fetched_again] == [SHARD]
    assert case.served() == hub.files


def test_bytes_that_stay_wrong_fail_and_leave_what_is_served(case: Case, hub: HubServer) -> None:
    old = case.root / "old"
    old.mkdir()
    case.path.parent.mkdir()
    case.path.symlink_to(old)
    half = Path(case.place.files, ".cache", "huggingface", "download", "x.incomplete")
    half.parent.mkdir(parents=True)
    half.touch()
    hub.served[SHARD] = [flipped(hub.files[SHARD])] * 9
    with pytest.raises(
        CheckpointError, match=rf"Not as org/model at .* says, fetched twice.*{SHARD}: expected sha256"
    ) as caught:
        case.ensure()
    assert [problem["file"] for problem in caught.value.problems] == [SHARD]
    assert os.readlink(case.path) == str(old)
    assert not case.target.exists()
    assert not half.exists()
    hub.served.clear()
    assert case.ensure().changed
    assert case.served() == hub.files


def test_a_small_file_is_checked_by_its_git_blob(case: Case, hub: HubServer) -> None:
    hub.served["config.json"] = [flipped(hub.files["config.json"])]
    outcome = case.ensure()
    assert outcome.fetched_again[0]["expected"].startswith("git blob ")
    assert case.served() == hub.files


def test_damage_with_the_hub_gone_fails_and_names_the_file(case: Case, hub: HubServer) -> None:
    case.deploy()
    spoil(case.target / "config.json", b"{}")
    hub.close()
    request = case.request()
    request = dataclasses.replace(request, hf=dataclasses.replace(request.hf, timeout_stall=0.6))
    with pytest.raises(CheckpointError, match=r"config.json: expected 24 bytes, got 2 bytes"):
        logic.ensure(request)
    assert os.readlink(case.path) == str(case.target)


def test_a_shard_that_the_index_names_and_the_revision_lacks(case: Case, hub: HubServer) -> None:
    del hub.files[SHARD]
    with pytest.raises(CheckpointError, match=rf"names what the revision does not hold.*{SHARD}"):
        case.ensure()
    assert not case.path.exists()


def test_a_shard_that_is_no_safetensors_file(case: Case, hub: HubServer) -> None:
    hub.files[SHARD] = b"\0" * 1000
    with pytest.raises(CheckpointError, match=f"{SHARD} is as published, but no sound safetensors file"):
        case.ensure()


def test_one_503_of_a_file_is_tried_again_without_xet(case: Case, hub: HubServer) -> None:
    hub.statuses[f"get:{SHARD}"] = [(503, {})]
    outcome = case.ensure()
    assert outcome.changed
    assert case.served() == hub.files


def test_a_hub_that_cannot_be_reached(case: Case, hub: HubServer) -> None:
    hub.close()
    with pytest.raises(HubUnreachable, match="in 3 tries"):
        case.ensure()
    assert not Path(case.place.staging).exists()


def test_a_revision_that_is_not_there(case: Case) -> None:
    with pytest.raises(HubRefused, match=r"HTTP 404.*pinned revision"):
        case.ensure(revision="f" * 40)


@pytest.mark.parametrize("revision", ["main", "v1.0", REVISION[:12], REVISION.upper(), f"{REVISION}\n"])
def test_a_revision_that_is_no_pin_is_refused(case: Case, hub: HubServer, revision: str) -> None:
    with pytest.raises(CheckpointError, match="not a pin"):
        case.ensure(revision=revision)
    assert hub.requests == []


def test_a_disk_that_is_too_small_is_refused_with_the_arithmetic(case: Case, hub: HubServer) -> None:
    left = Path(case.place.staging).with_name("org--other--revision")
    left.mkdir(parents=True)
    (left / "half").write_bytes(b"x" * 1000)
    with pytest.raises(
        CheckpointError, match=r"free; org/model still needs 1\d\d\.\d\d kB \(5 files\) and .* are missing"
    ) as caught:
        case.ensure(reserve=1 << 60)
    assert f"{left} (1.00 kB)" in str(caught.value)
    assert hub.asked("/resolve/") == 0


def test_something_else_at_the_path_is_refused(case: Case, hub: HubServer) -> None:
    case.path.mkdir(parents=True)
    with pytest.raises(CheckpointError, match=rf"is not a link.*move it to {case.target}"):
        case.ensure()
    assert hub.requests == []


def test_a_copy_moved_to_its_place_is_verified_and_completed(case: Case, hub: HubServer) -> None:
    (case.target / ".cache").mkdir(parents=True)
    for name, content in hub.files.items():
        (case.target / name).parent.mkdir(exist_ok=True)
        (case.target / name).write_bytes(content if name != "config.json" else b"")
    outcome = case.ensure()
    assert outcome.bytes_downloaded == len(hub.files["config.json"])
    assert case.served() == hub.files


def test_another_revision_stays_when_the_link_moves_on(case: Case, hub: HubServer) -> None:
    old = case.target.with_name("e" * 40)
    old.mkdir(parents=True)
    (old / "config.json").write_text("old")
    case.path.symlink_to(old)
    outcome = case.ensure()
    assert outcome.before == str(old)
    assert os.readlink(case.path) == str(case.target)
    assert (old / "config.json").read_text() == "old"


def test_foreign_files_are_told_and_left(case: Case) -> None:
    case.deploy()
    (case.target / "stray.safetensors").write_text("?")
    outcome = case.ensure()
    assert "stray.safetensors" in outcome.warnings[0]
    assert (case.target / "stray.safetensors").exists()


def test_what_a_downloader_left_is_removed_and_said_and_nothing_else_of_the_folder(case: Case) -> None:
    case.deploy()
    half = case.target / ".cache" / "huggingface" / "download" / "x.incomplete"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    (case.target / ".cache" / "mine").write_text("?")
    foreseen = case.ensure(check=True)
    assert foreseen.changed and half.exists()
    outcome = case.ensure()
    assert outcome.changed
    assert "removed what a downloader left: .cache/huggingface/download/x.incomplete" in outcome.message
    assert ".cache/mine" in outcome.warnings[0]
    assert not half.parent.parent.exists()
    assert (case.target / ".cache" / "mine").exists()
    assert not case.ensure().changed


def test_modes_are_put_right_and_stay_verified(case: Case) -> None:
    case.deploy()
    (case.target / SHARD).chmod(0o666)
    assert case.ensure(check=True).changed
    outcome = case.ensure()
    assert outcome.changed
    assert outcome.bytes_hashed == 0
    assert stat.S_IMODE((case.target / SHARD).stat().st_mode) == 0o644


def test_a_manifest_that_was_tampered_with_is_not_believed(case: Case) -> None:
    case.deploy()
    path = case.target / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["files"] = manifest["files"][:1]
    path.write_text(json.dumps(manifest))
    assert case.ensure().bytes_hashed > 0


# check mode


def test_check_mode_on_a_fresh_host_says_what_would_come(case: Case, hub: HubServer) -> None:
    outcome = case.ensure(check=True)
    assert outcome.changed
    assert outcome.to_download == [{"file": name, "size": len(content)} for name, content in sorted(hub.files.items())]
    assert "5 of 5 files (120." in outcome.message
    assert case.everything() == {}
    assert hub.asked("/resolve/") == 0


def test_check_mode_on_a_deployed_host_says_unchanged(case: Case) -> None:
    case.deploy()
    before = case.everything()
    assert not case.ensure(check=True).changed
    assert case.everything() == before


def test_check_mode_without_the_hub_warns(case: Case, hub: HubServer) -> None:
    hub.close()
    outcome = case.ensure(check=True)
    assert outcome.changed
    assert "cannot be reached" in outcome.message
    assert "in 3 tries" in outcome.warnings[0]


def test_check_mode_foresees_the_refusal_of_a_small_disk(case: Case) -> None:
    assert "A real run would be refused" in case.ensure(check=True, reserve=1 << 60).warnings[0]


def test_check_mode_sees_a_truncated_file(case: Case) -> None:
    case.deploy()
    (case.target / SHARD).write_bytes(b"")
    assert [row["file"] for row in case.ensure(check=True).to_download] == [SHARD]


# the token


def test_the_token_goes_to_the_hub_and_to_nobody_else(case: Case, hub: HubServer, tmp_path: Path) -> None:
    hub.token = "hf_secretsecretsecret"
    request = case.request()
    with pytest.raises(HubRefused, match=r"HTTP 401.*Give a token"):
        logic.ensure(request)
    request = dataclasses.replace(
        request,
        hub=Hub(hub.url, token=hub.token, tries=1),
        hf=dataclasses.replace(request.hf, token=hub.token),
    )
    assert logic.ensure(request).changed
    content = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert hub.token.encode() not in content
