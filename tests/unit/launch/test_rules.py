# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a rule is read, held against a deployment, and told."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter import launch
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import rules

from tests.unit.deployment.example import resolved

DEPLOYMENT: dict[str, Any] = {
    "build": {"version": "0.5.23"},
    "gpus": {"compute_capability": "12.0"},
    "checkpoint": {"repository": "nvidia/Qwen3.5-397B-A17B-NVFP4"},
    "patch_sets": [{"name": "sm120", "edits": []}],
    "launch": {
        "arguments": {"tp-size": 8, "mem-fraction-static": 0.85, "sleep-on-idle": True, "attention-backend": "triton"},
        "environment": {"NCCL_P2P_LEVEL": "SYS"},
    },
}


def rule(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "severity": "refuse",
        "when": {"capability": "12"},
        "message": "It fails.",
        "advice": "Change it.",
        "source": "here",
        **changes,
    }


def found(*rows: dict[str, Any], **more: Any) -> list[rules.Finding]:
    applies = more.pop("applies", {})
    return rules.findings(DEPLOYMENT, [{"name": "x", "applies": applies, "rules": list(rows)}], **more)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"arguments": {"tp-size": 8}}, True),
        ({"arguments": {"tp": "8"}}, True),  # another spelling of the flag, and of the number
        ({"arguments": {"tp-size": [4, 8]}}, True),
        ({"arguments": {"tp-size": 80}}, False),
        ({"arguments": {"sleep-on-idle": True}}, True),
        ({"arguments": {"sleep-on-idle": "true"}}, True),
        ({"arguments": {"gone": True}}, False),
        ({"arguments": {"gone": {"set": False}}}, True),
        ({"arguments": {"tp-size": {"set": False}}}, False),
        ({"arguments": {"gone": {"auto": True}}}, True),
        ({"arguments": {"attention-backend": {"auto": True}}}, False),
        ({"arguments": {"attention-backend": {"auto": False}}}, True),
        ({"arguments": {"gone": {"not": "x"}}}, True),
        ({"arguments": {"gone": {"set": True, "not": "x"}}}, False),
        ({"arguments": {"attention-backend": {"not": ["triton", "flashinfer"]}}}, False),
        ({"arguments": {"tp-size": {"above": 7, "below": 9}}}, True),
        ({"arguments": {"tp-size": {"above": 8}}}, False),
        ({"arguments": {"gone": {"below": 8}}}, False),
        ({"arguments": {"sleep-on-idle": {"above": 0}}}, False),  # true is no number
        ({"arguments": {"attention-backend": {"above": 0}}}, False),
        ({"arguments": {"attention-backend": {"matches": "^TRI"}}}, True),
        ({"arguments": {"gone": {"matches": ""}}}, False),
        ({"environment": {"NCCL_P2P_LEVEL": "sys"}}, True),
        ({"environment": {"tp-size": 8}}, False),
        ({"patch_sets": {"has": "sm120"}}, True),
        ({"patch_sets": {"lacks": "sm120"}}, False),
        ({"patch_sets": {"lacks": "sm120_fusion"}}, True),
        ({"capability": "12"}, True),
        ({"capability": "12.0"}, True),
        ({"capability": "1"}, False),
        ({"repository": "qwen3\\.5"}, True),
        ({"facts": {"a/b": 1}}, True),
        ({"facts": {"a/c": {"set": True}}}, False),
        ({"facts": {"a/b/c": {"set": True}}}, False),
        ({"any": [{"capability": "9"}, {"capability": "12"}]}, True),
        ({"any": []}, False),
        ({"unless": {"capability": "12"}}, False),
        ({"capability": "12", "arguments": {"tp-size": 4}}, False),
    ],
    ids=str,
)
def test_a_condition_holds(condition: dict[str, Any], holds: bool) -> None:
    assert rules.holds(condition, rules.Case(DEPLOYMENT, {"a": {"b": 1}})) is holds


@pytest.mark.parametrize(("versions", "there"), [("", True), (">=0.5.23", True), ("<0.5.23", False)])
def test_a_rule_holds_for_its_versions(versions: str, there: bool) -> None:
    assert bool(found(rule(versions=versions))) is there


def test_what_applies_is_shared_by_all_rules() -> None:
    assert found(rule(), applies={"capability": "9"}) == []


def test_a_finding_says_what_made_it_hold_and_where_it_is_from() -> None:
    when = {
        "any": [
            {"arguments": {"tp-size": 8, "sleep-on-idle": True, "gone": {"set": False}}},
            {"arguments": {"attention-backend": "fa3"}},
        ],
        "environment": {"NCCL_P2P_LEVEL": "SYS"},
    }
    (finding,) = found(rule(when=when, message="It\n  fails."))
    assert finding.evidence == ["NCCL_P2P_LEVEL=SYS", "--tp-size 8", "--sleep-on-idle"]
    assert finding.text == ("[a] It fails. (NCCL_P2P_LEVEL=SYS, --tp-size 8, --sleep-on-idle) Change it. Source: here.")


def test_what_refuses_comes_first() -> None:
    rows = [rule(id="b", severity="warn"), rule(id="c"), rule(id="d", severity="warn")]
    assert [one.id for one in found(*rows)] == ["c", "b", "d"]


def test_an_accepted_rule_stays_and_says_so() -> None:
    assert [one.accepted for one in found(rule(), rule(id="b"), accepted=["b"])] == [False, True]


def test_accepting_a_rule_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no rule named x; there are: a"):
        found(rule(), accepted=["x"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"source": None}, "has no text 'source'"),
        ({"severity": "bad"}, "a severity that is none of refuse, warn"),
        ({"id": "b", "colour": "red"}, "'colour', which is nothing of a rule"),
        ({"versions": "0.5.1"}, "a range that cannot be read"),
        ({"when": {}}, "no condition, and would always hold"),
        ({"when": {"tp": 8}}, "the unknown condition 'tp'"),
        ({"when": {"any": [{"unless": {"tp": 8}}]}}, "the unknown condition 'tp'"),
        ({"when": {"arguments": {"tp": {"over": 8}}}}, "the unknown test 'over'"),
        ({"when": {"arguments": {"tp": {"not": {"over": 8}}}}}, "the unknown test 'over'"),
        ({"when": {"arguments": {"tp": {"matches": "("}}}}, "the pattern '(', which cannot be read"),
        ({"when": {"repository": "("}}, "the pattern '(', which cannot be read"),
        ({"when": {"patch_sets": {"is": "x"}}}, "something other than 'has' or 'lacks'"),
        ({"when": "x"}, "a condition that is no map"),
    ],
    ids=lambda one: str(one)[:50],
)
def test_a_rule_that_cannot_be_read_is_named(changes: dict[str, Any], says: str) -> None:
    (problem,) = rules.problems({"name": "x", "rules": [rule(**changes)]})
    assert problem.startswith("The rule set 'x', rule '")
    assert says in problem
    with pytest.raises(ValueError, match="The rule set 'x'"):
        found(rule(**changes))


def test_a_rule_set_needs_rules_and_each_once() -> None:
    assert rules.problems({"name": "x"}) == ["The rule set 'x' has no list 'rules' of maps."]
    assert rules.problems({"name": "x", "rules": [rule(), rule()]}) == ["The rule set 'x', rule 'a', is there twice."]


def test_the_filter_reads_the_shipped_rules() -> None:
    (finding,) = launch.launch_findings(resolved(arguments={"mem-fraction-static": 0.95}))
    assert (finding["id"], finding["severity"], finding["accepted"]) == ("memory_fraction", "warn", False)
    accepted = launch.launch_findings(resolved(arguments={"mem-fraction-static": 0.95}), ["memory_fraction"])
    assert accepted[0]["accepted"] is True


def test_the_filter_names_a_rule_that_there_is_not() -> None:
    with pytest.raises(AnsibleFilterError, match="there is no rule named x"):
        launch.launch_findings(resolved(), ["x"])
