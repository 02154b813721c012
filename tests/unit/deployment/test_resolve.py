# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and a model profile become one deployment."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.resolve import DeploymentError, resolve

from tests.unit.deployment.example import (
    COMMIT,
    PATCH_SETS,
    PROFILE,
    PROFILES,
    REVISION,
    ROOT,
    arguments,
    problems,
    resolved,
    variables,
)


def test_the_parts_of_a_deployment() -> None:
    found = resolved(replaces=["sglang-kimi.service", "sglang-kimi"], root="/srv/sglang/", models="/srv/models/")
    expected = {
        "name": "qwen",
        "service": "sglang-qwen",
        "profile": PROFILE,
        "model": "Qwen3.5-397B-A17B-NVFP4",
        "served_model_name": "qwen3.5-397b-a17b",
        "replaces": ["sglang-kimi"],
        "adopt": False,
        "users": {"service": "sglang", "build": "sglang-build"},
        "paths": {
            "root": "/srv/sglang",
            "models": "/srv/models",
            "state": "/var/lib/llmfleet",
            "cache": "/var/cache/llmfleet",
        },
        "listen": {"host": "192.0.2.11", "port": 30000},
        "gpus": {"count": 8, "compute_capability": "12.0", "memory_mib": 97887},
        "disk": {"root_bytes": 30_000_000_000, "models_bytes": 223_000_000_000},
        "checkpoint": {
            "repository": "nvidia/Qwen3.5-397B-A17B-NVFP4",
            "revision": REVISION,
            "endpoint": "https://huggingface.co",
            "bytes": 223_000_000_000,
            "path": f"/srv/models/{PROFILE}",
            "expects": PROFILES[PROFILE]["checkpoint"]["expects"],
            "driver": "rsync",
            "port": 8730,
            "transfers": 1,
            "bytes_per_second": 0,
            "serve_seconds": 14400,
            "keep": 0,
            "verify": "stamp",
            "io_class": "best-effort",
        },
        "stop": {"timeout_seconds": 300, "drain_seconds": 30, "kill_leftovers": False},
    }
    assert {key: found[key] for key in expected} == expected
    assert set(found) - set(expected) == {"build", "patch_sets", "launch", "verify", "benchmark"}
    assert (found["build"]["commit"], found["build"]["version"]) == (COMMIT, "0.5.23")
    # Not the link, which the next deployment moves before it has proven anything.
    weights = f"/srv/models/.checkpoints/nvidia--Qwen3.5-397B-A17B-NVFP4/{REVISION}"
    assert found["launch"]["arguments"]["model-path"] == weights
    assert [prompt["expect"] for prompt in found["verify"]["prompts"]] == ["Paris", "Tokyo", "Shakespeare"]
    assert found["verify"]["tool_call"]["name"] == "get_weather"


# --- the checkpoint's pin ---


def test_a_profile_has_a_pin_of_its_own() -> None:
    pins = {"checkpoint_revision": None, "checkpoint_revisions": {PROFILE: COMMIT, "other": "main"}}
    assert resolved(**pins)["checkpoint"]["revision"] == COMMIT


def test_one_pin_for_all_goes_before_the_profiles_own() -> None:
    found = resolved(checkpoint_revision=REVISION, checkpoint_revisions={PROFILE: COMMIT})
    assert found["checkpoint"]["revision"] == REVISION


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        ({}, f"has no entry '{PROFILE}'"),
        ({"other": COMMIT}, f"has no entry '{PROFILE}'"),
        ({PROFILE: ""}, f"has no entry '{PROFILE}'"),
        ({PROFILE: "main"}, f"gives '{PROFILE}' 'main', which is no 40 hex digits"),
        ({PROFILE: [COMMIT]}, f"gives '{PROFILE}' a list, which is no 40 hex digits"),
    ],
)
def test_a_pin_that_is_missing_comes_with_the_command_that_writes_it(pins: dict[str, object], says: str) -> None:
    (problem,) = problems(checkpoint_revision=None, checkpoint_revisions=pins)
    assert problem.startswith(f"sglang_checkpoint_revisions {says}: run `ansible-playbook llmfleet.sglang.pin")
    assert f"-e sglang_profile={PROFILE} -e sglang_pin=checkpoint`" in problem


def test_pins_that_are_all_missing_come_with_one_command_that_writes_them() -> None:
    found = problems(commit=None, version=None, checkpoint_revision=None, checkpoint_revisions={})
    assert len(found) == 3
    assert {command for one in found for command in re.findall("`(.*?)`", one)} == {
        f"ansible-playbook llmfleet.sglang.pin -i INVENTORY -e sglang_profile={PROFILE}"
    }


def test_no_tool_call_is_asked_of_an_engine_without_a_parser() -> None:
    assert resolved(arguments={"tool-call-parser": None})["verify"]["tool_call"] is None


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 600 + 1115),  # 223 GB at 200 MB/s, after ten minutes for kernels that are compiled
        ({"disk_bytes_per_second": 2_000_000_000}, 600 + 111),
        ({"checkpoint_bytes": 1_000_000}, 600),
        ({"ready_timeout": 300}, 300),
    ],
)
def test_a_start_may_take_as_long_as_reading_the_checkpoint_does(changes: dict[str, int], seconds: int) -> None:
    assert resolved(**changes)["verify"]["timeout_seconds"] == seconds


def test_a_service_is_never_in_its_own_way() -> None:
    """An inventory lists every service on these GPUs, and each profile's is one of them."""
    found = resolved(replaces=["sglang-qwen.service", "sglang-kimi", "sglang-qwen"])
    assert found["replaces"] == ["sglang-kimi"]


@pytest.mark.parametrize(
    ("given", "adopted"),
    [([], False), (["sglang-kimi"], False), (["sglang-qwen"], True), (["sglang-qwen.service"], True)],
)
def test_a_foreign_unit_is_adopted_only_by_its_name(given: list[str], adopted: bool) -> None:
    assert resolved(adopt=given)["adopt"] is adopted


def test_resolving_changes_neither_profiles_nor_patch_sets() -> None:
    before = copy.deepcopy((PROFILES, PATCH_SETS))
    resolved(arguments={"tp-size": 4}, multimem_world_sizes=[4], environment={"NCCL_P2P_LEVEL": None})
    assert before == (PROFILES, PATCH_SETS)


def test_a_deployment_is_data_that_json_holds() -> None:
    found = resolved()
    assert json.loads(json.dumps(found)) == found


# --- launch arguments ---


@pytest.mark.parametrize(
    ("given", "flag", "value"),
    [
        ({"tp-size": 4}, "tp-size", 4),
        ({"tensor-parallel-size": 4}, "tp-size", 4),
        ({"--tp": 4}, "tp-size", 4),
        ({"tensor_parallel_size": 4}, "tp-size", 4),
        ({"--mem-fraction-static": 0.8}, "mem-fraction-static", 0.8),
        ({"mem_fraction_static": 0.8}, "mem-fraction-static", 0.8),
        ({"expert-parallel-size": 2}, "ep-size", 2),
        ({"log-level": "debug"}, "log-level", "debug"),
        ({"sleep-on-idle": True}, "sleep-on-idle", True),
    ],
)
def test_an_operators_argument_goes_over_the_profiles_however_it_is_spelled(
    given: dict[str, Any], flag: str, value: Any
) -> None:
    found = arguments(arguments=given)
    assert found[flag] == value
    assert set(found) == set(arguments()) | {flag}


@pytest.mark.parametrize("nothing", [None, False])
def test_null_and_false_take_an_argument_out(nothing: bool | None) -> None:
    assert set(arguments()) - set(arguments(arguments={"page-size": nothing, "sleep-on-idle": nothing})) == {
        "page-size",
        "sleep-on-idle",
    }


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("host", "sglang_listen_host"),
        ("--port", "sglang_port"),
        ("model-path", "sglang_checkpoint_revisions"),
        ("model", "sglang_checkpoint_revisions"),
        ("served_model_name", "sglang_served_model_name"),
        ("api-key", "sglang_api_key"),
        ("config", "sglang_arguments"),
    ],
)
def test_a_flag_of_the_collections_own_is_refused_with_its_variable(flag: str, instead: str) -> None:
    (problem,) = problems(arguments={flag: "x"})
    assert flag in problem
    assert problem.endswith(f"use {instead}.")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tp-size": 8, "tp": 4}, "'tp-size' and 'tp', which are one flag"),
        ({"page-size": 1, "--page_size": 64}, "'page-size' and '--page_size', which are one flag"),
        ({"page size": 1}, "'page …', which is no name of a launch argument"),
        ({"page-size=1": True}, "'page-size …', which is no name"),
        ({"": 1}, "'', which is no name"),
        ({5: 1, "-": 2}, "'-', which is no name"),
    ],
)
def test_arguments_that_argparse_would_take_in_another_way_are_refused(given: dict[Any, Any], says: str) -> None:
    (problem,) = problems(arguments=given)
    assert "sglang_arguments sets" in problem
    assert says in problem


# By hand from facts about each version: which attention backend the hybrid model accepts, which FP4 GEMM is free of the
# race, and how the flag for the CUDA graphs is spelled. "-" means that the flag must not be there at all.
BY_VERSION = [
    # version, attention-backend, fp4-gemm-backend, cuda-graph-max-bs, cuda-graph-max-bs-decode
    ("0.5.9", "triton", "flashinfer_cudnn", 32, "-"),
    ("0.5.10.post1", "triton", "flashinfer_cudnn", 32, "-"),
    ("0.5.13", "triton", "flashinfer_cutlass", 32, "-"),
    ("0.5.15.post1", "triton", "flashinfer_cutlass", 32, "-"),
    ("0.5.16", "flashinfer", "flashinfer_cutlass", 32, "-"),
    ("0.5.19", "flashinfer", "flashinfer_cutlass", 32, "-"),
    ("0.5.20", "flashinfer", "flashinfer_cutlass", "-", 32),
    ("0.5.23", "flashinfer", "flashinfer_cutlass", "-", 32),
    ("0.5.23-120-g1a2b3c4", "flashinfer", "flashinfer_cutlass", "-", 32),
]


@pytest.mark.parametrize(("version", "attention", "gemm", "graphs", "decode_graphs"), BY_VERSION)
def test_what_differs_by_version(
    version: str, attention: str, gemm: str, graphs: int | str, decode_graphs: int | str
) -> None:
    found = arguments(version=version)
    assert found["attention-backend"] == attention
    assert found["fp4-gemm-backend"] == gemm
    assert found.get("cuda-graph-max-bs", "-") == graphs
    assert found.get("cuda-graph-max-bs-decode", "-") == decode_graphs


@pytest.mark.parametrize("version", [row[0] for row in BY_VERSION])
def test_nothing_is_left_to_auto_where_auto_has_chosen_wrongly(version: str) -> None:
    found = arguments(version=version)
    for flag in ("attention-backend", "moe-runner-backend", "fp4-gemm-backend", "kv-cache-dtype", "quantization"):
        assert found[flag] not in ("auto", "", None, True), flag


def test_every_row_of_every_profile_says_where_it_is_from() -> None:
    for profile in PROFILES.values():
        for row in [*profile["arguments"], *profile["environment"]]:
            assert row.get("source"), f"{profile['name']}: {row}"


FLAGS: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "tests/unit/deployment/fixtures/flags_0.5.23.json").read_text("utf-8")
)["flags"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_engine_takes_every_argument_of_a_profile(profile: str) -> None:
    """Judged by the recorded --help of 0.5.23."""
    for flag, value in arguments(profile=profile, version="0.5.23", checkpoint_bytes=1).items():
        assert flag in FLAGS, f"look --{flag} up in the --help of 0.5.23 and record it in fixtures/flags_0.5.23.json"
        takes = FLAGS[flag]["takes"]
        if takes == "nothing":
            assert value is True, flag
        elif takes == "choice":
            assert value in FLAGS[flag]["choices"], flag
        else:
            assert value is not True, flag


# --- environment ---


def test_an_operators_environment_goes_over_the_profiles_and_null_takes_out() -> None:
    found = resolved(environment={"NCCL_P2P_LEVEL": "PHB", "OMP_NUM_THREADS": None, "NCCL_MIN_NCHANNELS": 4})
    environment = found["launch"]["environment"]
    assert environment["NCCL_P2P_LEVEL"] == "PHB"
    assert environment["NCCL_MIN_NCHANNELS"] == "4"  # a process gets texts
    assert "OMP_NUM_THREADS" not in environment


@pytest.mark.parametrize(("version", "there"), [("0.5.16", True), ("0.5.17", False)])
def test_a_variable_that_later_versions_do_not_need(version: str, there: bool) -> None:
    environment = resolved(version=version)["launch"]["environment"]
    assert ("SGLANG_ENABLE_JIT_DEEPGEMM" in environment) is there


def test_the_builds_environment_is_text() -> None:
    assert resolved(build_environment={"MAX_JOBS": 4, "GONE": None})["build"]["environment"] == {"MAX_JOBS": "4"}


# --- patch sets ---


def edits(**changes: Any) -> dict[str, Any]:
    """Return the dict entries of the resolved patch sets by edit."""
    return {
        edit["id"]: edit.get("dict_entry", {}).get("value")
        for one in resolved(**changes)["patch_sets"]
        for edit in one["edits"]
    }


def test_both_tables_are_patched_unless_told_otherwise() -> None:
    assert [one["name"] for one in resolved()["patch_sets"]] == ["sm120"]
    assert edits() == {
        "symm_mem_max_sizes": "{2: 64 * MiB, 4: 64 * MiB, 6: 128 * MiB, 8: 128 * MiB}",
        "multimem_world_sizes": "[]",
    }


@pytest.mark.parametrize(("given", "written"), [([], "[]"), ([4, 6, 8], "[4, 6, 8]"), (["4"], "[4]")])
def test_the_world_sizes_for_multimem_are_the_operators(given: list[Any], written: str) -> None:
    assert edits(multimem_world_sizes=given)["multimem_world_sizes"] == written


def test_the_fusion_gate_is_patched_only_when_asked_for() -> None:
    assert "fusion_gate" not in edits()
    assert "fusion_gate" in edits(patch_sets=["sm120", "sm120_fusion"])
    assert edits(patch_sets=[]) == {}


# --- a profile of an operator's own ---


def own(**changes: Any) -> list[str]:
    """Resolve with a changed copy of the shipped profile and return what is wrong with it."""
    profile = {**copy.deepcopy(PROFILES[PROFILE]), **changes}
    try:
        resolve(variables(), {PROFILE: profile}, PATCH_SETS)
    except DeploymentError as error:
        return error.problems
    return []


def row(flag: str, value: Any = 1, **more: Any) -> dict[str, Any]:
    """Return a row of a profile's arguments."""
    return {"flag": flag, "value": value, **more}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"instance": None}, "has no text 'instance'"),
        ({"served_model_name": ""}, "has no text 'served_model_name'"),
        ({"checkpoint": {}}, "has no 'checkpoint' with a 'repository'"),
        ({"checkpoint": {"repository": "a/b"}}, "has no 'bytes' in 'checkpoint'"),
        ({"gpus": None}, "has no 'gpus'"),
        ({"gpus": {"count": 8}}, "has no 'gpus' with what the hosts must have: count, compute_capability, memory_mib"),
        (
            {"gpus": {"count": 8, "compute_capability": 12.0, "memory_mib": 1}},
            "'compute_capability' to 12.0, which has to be text",
        ),
        ({"arguments": {"tp-size": 8}}, "has no list 'arguments'"),
        ({"environment": None}, "has no list 'environment'"),
        ({"arguments": [{"flag": "tp-size"}]}, "has a row without 'flag' or 'value': one with flag."),
        ({"environment": [{"name": "HF_TOKEN", "vlaue": "s3cret"}]}, "or 'value': one with name, vlaue."),
        ({"environment": ["HF_TOKEN=s3cret"]}, "has a row without 'name' or 'value': no map."),
        ({"arguments": [row("tp-size", versions="0.5.10")]}, "'0.5.10' is no version clause"),
        ({"arguments": [row("port")]}, "'port', which is the collection's own"),
        ({"environment": [{"name": "A B", "value": "1"}]}, "'A …', which is no name"),
        ({"smoke": []}, "has no 'smoke' prompts"),
        ({"smoke": [{"messages": []}]}, "has no 'smoke' prompts"),
    ],
)
def test_what_a_profile_lacks_is_said_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    (problem,) = own(**changes)
    assert problem.startswith(f"The model profile '{PROFILE}'")
    assert says in problem


@pytest.mark.parametrize("twice", [("tp-size", "tp-size"), ("tp-size", "tensor-parallel-size")])
def test_a_profile_that_gives_one_flag_twice_for_a_version_is_refused(twice: tuple[str, str]) -> None:
    (problem,) = own(arguments=[row(flag) for flag in twice])
    assert "'tp-size' twice for SGLang 0.5.23" in problem
    assert own(arguments=[row(twice[0], versions="<0.5.20"), row(twice[1], versions=">=0.5.20")]) == []


def test_a_profile_may_spell_a_flag_in_its_own_way() -> None:
    profile = {**PROFILES[PROFILE], "arguments": [row("tensor-parallel-size", 8)]}
    found = resolve(variables(arguments={"tp": 4}), {PROFILE: profile}, PATCH_SETS)
    assert found["launch"]["arguments"]["tp-size"] == 4
    assert "tensor-parallel-size" not in found["launch"]["arguments"]
