# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file pins.yml: what is written, what is read back, and that nobody's pin is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins import file
from ansible_collections.llmfleet.sglang.plugins.module_utils._pins.file import Pin, Pins

ROOT = Path(__file__).resolve().parents[3]
COMMIT, QWEN, KIMI = "a" * 40, "b" * 40, "c" * 40
PINS = Pins(
    {"sglang_commit": Pin(COMMIT, "main of git"), "sglang_version": Pin("0.5.23-1-gabcdef0", "git describe")},
    {"qwen": Pin(QWEN, "main of nvidia/Qwen"), "kimi": Pin(KIMI, "main of moonshotai/Kimi")},
)


def test_what_is_written_is_read_back_by_us_and_by_yaml() -> None:
    text = file.render(PINS)
    assert file.read(text) == PINS
    assert yaml.safe_load(text) == PINS.values
    assert PINS.values["sglang_checkpoint_revisions"] == {"qwen": QWEN, "kimi": KIMI}


def test_each_value_has_its_origin_in_front() -> None:
    lines = file.render(PINS).splitlines()
    for value in (COMMIT, "0.5.23-1-gabcdef0", QWEN, KIMI):
        (number,) = (number for number, line in enumerate(lines) if value in line)
        assert lines[number - 1].strip().startswith("# ")
    assert lines[lines.index(f'  kimi: "{KIMI}"') - 1] == "  # main of moonshotai/Kimi"


def test_an_origin_is_one_line_without_a_password() -> None:
    said = file.origin("main of https://user:hidden-word@mirror.example/x.git\nsglang_port: 1", "2026-11-30")
    assert "hidden-word" not in said
    assert "\n" not in said
    assert said.endswith("on 2026-11-30")


def test_another_profiles_pin_stays_with_its_origin() -> None:
    after = PINS.with_revision("glm", Pin("d" * 40, "main of nvidia/GLM, on 2026-12-01"))
    assert after.revisions == {**PINS.revisions, "glm": Pin("d" * 40, "main of nvidia/GLM, on 2026-12-01")}
    assert after.source == PINS.source


def test_what_has_not_moved_keeps_the_day_on_which_it_was_looked_up() -> None:
    assert PINS.with_revision("qwen", Pin(QWEN, "on another day")) == PINS
    assert PINS.with_source({"sglang_commit": Pin(COMMIT, "on another day")}) == PINS
    assert PINS.with_revision("qwen", Pin(KIMI, "moved")).revisions["qwen"] == Pin(KIMI, "moved")


def test_the_one_revision_of_an_older_file_is_not_written_again() -> None:
    """It goes before those of the profiles, and would hide them."""
    older = file.read(f'---\n# origin\nsglang_commit: "{COMMIT}"\nsglang_checkpoint_revision: "{QWEN}"\n')
    assert older.single == QWEN
    assert older.source == {"sglang_commit": Pin(COMMIT, "origin")}
    assert QWEN not in file.render(older)


@pytest.mark.parametrize(
    "text",
    ["", "---\n", 'sglang_commit: ""\nsglang_checkpoint_revisions: {}\n', "# sglang_commit: abc\n", "  qwen: abc\n"],
)
def test_a_file_that_is_not_filled_in_holds_no_pin(text: str) -> None:
    assert file.read(text) == Pins()


def test_a_persons_own_spelling_is_read() -> None:
    text = f"sglang_commit: {COMMIT}\nsglang_checkpoint_revisions:\n    qwen:   {QWEN}\n"
    assert file.read(text) == Pins({"sglang_commit": Pin(COMMIT)}, {"qwen": Pin(QWEN)})


@pytest.mark.parametrize("inventory", ["demo", "blackwell"])
def test_the_inventories_files_are_as_they_would_be_written(inventory: str) -> None:
    text = (ROOT / "inventories" / inventory / "group_vars/sglang/pins.yml").read_text()
    pins = file.read(text)
    assert yaml.safe_load(text) == {"sglang_commit": "", "sglang_version": "", **pins.values}
    assert inventory == "blackwell" or text == file.render(pins)
