# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys, tokens and passwords are checked on every host before any is touched, and no message holds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.deployment import FilterModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import credentials
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Stage
from jinja2 import StrictUndefined

SECRET = "s3cretX"
NEWLINE = "ends in a newline, which does not belong to it"
UNSENT = "holds a blank, a line break or a character that is not ASCII"
credential_problems = FilterModule().filters()["credential_problems"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {name: SECRET for name in credentials.SENT},
        dict.fromkeys(credentials.NAMES, ""),
        dict.fromkeys(credentials.NAMES),
        {"sglang_index_url": f"https://ops:{SECRET}@index.example/simple/"},
        {"sglang_download_environment": {}},
        {"sglang_download_environment": {"https_proxy": f"http://ops:{SECRET}@proxy.example", "GIT_CONFIG_COUNT": 1}},
        {"sglang_download_environment": {"GIT_CONFIG_VALUE_0": "a\nb"}},
        {"sglang_other": f"{SECRET}\n"},
    ],
)
def test_what_is_sound(given: dict[str, Any]) -> None:
    assert credentials.problems(given) == []


@pytest.mark.parametrize("name", credentials.SENT)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (f"{SECRET}\n", NEWLINE),
        (f"{SECRET}\r\n", NEWLINE),
        (f"{SECRET} more", UNSENT),
        (f"{SECRET}\nmore", UNSENT),
        (f"{SECRET}\xe9", UNSENT),
        ([SECRET], "has to be text, not a list."),
        ({"key": SECRET}, "has to be text, not a map."),
        (True, "has to be text, not true or false."),
        (31415926, "has to be text, not a number: put it in quotes."),
        (3.1415926, "has to be text, not a number: put it in quotes."),
    ],
)
def test_a_key_that_no_client_can_send(name: str, value: Any, says: str) -> None:
    (problem,) = credentials.problems({name: value})
    assert problem.startswith(f"{name} {says}") and problem.endswith(".")
    assert SECRET not in problem and "1415926" not in problem


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (f"https://ops:{SECRET}@index.example\n", NEWLINE),
        (f"https://ops:{SECRET} @index.example", "is no URL: it holds a blank."),
        ([f"https://ops:{SECRET}@index.example"], "has to be text, not a list."),
    ],
)
def test_an_index(value: Any, says: str) -> None:
    (problem,) = credentials.problems({"sglang_index_url": value})
    assert problem.startswith(f"sglang_index_url {says}") and SECRET not in problem


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (f"http_proxy=http://ops:{SECRET}@proxy", "has to be a map of names to text, not text."),
        ([f"http://ops:{SECRET}@proxy"], "has to be a map of names to text, not a list."),
        ({f"http_proxy={SECRET}": "x"}, "holds a name that is none of an environment variable."),
        ({"http_proxy": [SECRET]}, "sets http_proxy to a list: give it as text, in quotes."),
        ({"http_proxy": {"url": SECRET}}, "sets http_proxy to a map: give it as text, in quotes."),
        ({"http_proxy": None}, "sets http_proxy to None: give it as text, in quotes."),
        ({"http_proxy": True}, "sets http_proxy to true or false: give it as text, in quotes."),
        ({"http_proxy": f"http://ops:{SECRET}@proxy\n"}, f"sets http_proxy to a value that {NEWLINE}"),
    ],
)
def test_an_environment_of_downloads(value: Any, says: str) -> None:
    (problem,) = credentials.problems({"sglang_download_environment": value})
    assert problem.startswith(f"sglang_download_environment {says}") and SECRET not in problem


def test_the_hosts_are_named_where_others_have_another_value() -> None:
    bad, good = {"sglang_api_key": f"{SECRET}\n"}, {"sglang_api_key": SECRET}
    (all_of_them,) = credential_problems(["a", "b"], {"a": bad, "b": bad})
    assert all_of_them.startswith("sglang_api_key ends")
    (second,) = credential_problems(["a", "b"], {"a": good, "b": bad})
    assert second.startswith("b: sglang_api_key ends")
    many = {name: bad for name in "bcdef"}
    (several,) = credential_problems(list("abcdef"), {"a": good, **many})
    assert several.startswith("b, c, d and 2 more: sglang_api_key ends")


def test_a_key_whose_template_lacks_a_variable_is_not_taken_for_none() -> None:
    hosts = {"a": {"sglang_api_key": StrictUndefined(name="vault_key")}, "b": {}}
    assert credential_problems(["a", "b"], hosts) == [
        "a: sglang_api_key cannot be worked out: 'vault_key' is undefined."
    ]


def test_a_bad_key_of_the_second_host_ends_a_run_before_any_host_is_touched(tmp_path: Path) -> None:
    run = Stage(tmp_path, HOSTS[:2]).deploy(
        {"h02": {"sglang_api_key": f"{SECRET}\n", "sglang_hub_token": [SECRET]}}, sglang_api_key="sound"
    )
    assert run.rc == 2 and run.came_to("preflight") == []
    assert f"h02: sglang_api_key {NEWLINE}" in " ".join(run.output.split())
    assert "h02: sglang_hub_token has to be text, not a list." in run.output
    assert SECRET not in run.output
