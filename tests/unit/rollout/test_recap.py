# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of each host, told from what was last known of it; and the sizes of batches."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.rollout import rollout_serial, rollout_serial_group
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap

SERVES = {"serves": True, "changed": True, "checked": False, "model": "qwen", "address": "10.0.0.1:30000"}
BACK = {"asked": "went back", "done": False, "message": "m"}
READY = {"done": True, "message": ""}


@pytest.mark.parametrize(
    ("facts", "alive", "state", "failed"),
    [
        ({"sglang_prepared": READY}, True, "untouched", False),
        ({"sglang_prepared": READY}, False, "unreachable", True),
        ({}, True, "untouched", False),
        ({}, False, "unreachable", True),
        ({"sglang_prepared": {"done": False, "message": "No disk."}}, True, "not prepared", True),
        ({"sglang_verdict": SERVES}, True, "new", False),
        # It was seen to serve, whatever became of the connection.
        ({"sglang_verdict": SERVES}, False, "new", False),
        ({"sglang_verdict": {**SERVES, "changed": False}}, True, "unchanged", False),
        ({"sglang_verdict": {**SERVES, "checked": True}}, True, "to change", False),
        ({"sglang_verdict": {"serves": False, "message": "m"}}, True, "broken", True),
        ({"sglang_verdict": {"serves": False, "message": "m"}}, False, "lost", True),
        ({"sglang_verdict": {"serves": False, "restored": True, "message": "m"}}, True, "went back", True),
        ({"sglang_verdict": {"serves": False, "restored": True, "stopped": False}}, True, "untouched", True),
        ({"sglang_verdict": {"serves": False, "restored": False, "message": "m"}}, True, "broken", True),
        ({"sglang_verdict": {**SERVES, "drained": "no answer"}}, True, "drained", True),
        ({"sglang_verdict": {**BACK, "done": True, "changed": True}}, True, "went back", False),
        ({"sglang_verdict": {**BACK, "done": True, "changed": False}}, True, "unchanged", False),
        ({"sglang_verdict": {**BACK, "done": True, "changed": True, "checked": True}}, True, "to change", False),
        ({"sglang_verdict": BACK}, True, "broken", True),
        ({"sglang_verdict": BACK}, False, "lost", True),
        ({"sglang_verdict": {**BACK, "restored": True}}, True, "untouched", True),
        ({"sglang_verdict": {**BACK, "asked": "stopped"}}, True, "not stopped", True),
    ],
)
def test_a_hosts_fate(facts: dict[str, Any], alive: bool, state: str, failed: bool) -> None:
    found = recap.fate("h", facts, alive)
    assert (found.state, found.failed) == (state, failed)


@pytest.mark.parametrize(
    ("facts", "hook", "failed"),
    [
        ({"sglang_verdict": SERVES}, "", True),
        ({"sglang_verdict": {**SERVES, "changed": False}}, "", True),
        ({"sglang_verdict": {**BACK, "asked": "started", "done": True, "changed": True}}, "", True),
        ({"sglang_verdict": SERVES}, "haproxy", False),
        ({"sglang_verdict": {**BACK, "asked": "stopped", "done": True}}, "", False),
        ({"sglang_verdict": {**SERVES, "checked": True}}, "", False),
        ({}, "", False),
    ],
)
def test_a_host_that_was_left_out_is_said_with_or_without_hooks(facts: dict[str, Any], hook: str, failed: bool) -> None:
    noted = {"drained": "/r/drained.json"}
    found = recap.fate("h", {**facts, "sglang_noted": noted, "sglang_undrain_tasks": hook}, True)
    assert found.failed is failed
    said = "the next deployment or start" if hook else "set sglang_undrain_tasks and run this again, or see by hand"
    assert said in found.message and ("/r/drained.json" in found.message) is not bool(hook)


@pytest.mark.parametrize("cut_short", [True, False])
def test_a_change_that_serves_and_is_drained_is_put_back_by_a_deployment(cut_short: bool) -> None:
    """The same command would try the change against itself, and is refused."""
    out = {"sglang_verdict": SERVES, "sglang_undrain_tasks": "haproxy", "sglang_drain_state": "drained"}
    lost = {**out, recap.CUT_SHORT: cut_short}
    assert "the same command does it" in recap.fate("h", lost, alive=cut_short).message
    found = recap.fate("h", {**lost, "sglang_trial_base": {"name": "qwen"}}, alive=cut_short)
    assert (found.state, found.failed) == ("drained", True) and "same command" not in found.message
    assert found.message.startswith("It serves the change that was tried, and is out of the load balancer.")
    assert "llmfleet.sglang.deploy does it, and keeps the change if it was put into the inventory" in found.message


def fleet(*facts: dict[str, Any], **common: Any) -> dict[str, dict[str, Any]]:
    return {f"h{number}": {"sglang_deployment": {}, **common, **one} for number, one in enumerate(facts, 1)}


BAD = {"sglang_verdict": {"serves": False, "restored": True, "message": "Wrong answers.\nlog\nlog"}}


def test_a_rollout_goes_on_until_more_hosts_failed_than_may() -> None:
    variables = fleet(BAD, {"sglang_verdict": SERVES}, BAD)
    assert not recap.goes_on(list(variables), variables, list(variables))
    assert not recap.goes_on(["h1", "h2"], variables, list(variables))
    assert recap.goes_on(["h2"], variables, list(variables))
    variables = fleet(BAD, BAD, sglang_failures_allowed="2")
    assert recap.goes_on(list(variables), variables, list(variables))


def test_hosts_that_take_no_part_do_not_count() -> None:
    variables: dict[str, dict[str, Any]] = {**fleet({"sglang_verdict": SERVES}), "other": {}}
    assert recap.goes_on(list(variables), variables, ["h1"])
    assert recap.recap(list(variables), variables, ["h1"]) == "h1  new  Serves qwen at 10.0.0.1:30000."
    assert recap.recap(["other"], variables, []) == ""


def test_the_recap_has_a_line_a_host_and_the_failures_the_whole_of_it() -> None:
    variables = fleet(BAD, {"sglang_verdict": SERVES})
    assert recap.recap(list(variables), variables, list(variables)).splitlines() == [
        "h1  went back  Wrong answers.",
        "h2  new        Serves qwen at 10.0.0.1:30000.",
        "2 hosts: 1 went back, 1 new.",
    ]
    assert recap.failures(list(variables), variables, list(variables)) == ["h1: went back: Wrong answers.\nlog\nlog"]


def test_why_a_host_was_not_prepared_is_not_said_twice() -> None:
    variables = fleet({"sglang_prepared": {"done": False, "message": "No disk."}})
    [line] = recap.failures(["h1"], variables, ["h1"])
    assert line == "h1: not prepared, for the reason in the recap above. This run stopped nothing there."


@pytest.mark.parametrize("sizes", [[1, "10%", "100%"], [3], ["50%"], [1, 1, 1]])
def test_the_sizes_of_batches_survive_the_name_of_a_group(sizes: list[Any]) -> None:
    name = rollout_serial_group(sizes)
    assert name.isidentifier()  # other names make Ansible warn
    assert rollout_serial({"all": ["h"], name: ["h"], "sglang": ["h"]}) == sizes


def test_without_a_group_there_are_the_usual_batches() -> None:
    assert rollout_serial({"all": ["h"], "sglang": ["h"]}) == [1, "10%", "100%"]


@pytest.mark.parametrize("given", [1, "2", "30%"])
def test_one_size_is_a_list_of_one(given: Any) -> None:
    assert len(rollout_serial({rollout_serial_group(given): ["h"]})) == 1


@pytest.mark.parametrize("given", [0, "0", "ten", "-1", True, [], [1, None], "10 %", {"a": 1}])
def test_what_is_no_size_is_refused(given: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="sglang_serial"):
        rollout_serial_group(given)


def test_the_recap_says_how_long_nothing_served_and_where_the_report_is() -> None:
    steps = [("stop", 100.0), ("start", 105.0), ("ready", 142.0), ("answers", 144.0), ("verdict", 145.0)]
    times = {"run": "a", "first_run": "a", "steps": [{"step": step, "at": at} for step, at in steps]}
    noted = {"mine": True, "now": 200.0, "times": times}
    built = {"sglang_build_release": {"id": "0.5.23-a"}}
    variables = fleet(
        {"sglang_verdict": SERVES, "sglang_noted": noted, **built}, {**BAD, "sglang_noted": noted, **built}
    )
    lines = recap.recap(list(variables), variables, list(variables), "Report: /srv/x.html").split("\n")
    assert lines == [
        "h1  new        Serves qwen at 10.0.0.1:30000. Nothing served for 42 s.",
        "h2  went back  Wrong answers. Nothing served for 42 s.",
        "2 hosts: 1 new, 1 went back.",
        "New release: 0.5.23-a",
        "Report: /srv/x.html",
    ]
    # A message that goes on, as a verdict does with its arithmetic, is not cut in two.
    whole = recap.fate("h2", variables["h2"], True).message
    assert whole == "Wrong answers.\nlog\nlog\nNothing served for 42 s."
    # What an earlier run did is no news, and who asked for a stop knows that nothing serves.
    old = {**noted, "mine": False}
    assert "42 s" not in recap.fate("h1", {"sglang_verdict": SERVES, "sglang_noted": old}, True).message
    down = {**noted, "times": {**times, "steps": times["steps"][:1]}}
    stopped = {"asked": "stopped", "done": True, "changed": True, "message": "It is stopped."}
    assert recap.fate("h1", {"sglang_verdict": stopped, "sglang_noted": down}, True).message == "It is stopped."
    assert "Nothing serves for 100 s now." in recap.fate("h1", {**BAD, "sglang_noted": down}, True).message
