# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two instances on each machine, in one run: never both at once, each with its own name, port, cards and records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import machines, serial
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Rollout, Stage

FIRST, SECOND = HOSTS[0::2], HOSTS[1::2]
PAIRS = list(zip(FIRST, SECOND))


def pair(folder: Path, *, number: int, second: bool) -> dict[str, Any]:
    """The variables of one of a machine's two instances."""
    return {
        "ansible_host": f"192.0.2.{number}",
        "sglang_state": str(folder / "state" / f"machine{number}"),
        "sglang_visible_gpus": [4, 5, 6, 7] if second else [0, 1, 2, 3],
        "sglang_arguments": {"tp-size": 4},
        "sglang_replaces": [],
        **({"sglang_instance": "qwen-b", "sglang_port": 30001} if second else {}),
    }


def pairs(folder: Path, **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The variables of three machines with two instances each; more: further ones of a host."""
    found = {
        host: pair(folder, number=number, second=second)
        for number, both in enumerate(PAIRS, 1)
        for second, host in zip((False, True), both)
    }
    return {host: {**each, **more.get(host, {})} for host, each in found.items()}


def at(run: Rollout, step: str, host: str) -> int:
    """Where in the output a host came to a step."""
    [place] = [found.start() for found in re.finditer(rf"EVENT {step} {host}\b", run.output)]
    return place


def test_one_run_takes_the_instances_of_a_machine_one_after_the_other(tmp_path: Path) -> None:
    stage = Stage(tmp_path, HOSTS)
    # The first host always answers last: in which order hosts answer must not be the order of their turns.
    stage.extra["sglang_goes_on"] = "{{ inventory_hostname != 'h01' or lookup('pipe', 'sleep 0.5') == '' }}"
    run = stage.deploy(pairs(tmp_path, h02={"fails_in": "unit"}), sglang_failures_allowed=1, sglang_serial=[1, "100%"])
    assert run.rc == 2 and run.hosts("not prepared") == ["h02"], run.output
    assert run.hosts("new") == [host for host in HOSTS if host != "h02"]
    for first, second in PAIRS:
        assert at(run, "unit", first) < at(run, "build", second)  # they share releases and checkpoints
    for first, second in PAIRS[1:]:
        assert at(run, "record", first) < at(run, "start", second)
    # The first of each machine, canary first, then the second of each: no more batches than that.
    assert run.came_to("start")[0] == "h01"
    assert sorted(run.came_to("start")[1:3]) == ["h03", "h05"] and sorted(run.came_to("start")[3:]) == ["h04", "h06"]
    assert list((tmp_path / "state").glob("*/lock.json")) == []


def test_where_the_first_instance_fails_the_second_is_not_touched(tmp_path: Path) -> None:
    stage = Stage(tmp_path, HOSTS)
    run = stage.deploy(pairs(tmp_path, h03={"fails_in": "verify", "stuck": True}), **stage.hooks)
    assert run.rc == 2
    assert run.hosts("broken") == ["h03"] and run.hosts("new") == ["h01", "h05"]
    assert run.hosts("untouched") == SECOND
    # Marked for the instance, so that another of its machine takes nothing of it for its own.
    marks = [str(path.relative_to(tmp_path / "state")) for path in (tmp_path / "state").glob("*/*/drained.json")]
    assert marks == ["machine2/qwen/drained.json"]
    again = stage.deploy(pairs(tmp_path, **{host: {"already": True} for host in HOSTS if host != "h03"}), **stage.hooks)
    assert again.rc == 0, again.output
    assert again.came_to("undrain") == ["h03"]


def test_instances_that_would_meet_are_refused_before_any_host_is_touched(tmp_path: Path) -> None:
    stage = Stage(tmp_path, HOSTS)
    alike = {"sglang_instance": "qwen", "sglang_port": 30000, "sglang_visible_gpus": [3, 4, 5, 6]}
    run = stage.deploy(pairs(tmp_path, h02=alike))
    assert run.rc == 2
    words = " ".join(run.output.split())
    assert "h01 and h02 are one machine, and both are the instance qwen: give each its own sglang_instance." in words
    assert "both listen on port 30000" in words and "both use card 3" in words
    assert run.came_to("preflight") == []


def deployment(name: str, port: int, cards: list[int], *replaces: str) -> dict[str, Any]:
    return {
        "name": name,
        "service": f"sglang-{name}",
        "replaces": list(replaces),
        "listen": {"host": "h", "port": port},
        "gpus": {"visible": cards},
    }


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (deployment("b", 2, [1], "sglang-a"), "one would stop the other"),
        (deployment("b", 2, []), "one of them takes all cards"),
        (deployment("b", 2, [1]), ""),
    ],
)
def test_what_two_of_a_machine_may_not_share(other: dict[str, Any], words: str) -> None:
    hostvars = {
        "x": {"ansible_host": "1.1.1.1", "sglang_deployment": deployment("a", 1, [0])},
        "y": {"ansible_host": "1.1.1.1", "sglang_deployment": other},
        "z": {"ansible_host": "1.1.1.2", "sglang_deployment": deployment("a", 1, [0])},
    }
    found = machines.problems(list(hostvars), hostvars)
    assert len(found) == bool(words) and all(words in one for one in found)


def test_a_machine_is_an_address_and_a_port() -> None:
    hostvars: dict[str, dict[str, Any]] = {
        "a": {"ansible_host": "1.1.1.1"},
        "b": {"ansible_host": "1.1.1.1", "ansible_port": 22},
        "c": {"ansible_host": "1.1.1.1", "ansible_port": 2222},
        "d": {},
        "e": {"ansible_host": "d"},
        "f": {"ansible_host": "1.1.1.1"},
    }
    assert machines.turns(list(hostvars), hostvars) == {"a": 1, "b": 2, "c": 1, "d": 1, "e": 2, "f": 3}


@pytest.mark.parametrize(
    ("sizes", "counts", "batches"),
    [
        ([1, "10%", "100%"], [6], [1, "10%", "100%"]),  # one turn: Ansible's own business
        ([1, "100%"], [3, 3], [1, 2, 3]),
        ([1, "10%", "100%"], [10, 10], [1, 2, 7, 10]),
        ([4], [3, 2], [3, 2]),
        ([2], [3, 2], [2, 1, 2]),
        (["1%"], [2, 1], [1, 1, 1]),
    ],
)
def test_no_batch_holds_hosts_of_two_turns(sizes: list[Any], counts: list[int], batches: list[Any]) -> None:
    turns = [[f"t{turn}h{number}" for number in range(count)] for turn, count in enumerate(counts, 1)]
    everybody = [host for each in zip(*[[*one, *[""] * 20] for one in turns]) for host in each if host]
    groups = {
        "all": everybody,
        "sglang_prepared": everybody,
        serial.group(sizes): ["t1h0"],
        **{f"sglang_prepared_{turn}": set(one) for turn, one in enumerate(turns, 1)},
    }
    assert machines.batches(groups) == batches
    wanted = "sglang:&sglang_prepared" if len(turns) == 1 else [host for one in turns for host in one]
    assert machines.hosts(groups, "sglang") == wanted


@pytest.mark.parametrize(
    ("sizes", "members", "words"),
    [
        ([1, "100%"], "a", "batch 1 of 2, the canary: a"),
        ([1, "100%"], "bcdefg", "batch 2 of 2: 6 hosts, b to g"),
        ([1, "100%"], "defg", "batch 2 of 2: d, e, f, g"),  # b and c failed before
        ([3], "g", "batch 3 of 3: g"),
        ([3], "ac", "batch 1 of 3: a, c"),
        ([1, "40%", "40%"], "fg", "batch 4 of 4: f, g"),
    ],
)
def test_a_batch_is_told_by_its_number_and_its_hosts(sizes: list[Any], members: str, words: str) -> None:
    groups = {"all": list("abcdefg"), serial.group(sizes): ["a"], "sglang_prepared_1": list("abcdefg")}
    assert machines.batch(groups, list("abcdefg"), list(members)) == words
    assert machines.batch({**groups, "all": ["a"]}, ["a"], ["a"]) == "batch 1 of 1: a"


def test_with_nobody_prepared_there_is_nobody_to_go_over() -> None:
    assert machines.hosts({"all": ["a"]}, "sglang") == "all:!all"
    assert machines.hosts(json.loads('{"all": ["a"], "sglang_prepared_1": []}'), "sglang") == "all:!all"
