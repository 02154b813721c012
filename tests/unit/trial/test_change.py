# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be tried, and whether the host serves what the trial changes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter import trial as filters
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import running
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import change

from tests.unit.benchmark.case import FAST, TOPOLOGY, made
from tests.unit.deployment.example import PROFILE, resolved, variables

SIZE = {"arguments": {"chunked-prefill-size": 8192}}


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        ({}, "sglang_trial names no change"),
        (None, "sglang_trial names no change"),
        ("sm120_fusion", "sglang_trial names no change"),
        ({"arguments": {}, "patch_sets": []}, "sglang_trial names no change"),
        ({**SIZE, "argument": {}}, "sglang_trial has 'argument', and only"),
        ({"argument": {"chunked-prefill-size": 8192}}, "sglang_trial has 'argument', and only patch_sets, arguments,"),
        ({"patch_sets": "sm120_fusion"}, "has to be a list of names"),
        ({"arguments": ["a"]}, "has to be a map of names to values"),
        ({"arguments": {"port": 1}}, "sglang_trial, arguments, sets 'port', which is the collection's own"),
        ({"arguments": {"admin-api-key": "x"}}, "a secret that everybody on the host could read"),
        ({"environment": {"A B": "1"}}, "no name of an environment variable"),
    ],
)
def test_what_cannot_be_tried_is_said_in_a_sentence(trial: Any, words: str) -> None:
    [text] = change.problems(trial, ["node1"])
    assert words in text and text.endswith(".")


def test_a_trial_is_made_on_one_host() -> None:
    [text] = change.problems(SIZE, ["node1", "node2"])
    assert "on one host, and 2 are aimed at (node1, node2)" in text
    assert change.problems(SIZE, []) != []
    assert change.problems(SIZE, ["node1"]) == []


def changed(trial: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The deployment with a change."""
    found: dict[str, Any] = filters.trial_deployment(variables(**options), trial, PROFILE)
    return found


def test_the_change_comes_on_top_of_what_is_deployed() -> None:
    both = {"patch_sets": ["sm120_fusion"], **SIZE, "environment": {"NCCL_P2P_LEVEL": "PHB"}}
    base = resolved(environment={"MINE": "1"}, arguments={"tp-size": 4})
    one = changed(both, environment={"MINE": "1"}, arguments={"tp-size": 4})
    assert [each["name"] for each in one["patch_sets"]] == ["sm120", "sm120_fusion"]
    assert one["launch"]["arguments"] == {**base["launch"]["arguments"], "chunked-prefill-size": 8192}
    assert one["launch"]["environment"] == {**base["launch"]["environment"], "NCCL_P2P_LEVEL": "PHB"}
    same = {key: value for key, value in one.items() if key not in ("launch", "patch_sets")}
    assert same == {key: value for key, value in base.items() if key not in ("launch", "patch_sets")}


def test_another_variable_of_the_host_is_not_looked_at() -> None:
    class HostVars(dict[str, Any]):
        """As Ansible's: a template that fails does so when it is read."""

        def __getitem__(self, name: str) -> Any:
            if name == "other":
                raise AssertionError("its template was worked out")
            return super().__getitem__(name)

    found = filters.trial_deployment(HostVars(**variables(), other="{{ undefined }}"), SIZE, PROFILE)
    assert found["launch"]["arguments"]["chunked-prefill-size"] == 8192


def test_another_spelling_of_an_operators_argument_is_the_same_argument() -> None:
    one = changed({"arguments": {"tp-size": 4}}, arguments={"tensor_parallel_size": 8})
    assert one["launch"]["arguments"]["tp-size"] == 4


def test_null_takes_an_argument_out() -> None:
    assert "chunked-prefill-size" not in changed({"arguments": {"chunked-prefill-size": None}})["launch"]["arguments"]


@pytest.mark.parametrize("trial", [{"patch_sets": ["sm120"]}, {"arguments": {"chunked-prefill-size": 32768}}])
def test_a_change_that_is_there_already_is_none(trial: dict[str, Any]) -> None:
    with pytest.raises(AnsibleFilterError, match="sglang_trial changes nothing"):
        changed(trial)


def test_an_unknown_patch_set_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(AnsibleFilterError, match="names 'sm121', and there is no such patch set"):
        changed({"patch_sets": ["sm121"]})


def serving(deployment: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What the module benchmark_info says of a host that serves this."""
    argv = [word for group in launch_words(deployment["launch"]["arguments"]) for word in group]
    serves = {
        "state": "s1",
        "commit": deployment["build"]["commit"],
        "patch_sets": [one["name"] for one in deployment["patch_sets"]],
        "arguments": running.parse_arguments(argv),
        "environment": running.hidden({**deployment["launch"]["environment"], "MAX_JOBS": "4"}),
        **changes,
    }
    return {"serving": serves, "benchmarks": [], "topology": TOPOLOGY}


def test_a_host_that_serves_the_deployment_can_try_a_change() -> None:
    base = resolved(arguments={"json-model-override-args": '{"a": 1}', "seed": -1}, environment={"MY_TOKEN": "x"})
    assert filters.trial_hindrances(serving(base), base, base) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"commit": "0" * 40}, "commit 000000000000 serves"),
        ({"patch_sets": []}, "its patch sets are []"),
        ({"arguments": {}}, "--tp-size is not set, and the deployment's 8"),
        ({"environment": {}}, "NCCL_P2P_LEVEL is not set, and the deployment's SYS"),
    ],
)
def test_a_host_that_serves_something_else_is_told_to_deploy_first(changes: dict[str, Any], words: str) -> None:
    base = resolved()
    first, *rest = filters.trial_hindrances(serving(base, **changes), base, base)
    assert "deploy it first" in first
    assert any(words in line for line in rest), rest


def test_nothing_of_ours_no_shapes_or_another_size_is_a_hindrance() -> None:
    base = resolved()
    other = resolved(arguments={"tp-size": 4})
    assert "is inactive" in filters.trial_hindrances({"serving": {"problem": "x is inactive"}}, base, base)[0]
    bare = {**base, "benchmark": {"shapes": []}}
    assert "has no 'benchmark'" in filters.trial_hindrances(serving(bare), bare, bare)[0]
    assert "tensor parallel size 4" in filters.trial_hindrances(serving(base), base, other)[0]


def test_a_recorded_baseline_is_of_what_serves_with_the_same_shapes_and_cards() -> None:
    shape = {"input_tokens": 1024, "output_tokens": 512, "concurrency": 32, "requests": 128}
    base = resolved(benchmark_shapes=[shape])
    told = serving(base)
    kept = [
        made(*FAST, id="right", state="s1"),
        made(*FAST, id="lost", state="s1", verdict={"result": "no verdict"}),
        made(*FAST, id="state", state="s2"),
        made(*FAST, id="cards", state="s1", topology="no GPU"),
    ]
    told["benchmarks"] = [one.as_dict() for one in kept]
    assert filters.trial_baseline(told, base)["id"] == "right"
    assert filters.trial_hindrances(told, base, base, recorded=True) == []
    assert filters.trial_baseline(told, resolved()) == {}
    assert "leave sglang_trial_baseline out" in filters.trial_hindrances(serving(base), base, base, True)[0]
