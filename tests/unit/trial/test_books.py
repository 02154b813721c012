# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks of a trial and of a benchmark hand over: the gate, what a lock says, a failure that is told."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.filter.trial import fusion_open, fusion_opened

from tests.unit.benchmark.case import ROOT
from tests.unit.deployment.example import resolved

OPEN = resolved(patch_sets=["sm120_fusion"])
NAMES = {"sglang_deployment": {"service": "sglang-qwen"}}


def tasks(name: str) -> list[dict[str, Any]]:
    """The tasks of a file of tasks."""
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "playbooks" / "tasks" / f"{name}.yml").read_text())
    return found


def book(name: str) -> dict[str, Any]:
    """The last play of a playbook."""
    *_others, found = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
    play: dict[str, Any] = found
    return play


def rendered(text: str, **variables: Any) -> str:
    """A template, as Ansible would fill it in."""
    known = jinja2.Environment()
    known.filters.update({f"llmfleet.sglang.{one.__name__}": one for one in (fusion_open, fusion_opened)})
    return known.from_string(text).render(**variables)


@pytest.mark.parametrize(("base", "opens"), [(resolved(), "True"), (OPEN, "False")])
def test_a_trial_is_one_of_the_gate_only_where_its_baseline_has_it_closed(base: dict[str, Any], opens: str) -> None:
    [gate] = [task[name]["gate"] for task in tasks("trial_change") for name in task if name.endswith(".trial_record")]
    assert rendered(gate, sglang_deployment=OPEN, sglang_trial_base=base) == opens


def test_the_lock_of_a_trial_says_that_it_tries() -> None:
    # The lock is taken and kept by tasks that say no reason of their own: it is their callers', for both the same.
    inner = [task for name in ("look", "keep_lock") for task in tasks(name)[0]["block"]]
    assert inner and not any("sglang_lock_reason" in str(task) for task in inner)
    text = (ROOT / "playbooks" / "deploy.yml").read_text()
    deploys = [task for play in yaml.safe_load(text) for task in play.get("tasks", [])]
    told = [one["vars"]["sglang_lock_reason"] for one in deploys if "look.yml" in str(one) or "keep_lock" in str(one)]
    assert [rendered(reason, **NAMES) for reason in told] == ["deploys sglang-qwen"] * 2
    [block] = [task for task in book("trial")["tasks"] if "sglang_lock_reason" in task.get("vars", {})]
    own = [one for one in block["block"] if "look.yml" in str(one) or "keep_lock" in str(one)]
    assert len(own) == 2 and not any("vars" in one for one in own)
    assert rendered(block["vars"]["sglang_lock_reason"], **NAMES) == "tries a change of sglang-qwen"


@pytest.mark.parametrize(
    ("check", "done", "message", "said"),
    [(True, True, "", ""), (True, False, "Why.", "Nothing was tried. Why."), (False, False, "", "Nothing was tried.")],
)
def test_a_check_run_that_would_try_something_does_not_say_that_nothing_was_tried(
    check: bool, done: bool, message: str, said: str
) -> None:
    [say] = [one for one in book("trial")["tasks"] if one["name"] == "Say what the trial came to"]
    known = {"ansible_check_mode": check, "sglang_prepared": {"done": done, "message": message}}
    known["sglang_untried"] = rendered(say["vars"]["sglang_untried"], **known)
    assert rendered(say["ansible.builtin.debug"]["msg"], sglang_reported={"words": ""}, **known) == said


def test_what_cannot_be_tried_is_refused_before_the_deployment_is_resolved_with_it() -> None:
    """A filter that raises would be told with the task's own text around it."""
    first, second, *_others = book("trial")["tasks"]
    assert "trial_change_problems" in str(first["vars"]) and "trial_deployment(" in str(second)


def test_a_benchmark_that_fails_is_reported_before_the_run_fails() -> None:
    measuring, *after = book("benchmark")["tasks"]
    [conclude] = measuring["rescue"]
    assert conclude["ansible.builtin.set_fact"]["sglang_prepared"]["done"] is False
    names = [task["name"] for task in after]
    assert {"Report", "Print the table"} < set(names)
    assert after[-1]["ansible.builtin.assert"]["that"] == "sglang_prepared.done"
