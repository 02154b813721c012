# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters: profiles of an operator's own, what cannot be read, and which variables are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.deployment import FilterModule
from jinja2 import StrictUndefined

from tests.unit.deployment.example import PROFILE, PROFILES, variables

FILTERS = FilterModule().filters()
deployment, deployment_problems = FILTERS["deployment"], FILTERS["deployment_problems"]
fleet_problems = FILTERS["fleet_problems"]
profile_repository = FILTERS["profile_repository"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a profile of an operator's own, and one that goes before the shipped one of its name."""
    other = {**PROFILES[PROFILE], "name": "own_model", "instance": "own", "model": "Own"}
    (tmp_path / "own.yml").write_text(yaml.safe_dump(other))
    (tmp_path / "better.yml").write_text(yaml.safe_dump({**PROFILES[PROFILE], "served_model_name": "better"}))
    return tmp_path


def test_the_profile_is_named_in_the_variables_or_by_the_playbook() -> None:
    assert deployment(variables())["profile"] == PROFILE
    assert deployment(variables(profile=None), PROFILE)["profile"] == PROFILE
    assert deployment(variables(profile="qwen4"), PROFILE)["profile"] == PROFILE


def test_a_profile_of_an_operators_own_needs_no_code(own: Path) -> None:
    found = deployment(variables(profile="own_model"), profiles=[str(own)])
    assert (found["service"], found["model"]) == ("sglang-own", "Own")
    assert deployment(variables(), profiles=[str(own)])["served_model_name"] == "better"
    assert profile_repository("own_model", [str(own)]) == "nvidia/Qwen3.5-397B-A17B-NVFP4"


def test_the_two_filters_say_the_same(own: Path) -> None:
    wrong = variables(port="high", commit=None)
    problems = deployment_problems(wrong, profiles=[str(own)])
    assert len(problems) == 2
    with pytest.raises(AnsibleFilterError) as caught:
        deployment(wrong, profiles=[str(own)])
    assert str(caught.value) == "\n".join(problems)
    assert deployment_problems(variables(), profiles=[str(own)]) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [", "cannot be read"),
        ("- a list", "is no map with a 'name'"),
        ("", "is no map with a 'name'"),
        ("model: x", "is no map with a 'name'"),
        ("name: 5", "is no map with a 'name'"),
    ],
)
def test_a_profile_that_cannot_be_read_is_named_by_its_file(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "broken.yml"
    path.write_text(text)
    (problem,) = deployment_problems(variables(), profiles=[str(tmp_path)])
    assert str(path) in problem
    assert says in problem
    with pytest.raises(AnsibleFilterError, match=r"broken\.yml"):
        profile_repository(PROFILE, [str(tmp_path)])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    (problem,) = deployment_problems(variables(), profiles=[str(tmp_path / "nowhere")])
    assert f"{tmp_path}/nowhere" in problem


def test_an_unknown_profile_has_no_repository() -> None:
    with pytest.raises(AnsibleFilterError, match=f"no model profile 'qwen4'. Known: .*{PROFILE}"):
        profile_repository("qwen4")


class Watched(Mapping[str, Any]):
    """Variables that remember which of them were looked at; looking at one may decrypt it, or fail."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_ = values
        self.seen: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return self.values_[key]

    def __contains__(self, key: object) -> bool:
        return key in self.values_

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def test_no_secret_and_no_variable_of_others_is_looked_at() -> None:
    secrets = {"sglang_api_key": "x", "sglang_hub_token": "x", "sglang_index_url": "x", "sglang_verdict": "x"}
    watched = Watched({**variables(), **secrets, "ansible_password": "x"})
    deployment(watched)
    assert watched.seen == set(variables())


def test_a_problem_of_some_hosts_names_them_and_one_of_all_stands_alone() -> None:
    hostvars = {name: variables(commit="main") for name in ("a", "b", "c")}
    for host in "bc":
        hostvars[host]["sglang_port"] = 0
    common, some = fleet_problems(list(hostvars), hostvars)
    assert common.startswith("sglang_commit is 'main'")
    assert some.startswith("b, c: sglang_port has to be")


def test_each_host_may_have_a_profile_of_its_own_and_a_play_one_for_all() -> None:
    own = {"a": variables(), "b": variables(profile="nope")}
    [problem] = fleet_problems(["a", "b"], own, PROFILE)
    assert problem.startswith("b: sglang_profile is 'nope'")
    for host in own.values():
        del host["sglang_profile"]
    assert fleet_problems(["a", "b"], own, PROFILE) == []


def test_a_value_whose_template_lacks_a_variable_is_named_beside_what_else_is_wrong() -> None:
    wrong = variables(commit=None, listen_host=StrictUndefined(name="ansible_host"), port=StrictUndefined(name="p"))
    assert [problem.partition(":")[0] for problem in deployment_problems(wrong)] == [
        "sglang_listen_host cannot be worked out",
        "sglang_port cannot be worked out",
        "sglang_commit is not set",
    ]
    assert "'ansible_host' is undefined." in deployment_problems(wrong)[0]
    (problem,) = deployment_problems(variables(port=StrictUndefined(name="p")))
    assert problem == "sglang_port cannot be worked out: 'p' is undefined."
