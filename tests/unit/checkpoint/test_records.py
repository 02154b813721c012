# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifest, stamp, progress and what the downloader is called with."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import words
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.fetch import Hf
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import (
    MANIFEST,
    STAMP,
    Manifest,
    Seen,
    Stamp,
    WantedFile,
    changed_since,
    load_manifest,
    load_stamp,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.place import Owner
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.progress import Progress
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.verify import check_files

REPOSITORY, REVISION = "org/model", "a" * 40
FILES = (WantedFile("b", 2, "b" * 64), WantedFile("a/c", 1, "c" * 64))


def test_the_manifest_is_the_same_whatever_the_order() -> None:
    assert Manifest(REPOSITORY, REVISION, FILES).digest == Manifest(REPOSITORY, REVISION, FILES[::-1]).digest


def test_the_manifest_comes_back(tmp_path: Path) -> None:
    manifest = Manifest(REPOSITORY, REVISION, FILES)
    (tmp_path / MANIFEST).write_bytes(manifest.encoded())
    loaded = load_manifest(str(tmp_path), REPOSITORY, REVISION)
    assert loaded is not None and loaded.digest == manifest.digest
    assert load_manifest(str(tmp_path), REPOSITORY, "b" * 40) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1}',
        '{"format": 1, "files": [{"path": "../x"}]}',
        '{"format": 1, "files": 3}',
    ],
)
def test_a_broken_record_is_none_at_all(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    (tmp_path / STAMP).write_text(text)
    assert load_manifest(str(tmp_path), REPOSITORY, REVISION) is None
    assert load_stamp(str(tmp_path)) is None


@pytest.mark.parametrize("change", ["size", "mtime", "inode", "gone", "link", "digest"])
def test_the_stamp_sees_every_change(tmp_path: Path, change: str) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    manifest = Manifest(REPOSITORY, REVISION, (WantedFile("f", 1, "d" * 64),))
    stamp = Stamp(manifest.digest, words.now(), {"f": Seen.of(os.lstat(path))})
    (tmp_path / STAMP).write_bytes(stamp.encoded())
    loaded = load_stamp(str(tmp_path))
    assert loaded == stamp
    assert changed_since(str(tmp_path), manifest, stamp) == []
    status = os.lstat(path)
    if change == "digest":
        manifest = Manifest(REPOSITORY, REVISION, (WantedFile("f", 1, "e" * 64),))
    elif change == "mtime":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    elif change == "size":
        path.write_text("xy")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        other = tmp_path / "g"
        path.rename(other)
        if change == "link":
            path.symlink_to(other)
        elif change == "inode":
            path.write_text("x")
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert changed_since(str(tmp_path), manifest, stamp) == ["f"]


def test_reading_uses_several_threads_and_tells_every_byte(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "f").write_bytes(content)
    seen: list[tuple[int, int]] = []
    wanted = [WantedFile("f", len(content), "0" * 64), WantedFile("g", 1, "0" * 64)]
    right, problems = check_files(
        str(tmp_path), wanted, threads=2, read=lambda count: seen.append((threading.get_ident(), count))
    )
    assert right == []
    assert [problem.got.split()[0] for problem in problems] == ["sha256", "no"]
    assert sum(count for _thread, count in seen) == len(content)
    assert all(thread != threading.get_ident() for thread, _count in seen)


def test_progress_tells_rate_and_time_left(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "progress"
    progress = Progress(str(path), clock=lambda: now[0])
    progress.start("download", 1000)
    now[0] = 10.0
    progress.at(200)
    content = json.loads(path.read_text())
    assert (content["phase"], content["bytes_done"], content["bytes_total"]) == ("download", 200, 1000)
    assert (content["bytes_per_second"], content["seconds_left"]) == (20, 40)
    now[0] = 10.5
    progress.add(100)
    assert json.loads(path.read_text())["bytes_done"] == 200
    progress.end()
    assert not path.exists()


def test_progress_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    progress = Progress(str(tmp_path / "missing" / "progress"))
    progress.start("verify", 10)
    progress.add(10)
    progress.end()


def test_the_downloaders_environment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "the operator's own")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", "another")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    environment = Hf("/x/hf", "http://mirror").environment("/home", xet=True)
    assert not {"HF_TOKEN", "HF_HUB_OFFLINE", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_DISABLE_XET"} & set(environment)
    assert environment["HF_ENDPOINT"] == "http://mirror"
    assert environment["https_proxy"] == "http://proxy:3128"
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert Hf("/x/hf", "http://mirror").environment("/home", xet=False)["HF_HUB_DISABLE_XET"] == "1"


def test_a_token_is_in_the_environment_and_never_in_the_arguments() -> None:
    hf = Hf("/x/hf", "http://mirror", token="secret")
    assert hf.environment("/home", xet=True)["HF_TOKEN"] == "secret"
    assert "secret" not in str(hf.arguments(REPOSITORY, REVISION, "/folder", "-odd name"))
    by_file = Hf("/x/hf", "http://mirror", token_file="/run/token").environment("/home", xet=True)
    assert by_file["HF_TOKEN_PATH"] == "/run/token"
    assert "HF_TOKEN" not in by_file


def test_a_file_name_is_never_taken_as_an_option() -> None:
    arguments = Hf("/x/hf", "http://mirror").arguments(REPOSITORY, REVISION, "/folder", "--token=x")
    assert arguments[arguments.index("--") + 1 :] == [REPOSITORY, "--token=x"]


def test_an_owner_that_is_not_there_is_named() -> None:
    assert Owner.named("root", None) == Owner(0, -1)
    with pytest.raises(CheckpointError, match="no user nobody-of-that-name"):
        Owner.named("nobody-of-that-name", None)
    with pytest.raises(CheckpointError, match="no group nobody-of-that-name"):
        Owner.named(None, "nobody-of-that-name")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (223_000_000_000, "223.00 GB"), (2 * 10**12, "2.00 TB")],
)
def test_sizes_are_decimal(count: int, text: str) -> None:
    assert words.size(count) == text
