# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that appear whole or not at all, and work that gives way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import files, priority
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome


def test_a_file_is_put_whole_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.put(tmp_path / "one", b"whole")
        files.put(tmp_path / "secret", b"whole", mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "one").read_bytes() == b"whole"
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("one", "secret")] == [0o644, 0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "secret"]


def test_what_a_link_points_to_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "one").symlink_to(tmp_path / "theirs")
    files.put(tmp_path / "one", b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert (tmp_path / "one").read_bytes() == b"ours" and not (tmp_path / "one").is_symlink()


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_bytes(b"before")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.put(tmp_path / "one", b"after")
    assert (tmp_path / "one").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("durable", [True, False])
def test_what_has_to_last_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    order: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _handle: order.append("disk"))
    monkeypatch.setattr(os, "replace", lambda _fresh, _path: order.append("name"))
    files.put(tmp_path / "one", b"whole", durable=durable)
    assert order == (["disk", "name"] if durable else ["name"])


@pytest.mark.parametrize(
    ("io_class", "words"),
    [("idle", ["--class", "3"]), ("best-effort", ["--class", "2", "--classdata", "7"]), ("none", None)],
)
def test_reading_gives_way_as_far_as_was_said(io_class: str, words: list[str] | None) -> None:
    started: list[tuple[str, ...]] = []

    def start(argv: Sequence[str], _timeout: float) -> Outcome:
        started.append(tuple(argv))
        return Outcome(tuple(argv), None, problem="missing")  # a host without it works all the same

    priority.reading_gives_way(io_class, start)
    assert started == ([] if words is None else [("ionice", *words, "--pid", str(os.getpid()))])
