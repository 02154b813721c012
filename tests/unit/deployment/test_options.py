# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator may set: types, bounds, required values, and one message for everything that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.options import OPTIONS

from tests.unit.deployment.example import COMMIT, PROFILE, problems, resolved

PIN = "ansible-playbook llmfleet.sglang.pin -i INVENTORY"


def test_the_example_has_no_problem() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("profile", "with -e sglang_profile=NAME. Known: glm_5_nvfp4, kimi_k2_5_int4, qwen"),
        ("commit", PIN),
        ("version", PIN),
        ("listen_host", "the address that clients reach this host by"),
    ],
)
@pytest.mark.parametrize("missing", [None, ""])
def test_a_required_option_is_named_with_the_way_to_get_it(name: str, how: str, missing: str | None) -> None:
    (problem,) = problems(**{name: missing})
    assert problem.startswith(f"sglang_{name} is not set: ")
    assert how in problem


def test_exactly_these_options_are_required() -> None:
    required = {name for name, option in OPTIONS.items() if option.required}
    assert required == {"profile", "commit", "version", "listen_host"}


# One value of a wrong type for each kind of option, and one message of the same form for each.
WRONG: dict[type, tuple[Any, str]] = {
    str: ({"a": 1}, "has to be text"),
    int: ("many", "has to be a whole number"),
    bool: ("perhaps", "has to be true or false"),
    list: ("sm120", "has to be a list"),
    dict: (["tp-size"], "has to be a map"),
}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_refuses_a_wrong_type(name: str) -> None:
    value, says = WRONG[OPTIONS[name].kind]
    assert [problem for problem in problems(**{name: value}) if f"sglang_{name} {says}" in problem]


@pytest.mark.parametrize("name", sorted(name for name, option in OPTIONS.items() if option.kind in (int, str)))
def test_true_is_neither_a_number_nor_a_text(name: str) -> None:
    assert [problem for problem in problems(**{name: True}) if f"sglang_{name} has to be" in problem]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("user", "root", "a user other than root"),
        ("build_user", "root", "a user other than root"),
        ("commit", "main", PIN),
        ("commit", COMMIT[:39], PIN),
        ("commit", COMMIT.upper(), PIN),
        ("checkpoint_revision", "main", PIN),
        ("version", "latest", "'latest' is no SGLang version such as 0.5.23"),
        ("port", 0, "from 1 to 65535, not 0"),
        ("port", 65536, "from 1 to 65535, not 65536"),
        ("port", -1, "from 1 to 65535, not -1"),
        ("ready_timeout", 0, "from 1 to"),
        ("stop_timeout", 0, "from 1 to"),
        ("keep_releases", 0, "from 1 to"),
        ("source_host", "a host", "the name of a host of the inventory"),
        ("root_free_bytes", -1, "from 0 to"),
        ("link_mode", "move", "hardlink, symlink, copy or clone"),
        ("root", "opt/sglang", "an absolute path"),
        ("root", "/", "an absolute path"),
        ("root", "/opt/../etc", "an absolute path"),
        ("models", "/my models", "an absolute path"),
        ("state", "/var/lib/%i", "an absolute path"),
        ("cache", "/var/cache/$USER", "an absolute path"),
        ("python", "python3", "the absolute path of an interpreter"),
        ("user", "sglang:0", "the name of a user"),
        ("repository", "sglang", "a URL that Git can clone"),
        ("hub_endpoint", "huggingface.co", "an http or https URL"),
        ("replaces", [["sglang-kimi"]], "a list of which each is text, not a list"),
        ("patch_sets", [{"name": "sm120"}], "a list of which each is text"),
        ("patch_sets", ["sm121"], "there is no such patch set. Known: sm120, sm120_fusion."),
        ("multimem_world_sizes", ["four"], "a list of which each is a whole number, not 'four'"),
        ("multimem_world_sizes", [1], "from 2 to 1024, not 1"),
        ("profile", "qwen4", "there is no such model profile. Known: "),
        ("adopt", "sglang-qwen", "has to be a list"),
        ("gpus", {"count": "eight"}, "'count' to 'eight', which has to be a whole number"),
        ("gpus", {"compute_capability": 12.0}, "which has to be text, such as '12.0'"),
        ("gpus", {"counts": 8}, "'counts', and only count, compute_capability, memory_mib are known"),
        ("environment", {"NCCL P2P": "1"}, "'NCCL …', which is no name of an environment variable"),
        ("environment", {"NCCL_DEBUG": True}, "sets NCCL_DEBUG to True: give it as text, in quotes"),
        ("build_environment", {"FLAGS": ["-O2"]}, "sets FLAGS to a list: give it as text, in quotes"),
    ],
)
def test_a_value_that_is_not_allowed_gets_one_sentence(name: str, value: Any, says: str) -> None:
    (problem,) = problems(**{name: value})
    assert f"sglang_{name}" in problem
    assert says in problem
    assert problem.endswith(".")
    assert "\n" not in problem


def test_every_problem_is_reported_at_once() -> None:
    found = problems(
        commit="", port="high", profile="qwen4", patch_sets=["sm121"], version="newest", arguments={"host": "0.0.0.0"}
    )
    for name in ("commit", "port", "profile", "patch_sets", "version", "arguments"):
        assert [problem for problem in found if f"sglang_{name}" in problem], name
    assert len(found) == 6


@pytest.mark.parametrize(
    ("name", "given", "means"),
    [
        ("port", "30001", 30001),
        ("offline", "yes", True),
        ("offline", "False", False),
        ("patch_sets", [], []),
        ("multimem_world_sizes", ["4", 8], [4, 8]),
        ("repository", "git@github.com:sgl-project/sglang.git", "git@github.com:sgl-project/sglang.git"),
        ("repository", "ssh://git@git.example/sglang.git", "ssh://git@git.example/sglang.git"),
        ("repository", "/srv/git/sglang.git", "/srv/git/sglang.git"),
        ("version", "v0.5.23-14-g1a2b3c4", "v0.5.23-14-g1a2b3c4"),
    ],
)
def test_what_a_command_line_hands_over_is_taken_as_meant(name: str, given: Any, means: Any) -> None:
    found = resolved(**{name: given})
    places = {
        "port": lambda: found["listen"]["port"],
        "offline": lambda: found["build"]["offline"],
        "patch_sets": lambda: found["patch_sets"],
        "multimem_world_sizes": lambda: json.loads(found["patch_sets"][0]["edits"][1]["dict_entry"]["value"]),
        "repository": lambda: found["build"]["repository"],
        "version": lambda: found["build"]["version"],
    }
    assert places[name]() == means


def test_what_a_host_has_goes_over_what_the_profile_expects() -> None:
    assert resolved(gpus={"count": 4})["gpus"] == {"count": 4, "compute_capability": "12.0", "memory_mib": 97887}


def test_two_deployments_share_no_list() -> None:
    first = resolved()
    first["replaces"].append("other")
    first["launch"]["arguments"]["x"] = 1
    assert resolved()["replaces"] == []
    assert "x" not in resolved()["launch"]["arguments"]


SECRET = "s3cret-of-the-test"


def test_no_secret_is_in_the_deployment() -> None:
    found = resolved(
        api_key=SECRET,
        hub_token=SECRET,
        index_url=f"https://user:{SECRET}@packages.example/simple/",
        download_environment={"HTTPS_PROXY": f"http://user:{SECRET}@proxy.example:3128"},
    )
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize(
    ("name", "login"),
    [
        ("repository", f"https://user:{SECRET}"),
        ("repository", f"https://{SECRET}"),
        ("repository", f"ssh://git:{SECRET}"),
        ("hub_endpoint", f"https://user:{SECRET}"),
        ("hub_endpoint", f"https://{SECRET}"),
    ],
)
def test_a_url_with_a_secret_is_refused_without_telling_it(name: str, login: str) -> None:
    (problem,) = problems(**{name: f"{login}@mirror.example/sglang.git"})
    assert f"sglang_{name} holds a password or token" in problem
    assert SECRET not in problem


@pytest.mark.parametrize(
    ("url", "told"),
    [(f"https://ops:{SECRET}@[mirror.example/sglang.git", True), ("https://[mirror.example/x.git", False)],
)
def test_a_url_that_cannot_be_read_may_hold_a_secret_where_it_has_an_at(url: str, told: bool) -> None:
    found = problems(repository=url)
    assert [one for one in found if "holds a password or token" in one] == found
    assert bool(found) == told and SECRET not in "".join(found)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("arguments", f"--api-key {SECRET}", "has to be a map, not text."),
        ("arguments", SECRET, "has to be a map, not text."),
        ("arguments", [f"api-key={SECRET}"], "has to be a map, not a list."),
        ("arguments", {f"--api-key {SECRET}": True}, "sets '--api-key …', which is no name of a launch argument."),
        ("arguments", {f"api-key={SECRET}": True}, "sets 'api-key …', which is no name of a launch argument."),
        ("arguments", {f"api-key:{SECRET}": True}, "sets 'api-key …', which is no name of a launch argument."),
        ("arguments", {"context-length": f"api-key={SECRET}"}, ""),
        ("environment", f"HF_TOKEN={SECRET}", "has to be a map, not text."),
        ("environment", [f"HF_TOKEN={SECRET}"], "has to be a map, not a list."),
        ("environment", {"HF_TOKEN": [SECRET]}, "sets HF_TOKEN to a list: give it as text, in quotes."),
        ("environment", {f"HF TOKEN={SECRET}": "1"}, "sets 'HF …', which is no name of an environment variable."),
        ("environment", {f"HF_TOKEN={SECRET}": "1"}, "sets 'HF_TOKEN …', which is no name"),
        (
            "repository",
            f"oauth2:{SECRET}@git.example:x.git",
            "holds an @ and is not allowed: it has to be a URL that Git",
        ),
        ("repository", [f"https://oauth2:{SECRET}@git.example/x.git"], "has to be text, not a list."),
        ("hub_endpoint", {"url": f"https://u:{SECRET}@mirror.example"}, "has to be text, not a map."),
        ("hub_endpoint", f"u:{SECRET}@mirror.example", "holds an @ and is not allowed: it has to be an http"),
        ("replaces", [{"token": SECRET}], "a list of which each is text, not a map."),
        ("patch_sets", f"--api-key {SECRET}", "has to be a list, not text."),
        ("port", f"--api-key {SECRET}", "has to be a whole number, not '--api-key ***'."),
        ("checkpoint_revisions", {PROFILE: [SECRET]}, f"gives '{PROFILE}' a list, which is no 40 hex digits"),
    ],
)
def test_a_value_that_may_hold_a_secret_is_not_told(name: str, value: Any, says: str) -> None:
    found = problems(**{name: value, **({"checkpoint_revision": None} if name == "checkpoint_revisions" else {})})
    assert SECRET not in "".join(found)
    assert [one for one in found if f"sglang_{name}" in one and says in one] == found
    assert len(found) == (1 if says else 0)


@pytest.mark.parametrize("flag", ["admin-api-key", "--api-key", "ssl_keyfile_password"])
def test_a_secret_is_kept_out_of_argv_without_telling_it(flag: str) -> None:
    (problem,) = problems(arguments={flag: SECRET})
    assert "sglang_arguments" in problem
    assert SECRET not in problem
