# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation names is there: links, playbooks, variables, targets, files; and its examples are right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import profile
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.names import KNOWN
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.options import OPTIONS
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import parse_edits
from ansible_collections.llmfleet.sglang.tests.unit.docs import pages

ROOT = pages.ROOT
PLAYBOOKS = pages.playbooks()
VARIABLES = pages.variables()
TARGETS = pages.make_targets()
OURS = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))["repository"] + "/blob/main/"
# Names that only look like variables: files, folders, a module of Python.
_OTHERS = {"sglang_kernel"}
_FOLDERS = ("playbooks", "plugins", "roles", "docs", "inventories", "benchmarks", "tests", "fleet", "molecule", "meta")
# What a reader makes or fills in.
_READERS_OWN = re.compile(r"inventories/mine|/[A-Z]+\b")


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize("page", pages.ALL, ids=pages.name)
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for link in pages.links(text_of(page)):
        ours = link.startswith(OURS)
        if link.startswith(("http://", "https://", "mailto:")) and not ours:
            continue
        target, _hash, anchor = link.removeprefix(OURS).partition("#")
        path = ((ROOT if ours else page.parent) / target).resolve() if target else page
        assert path.exists(), f"{link} leads to {path}"
        assert path.is_relative_to(ROOT), f"{link} leads out of the repository"
        # Who reads the page in an installed collection has no more than that.
        assert ours or pages.ships(path) or not pages.ships(page), f"{link} is in no tarball: {OURS}{target} is"
        if anchor and path.suffix == ".md":
            assert anchor in pages.anchors(text_of(path)), f"{link}: no such heading"


@pytest.mark.parametrize("page", pages.READ, ids=pages.name)
def test_every_playbook_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"\bplaybooks/([a-z_]+)\.yml", text_of(page))
    named += re.findall(r"ansible-playbook llmfleet\.sglang\.([a-z_]+)", text_of(page))
    assert not set(named) - set(PLAYBOOKS)


@pytest.mark.parametrize("page", pages.READ, ids=pages.name)
def test_every_variable_that_is_named_is_read_by_something(page: Path) -> None:
    named = {one for text in pages.code(text_of(page)) for one in re.findall(r"(?<![\w/.-])sglang_[a-z0-9_]+\b", text)}
    assert not named - VARIABLES - _OTHERS


@pytest.mark.parametrize("page", pages.READ, ids=pages.name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    named = {one for text in pages.code(text_of(page)) for one in re.findall(r"(?:^|[&;$] )make ([a-z-]+)", text, re.M)}
    assert not named - TARGETS


@pytest.mark.parametrize("page", pages.READ, ids=pages.name)
def test_every_file_of_the_repository_that_is_named_exists(page: Path) -> None:
    for text in pages.code(text_of(page)):
        for named in re.findall(rf"(?<![\w/.-])((?:{'|'.join(_FOLDERS)})/[\w./-]*[\w/])", text):
            if not _READERS_OWN.search(named):
                assert (ROOT / named).exists(), named


COMMANDS = [
    pytest.param(command, id=f"{pages.name(page)}-{number}")
    for page in pages.READ
    for number, command in enumerate(pages.commands(text_of(page)), 1)
    if command.startswith("ansible-playbook ") and "…" not in command
]


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_can_be_typed(command: str) -> None:
    """The playbook is there, an inventory is given, and each extra variable is one that this playbook may read."""
    words = shlex.split(command, comments=True)[1:]
    playbook = words.pop(0)
    stem = Path(playbook).stem if "/" in playbook else playbook.rpartition(".")[2]
    assert stem in PLAYBOOKS
    assert "-i" in words or "${AUDIT[@]}" in words, "without an inventory"
    for option, value in zip(words, words[1:]):
        if option == "-e" and not value.startswith("{"):
            variable = value.partition("=")[0]
            assert "=" in value and (variable in VARIABLES or variable.startswith("ansible_")), value
    if stem in ("preflight", "rollback", "stop", "start", "uninstall", "deploy"):
        assert any(word.startswith("sglang_profile=") for word in words), "which model is meant?"


@pytest.mark.parametrize("page", pages.READ, ids=pages.name)
def test_examples_in_yaml_can_be_read(page: Path) -> None:
    for block in pages.fenced(text_of(page)):
        if block.language == "yaml":
            yaml.compose(block.text)  # tags such as !vault are no errors


def _example(guide: str, key: str) -> dict[str, Any]:
    found = [
        yaml.safe_load(one.text) for one in pages.fenced(text_of(pages.DOCS / "guides" / guide)) if key in one.text
    ]
    assert len(found) == 1
    example: dict[str, Any] = found[0]
    return example


def test_the_example_of_a_profile_is_a_sound_one() -> None:
    example = _example("add-a-model.md", "smoke_max_tokens")
    assert profile.problems(example) == []
    assert profile.problems({**example, "gpus": {}}) != []


def test_every_key_of_a_shipped_profile_is_in_the_guide() -> None:
    guide = text_of(pages.DOCS / "guides" / "add-a-model.md")
    for path in (ROOT / "playbooks" / "profiles").glob("*.yml"):
        assert not [key for key in yaml.safe_load(text_of(path)) if key not in guide]


def test_the_example_of_a_patch_set_is_a_sound_one() -> None:
    example = _example("add-a-patch.md", "dict_entry:")
    assert set(example) == {"name", "summary", "edits"}
    assert [edit.id for edit in parse_edits(example["edits"])] == ["symm_mem_max_sizes"]


def test_the_readme_names_every_playbook_that_one_runs() -> None:
    """resolve.yml and report.yml are parts of the others."""
    table = text_of(ROOT / "README.md").partition("## Playbooks")[2].partition("\n## ")[0]
    assert not [stem for stem in PLAYBOOKS if f"`{stem}.yml`" not in table and stem not in ("resolve", "report")]


def test_the_index_leads_to_every_page() -> None:
    index = pages.DOCS / "README.md"
    led = {(pages.DOCS / link.partition("#")[0]).resolve() for link in pages.links(text_of(index)) if "://" not in link}
    wanted = [*pages.DOCS.glob("*.md"), *pages.GUIDES, pages.DOCS / "guides/failure-modes/README.md"]
    wanted += (ROOT / "roles").glob("*/README.md")
    assert not [pages.name(page) for page in wanted if page not in led and page != index]


def test_the_settings_for_a_controller_are_those_of_the_checkout() -> None:
    """scaling.md repeats ansible.cfg without what is the checkout's alone."""
    ours = text_of(ROOT / "ansible.cfg").splitlines()
    for page in ("guides/scaling.md", "README.md"):
        [shown] = [one.text for one in pages.fenced(text_of(pages.DOCS / page)) if one.language == "ini"]
        assert "callback_result_format = yaml" in shown
        assert not [line for line in shown.splitlines() if line and line not in ours]


def test_whoever_installs_the_collection_is_told_what_makes_tables_readable() -> None:
    installed = text_of(ROOT / "README.md").partition("To run the installed collection")[2].partition("\n## ")[0]
    assert "ANSIBLE_CALLBACK_RESULT_FORMAT=yaml" in installed


def test_the_page_of_variables_has_each_with_its_default() -> None:
    rows = re.findall(r"(?m)^\| (`sglang_[^|]*) \|([^|]*)\|", text_of(pages.DOCS / "variables.md"))
    listed = {name: default.strip() for named, default in rows for name in re.findall(r"\bsglang_\w+", named)}
    # resolve.yml's own: preflight.yml and benchmark.yml set it, an operator does not.
    assert set(KNOWN) - {"sglang_refuse"} <= set(listed)
    for name, option in OPTIONS.items():
        shown = listed[f"sglang_{name}"]
        if option.required:
            assert shown == "required", name
        elif shown:
            assert yaml.safe_load(shown.strip("`")) == option.default or shown == f"`{option.default}`", name
        else:
            assert not option.default, f"{name} has the default {option.default!r}"


def test_the_table_of_faults_names_every_file_of_them() -> None:
    rows = re.findall(r"(?m)^\| `(test_\w+\.py)` \|", text_of(ROOT / "tests" / "faults" / "README.md"))
    assert sorted(rows) == sorted(path.name for path in (ROOT / "tests" / "faults").glob("test_*.py"))
