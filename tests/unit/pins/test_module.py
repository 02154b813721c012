# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `pin`: what it writes, when it writes nothing, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import lookup
from ansible_collections.llmfleet.sglang.plugins.modules import pin

from tests.unit.release.repository import Repository

MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"
REVISION = "9f8e7d6c" * 5


class Case:
    """A module's arguments, and what it answers."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.upstream = Repository(folder / "upstream")
        self.upstream.commit("first")
        self.upstream.git("tag", "--annotate", "v0.5.23", "--message", "0.5.23")
        self.dest = folder / "pins.yml"

    def run(self, **more: Any) -> dict[str, Any]:
        """Run the module in this process."""
        given = {"dest": str(self.dest), "repository": self.upstream.url, "checkpoint": MODEL, **more}
        with patch_module_args(given), pytest.raises(SystemExit):
            pin.main()
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer


@pytest.fixture
def case(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Case:
    """A real upstream, and a Hub that is only told what to say: the way to it is test_pins.py's."""
    monkeypatch.setattr(lookup, "revision_pin", lambda *_arguments, **_options: REVISION)
    return Case(tmp_path, capsys)


def test_it_writes_once_and_then_only_when_something_moved(case: Case) -> None:
    first = case.run()
    commit = case.upstream.git("rev-parse", "HEAD")
    assert first["changed"] is True
    assert first["pins"] == {
        "sglang_commit": commit,
        "sglang_version": "0.5.23",
        "sglang_checkpoint_revision": REVISION,
    }
    written = case.dest.read_bytes()
    assert lookup.current(written.decode()) == first["pins"]
    assert case.dest.stat().st_mode & 0o777 == 0o644

    assert case.run()["changed"] is False
    assert case.dest.read_bytes() == written

    moved = case.upstream.commit("second")
    assert case.run()["pins"]["sglang_commit"] == moved
    assert lookup.current(case.dest.read_text())["sglang_commit"] == moved


def test_a_check_run_tells_the_difference_and_writes_nothing(case: Case) -> None:
    answer = case.run(_ansible_check_mode=True, _ansible_diff=True)
    assert answer["changed"] is True
    assert answer["diff"]["before"] == ""
    assert answer["pins"]["sglang_commit"] in answer["diff"]["after"]
    assert not case.dest.exists()


def test_what_cannot_be_looked_up_changes_no_pin(case: Case) -> None:
    case.run()
    written = case.dest.read_bytes()
    answer = case.run(reference="v9.9.9")
    assert answer["failed"] is True
    assert "Nothing was pinned" in answer["msg"]
    assert "no branch or tag 'v9.9.9'" in answer["msg"]
    assert case.dest.read_bytes() == written
