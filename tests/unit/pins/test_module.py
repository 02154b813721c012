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
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import file, lookup
from ansible_collections.llmfleet.sglang.plugins.modules import pin

from tests.unit.release.repository import Repository

PROFILE, MODEL = "qwen3_5_397b_nvfp4", "nvidia/Qwen3.5-397B-A17B-NVFP4"
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
        given = {
            "dest": str(self.dest),
            "repository": self.upstream.url,
            "profile": PROFILE,
            "checkpoint": MODEL,
            **more,
        }
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
        "sglang_checkpoint_revisions": {PROFILE: REVISION},
    }
    written = case.dest.read_bytes()
    assert file.read(written.decode()).values == first["pins"]
    assert case.dest.stat().st_mode & 0o777 == 0o644

    assert case.run()["changed"] is False
    assert case.dest.read_bytes() == written

    moved = case.upstream.commit("second")
    assert case.run()["pins"]["sglang_commit"] == moved
    assert file.read(case.dest.read_text()).values["sglang_commit"] == moved


def test_the_folder_of_the_pins_is_made_where_there_is_none(case: Case) -> None:
    case.dest = case.dest.parent / "group_vars" / "sglang" / "pins.yml"
    assert case.run(_ansible_check_mode=True)["changed"] is True and not case.dest.parent.exists()
    assert case.run()["changed"] is True
    assert case.run()["changed"] is False


def test_a_folder_that_cannot_be_made_is_said_plainly(case: Case) -> None:
    case.dest.write_text("")
    case.dest = case.dest / "sglang" / "pins.yml"
    answer = case.run()
    assert answer["msg"] == f"Nothing was pinned: {case.dest} cannot be written: Not a directory."


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


def test_another_models_checkpoint_is_pinned_beside_the_first_and_the_source_stays(case: Case) -> None:
    before = case.run()["pins"]
    case.upstream.commit("moved meanwhile")
    after = case.run(profile="kimi_k2_5_int4", checkpoint="moonshotai/Kimi-K2.5", what=["checkpoint"])
    revisions = {PROFILE: REVISION, "kimi_k2_5_int4": REVISION}
    assert after["pins"] == {**before, "sglang_checkpoint_revisions": revisions}
    text = case.dest.read_text()
    assert f"# main of {MODEL} at" in text
    assert "# main of moonshotai/Kimi-K2.5 at" in text


def test_the_source_alone_can_be_moved_on(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.run()
    moved = case.upstream.commit("second")
    monkeypatch.setattr(lookup, "revision_pin", lambda *_arguments, **_options: "0" * 40)
    pins = case.run(what=["source"])["pins"]
    assert pins["sglang_commit"] == moved
    assert pins["sglang_checkpoint_revisions"] == {PROFILE: REVISION}


def test_the_one_revision_of_an_older_file_makes_room(case: Case) -> None:
    case.run()
    case.dest.write_text(case.dest.read_text() + f'sglang_checkpoint_revision: "{REVISION}"\n')
    assert case.run()["changed"] is True
    assert "sglang_checkpoint_revision:" not in case.dest.read_text()
    assert case.run()["changed"] is False


def test_a_branch_that_moved_is_said_and_another_name_is_no_move(case: Case) -> None:
    assert case.run()["moved"] == []
    first = case.upstream.git("rev-parse", "HEAD")
    assert case.run()["moved"] == []
    second = case.upstream.commit("second")
    [said] = case.run()["moved"]
    assert said.startswith(f"main of {case.upstream.url} has moved since 20")
    assert said.endswith(f": sglang_commit was {first} and is {second} now")
    assert case.run(reference="v0.5.23")["moved"] == []


def test_a_model_that_moved_is_said(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.run()
    monkeypatch.setattr(lookup, "revision_pin", lambda *_arguments, **_options: "1" * 40)
    [said] = case.run(what=["checkpoint"])["moved"]
    assert f"sglang_checkpoint_revisions.{PROFILE} was {REVISION} and is {'1' * 40} now" in said
