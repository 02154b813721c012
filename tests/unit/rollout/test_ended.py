# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a run that could not tell its end itself."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices, ended, recap

BEGUN: dict[str, Any] = {"serves": False, "message": "The cut-over did not end."}
SERVES: dict[str, Any] = {"serves": True, "changed": True, "model": "qwen", "address": "a:1"}
HOOKS = {"sglang_undrain_tasks": "haproxy"}
CUT_SHORT = {recap.CUT_SHORT: True}


@pytest.mark.parametrize(
    ("facts", "alive", "state", "failed"),
    [
        # Lost: its way back into the load balancer is a part of its cut-over.
        ({"sglang_verdict": SERVES, **HOOKS}, False, "drained", True),
        ({"sglang_verdict": SERVES, **HOOKS, "sglang_drain_state": "drained"}, False, "drained", True),
        ({"sglang_verdict": SERVES, **HOOKS, "sglang_drain_state": "undrained"}, False, "new", False),
        ({"sglang_verdict": SERVES}, False, "new", False),
        ({"sglang_verdict": {**SERVES, "asked": "started", "done": True}, **HOOKS}, False, "drained", True),
        ({"sglang_verdict": {"asked": "stopped", "done": True, "changed": True}, **HOOKS}, False, "stopped", False),
        ({"sglang_verdict": BEGUN, "sglang_drain_state": "draining"}, False, "untouched", True),
        ({"sglang_verdict": BEGUN, "sglang_drain_state": "drained"}, False, "lost", True),
        ({"sglang_verdict": {**SERVES, "going_back": True}, "sglang_drain_state": "drained"}, False, "lost", True),
        # Reached to the end: what was seen is what counts.
        ({"sglang_verdict": BEGUN}, True, "broken", True),
        ({"sglang_verdict": SERVES, **HOOKS}, True, "new", False),
        # Cut short.
        ({"sglang_verdict": BEGUN, **CUT_SHORT}, True, "interrupted", True),
        ({"sglang_verdict": BEGUN, "sglang_drain_state": "draining", **CUT_SHORT}, True, "untouched", True),
        ({"sglang_verdict": SERVES, **HOOKS, **CUT_SHORT}, True, "drained", True),
        ({"sglang_verdict": SERVES, **CUT_SHORT}, True, "new", False),
        (
            {"sglang_verdict": {"asked": "removed", "restored": False, "message": "m"}, **CUT_SHORT},
            True,
            "not removed",
            True,
        ),
        ({"sglang_prepared": {"done": True, "message": ""}, **CUT_SHORT}, True, "untouched", False),
    ],
)
def test_what_was_begun_and_not_seen_to_end(facts: dict[str, Any], alive: bool, state: str, failed: bool) -> None:
    found = recap.fate("h", facts, alive)
    assert (found.state, found.failed) == (state, failed)


def test_a_mark_that_could_not_be_looked_at_is_told_from_what_this_run_did() -> None:
    facts = {"sglang_verdict": BEGUN, **HOOKS, "sglang_drain_state": "drained"}
    assert "out of the load balancer still" in recap.fate("h", facts, False).message
    looked = {**facts, "sglang_noted": {"drained": ""}}
    assert "load balancer" not in recap.fate("h", looked, True).message


def test_the_end_says_each_host_the_locks_that_are_left_and_what_to_do() -> None:
    run = ended.Run(begun=True, lost={"h1"})
    for host in ("h1", "h2"):
        run.locks(host, {"held": True, "lock": {"run": "0123456789ab"}})
    hostvars: dict[str, dict[str, Any]] = {
        "h1": {"sglang_deployment": {}, "sglang_verdict": BEGUN},
        "h2": {"sglang_deployment": {}},
    }
    lines = ended.words(run, ["h1", "h2"], hostvars).splitlines()
    assert lines[0] == "The run was cut short before its summary. What is known of each host:"
    assert lines[1].startswith("    h1  lost       It was lost") and lines[2].startswith("    h2  untouched")
    assert lines[-2].startswith("Locked by this run still: h1, h2.")
    assert lines[-2].endswith("-e sglang_lock_broken=0123456789ab")
    assert lines[-1].startswith("See that h1 can be reached again, then run the same command again")
    run.locks("h1", {"held": False})
    run.locks("h2", {"held": False})
    assert "Locked" not in ended.words(run, ["h1", "h2"], hostvars)


@pytest.mark.parametrize("lost", [set(), {"h1"}])
def test_after_a_trial_that_was_cut_short_the_way_on_is_a_deployment(lost: set[str]) -> None:
    run = ended.Run(begun=True, lost=lost)
    trial: dict[str, Any] = {"sglang_deployment": {}, "sglang_trial_base": {"name": "qwen"}}
    before = ended.words(run, ["h1"], {"h1": trial})
    assert "the same command again: it goes on from there" in before
    text = ended.words(run, ["h1"], {"h1": {**trial, "sglang_verdict": BEGUN}})
    assert "goes on from there, and nothing" not in text and "same command goes on" not in text
    assert "un llmfleet.sglang.deploy, which brings the deployment of the inventory back, and then try again" in text
    told = "may be the change that was tried" in text
    assert told is (not lost)


@pytest.mark.parametrize(("begun", "told", "untold"), [(True, False, True), (True, True, False), (False, False, False)])
def test_nothing_is_said_of_a_run_that_told_it_or_that_touched_no_host(begun: bool, told: bool, untold: bool) -> None:
    assert ended.Run(begun=begun, told=told).untold() is untold


def test_each_load_balancer_that_is_away_is_named() -> None:
    away = {"unreachable": True, "msg": "No route to host.\n"}
    results = [{"sglang_balancer": {"host": "lb1"}}, {**away, "sglang_balancer": {"host": "lb2"}}]
    assert choices.unreached({"results": results}) == (
        "The load balancer cannot be reached from here: lb2: No route to host."
    )


def test_of_a_benchmark_it_is_said_what_was_recorded() -> None:
    facts: dict[str, dict[str, Any]] = {
        "h1": {"sglang_deployment": {}, "sglang_benchmark_result": {"benchmark": {"id": "b"}}},
        "h2": {"sglang_deployment": {}},
        "h3": {"sglang_deployment": {}, "sglang_benchmark_result": {"unreachable": True}},
    }
    text = ended.words(ended.Run(begun=True, measures=True, lost={"h3"}), list(facts), facts)
    ends = "nothing was recorded, and what measures there ends by itself."
    assert [line.strip() for line in text.splitlines()[1:4]] == [
        "h1  measured      Its record has it.",
        f"h2  not measured  The run ended before: {ends}",
        f"h3  not measured  It could not be reached any more: {ends}",
    ]
    assert "run the same command again" in text
