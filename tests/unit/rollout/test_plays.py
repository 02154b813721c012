# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plays are built of: facts are not gathered, seeding is in no play of batches, nothing hangs on a handler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
BOOKS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "playbooks").glob("*.yml"))}
PLAYS = [(book, play) for book, plays in BOOKS.items() for play in plays if "hosts" in play]
# What may be done once for a whole batch: to count, and to say.
COUNTS = {"ansible.builtin.set_fact", "ansible.builtin.debug", "ansible.builtin.assert", "ansible.builtin.group_by"}
KEYWORDS = ("block", "rescue", "always")  # in the order in which they run
# Roles that bring things to the hosts, of which one host may do a part for all.
SEEDING = {"sglang_build", "sglang_checkpoint"}
Task = dict[str, Any]


def tasks_of(tasks: list[Task], folder: Path, seen: set[Path]) -> Iterator[Task]:
    """Every task below these, through blocks, files of tasks and roles."""
    for task in tasks:
        yield task
        for keyword in KEYWORDS:
            yield from tasks_of(task.get(keyword, []), folder, seen)
        for path in files_of(task, folder):
            if path not in seen:
                seen.add(path)
                yield from tasks_of(yaml.safe_load(path.read_text()) or [], path.parent, seen)


def files_of(task: Task, folder: Path) -> list[Path]:
    """The files that a task includes; a name that is a template names the operator's own or a choice of ours."""
    included = task.get("ansible.builtin.include_tasks") or task.get("ansible.builtin.import_tasks")
    name = included.get("file") if isinstance(included, dict) else included
    if name:
        return [] if "{{" in name else [folder / name]
    role = task.get("ansible.builtin.include_role") or task.get("ansible.builtin.import_role")
    if not role:
        return []
    place = ROOT / "roles" / role["name"].rpartition(".")[2] / "tasks"
    return [place / f"{role.get('tasks_from', 'main')}.yml"]


def all_tasks(play: Task) -> list[Task]:
    """Every task of a play."""
    return list(tasks_of(play.get("tasks", []), ROOT / "playbooks", set()))


def module(task: Task) -> str:
    """The module or action of a task."""
    [name] = [key for key in task if "." in key] or [""]
    return name


@pytest.mark.parametrize(("book", "play"), PLAYS, ids=[f"{book}: {play['name']}" for book, play in PLAYS])
def test_no_play_gathers_facts(book: str, play: Task) -> None:
    # Each module looks at what it needs, where it needs it: a host's facts take seconds and are not read.
    assert play["gather_facts"] is False
    assert [
        task for task in all_tasks(play) if module(task) in ("ansible.builtin.setup", "ansible.builtin.gather_facts")
    ] == []


def test_no_fact_is_read() -> None:
    folders = [ROOT / "playbooks", ROOT / "roles"]
    read = re.compile(r"ansible_facts|ansible_(?:distribution|os_family|memtotal|processor|default_ipv4|kernel)")
    found = [path for folder in folders for path in folder.rglob("*.y*ml") if read.search(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("book", "play"), [one for one in PLAYS if "serial" in one[1]], ids=[one[0] for one in PLAYS if "serial" in one[1]]
)
def test_a_play_of_batches_seeds_nothing(book: str, play: Task) -> None:
    # run_once runs once in each batch there.
    once = {module(task) for task in all_tasks(play) if task.get("run_once")}
    assert once <= COUNTS
    roles = {
        task["ansible.builtin.include_role"]["name"]
        for task in all_tasks(play)
        if "ansible.builtin.include_role" in task
    }
    assert not roles & {f"llmfleet.sglang.{name}" for name in SEEDING}


def test_the_plays_of_batches_are_these() -> None:
    assert {book for book, play in PLAYS if "serial" in play} >= {"deploy", "rollback"}
    assert "llmfleet.sglang.sglang_checkpoint" in {
        task["ansible.builtin.include_role"]["name"]
        for book, play in PLAYS
        if book == "deploy" and "serial" not in play
        for task in all_tasks(play)
        if "ansible.builtin.include_role" in task
    }


def test_nothing_hangs_on_a_handler() -> None:
    # One is lost when a later task fails, and the next run sees no change to notify it for.
    assert [book for book, play in PLAYS if "handlers" in play] == []
    assert list((ROOT / "roles").glob("*/handlers")) == []
    assert [task for _book, play in PLAYS for task in all_tasks(play) if "notify" in task] == []


@pytest.mark.parametrize("book", ["deploy", "start", "stop", "rollback", "uninstall", "benchmark", "trial"])
def test_whoever_stops_or_measures_has_the_lock_and_gives_it_back(book: str) -> None:
    plays = [*BOOKS[book], *(BOOKS["report"] if book != "benchmark" else [])]
    states = [
        task["llmfleet.sglang.host_lock"].get("state", "taken")
        for play in plays
        for task in all_tasks(play)
        if "llmfleet.sglang.host_lock" in task
    ]
    assert states[0] == "taken" and states[-1] == "released"


def test_the_filters_are_loaded_before_tasks_are_forked_off() -> None:
    """A play's hosts are templated in the process that tasks come from; without it each task loads them for itself."""
    assert "llmfleet.sglang." in BOOKS["resolve"][0]["hosts"]
