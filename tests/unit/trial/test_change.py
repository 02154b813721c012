# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be tried, and whether the host serves what the trial changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter import trial as filters
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import running
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import identity
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import quote
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.environment import of_service
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import change

from tests.unit.benchmark import case
from tests.unit.benchmark.case import FAST, TOPOLOGY
from tests.unit.deployment.example import PROFILE, resolved, variables

COMPILERS = {"TORCH_CUDA_ARCH_LIST": "12.0a", "MAX_JOBS": "4"}
INTERPRETER = "cpython 3.11.2 x86_64"
LOCK = "torch==2.14.1 \\\n    --hash=sha256:00\nidna==3.0 \\\n    --hash=sha256:01\n"
NO_LOCK = ["a lock of its packages in /l"]
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
        ({"arguments": ["a"]}, "has to be a map of names to values, not a list."),
        ({"arguments": "--api-key s3cret"}, "has to be a map of names to values, not text."),
        ({"environment": ["HF_TOKEN=s3cret"]}, "has to be a map of names to values, not a list."),
        ({"patch_sets": [{"token": "s3cret"}]}, "has to be a list of names, not a list."),
        ({"arguments": {"port": 1}}, "sglang_trial, arguments, sets 'port', which is the collection's own"),
        ({"arguments": {"admin-api-key": "x"}}, "a secret that everybody on the host could read"),
        ({"environment": {"A B": "1"}}, "no name of an environment variable"),
    ],
)
def test_what_cannot_be_tried_is_said_in_a_sentence(trial: Any, words: str) -> None:
    [text] = change.problems(trial, ["node1"])
    assert words in text and text.endswith(".") and "s3cret" not in text


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


@pytest.mark.parametrize("name", ["CUDA_HOME", "TRITON_CACHE_DIR", "MAX_JOBS"])
@pytest.mark.parametrize("also", [{}, SIZE])
def test_what_every_unit_sets_cannot_be_taken_out(name: str, also: dict[str, Any]) -> None:
    trial = {**also, "environment": {name: None}}
    [text] = filters.trial_change_problems(variables(), trial, PROFILE)
    assert text.startswith(f"sglang_trial takes {name} out, which every unit of ours sets")
    assert filters.trial_change_problems(variables(environment={name: "x"}), trial, PROFILE) == []


def test_what_cannot_be_tried_is_listed_for_a_refusal_like_the_others() -> None:
    [text] = filters.trial_change_problems(variables(), {"patch_sets": ["sm121"]}, PROFILE)
    assert "names 'sm121', and there is no such patch set" in text
    [text] = filters.trial_change_problems(variables(), {"environment": {"X": None}}, PROFILE)
    assert text == "sglang_trial changes nothing: the deployment is the same without it."
    assert filters.trial_change_problems(variables(), SIZE, PROFILE) == []


def test_an_unknown_patch_set_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(AnsibleFilterError, match="names 'sm121', and there is no such patch set"):
        changed({"patch_sets": ["sm121"]})


def made(deployment: dict[str, Any], lock: str = LOCK, interpreter: str = INTERPRETER) -> dict[str, Any]:
    """What the module release_status says of a deployment whose release is there."""
    parts = identity.inputs(
        commit=deployment["build"]["commit"],
        version=deployment["build"]["version"],
        patch_sets=deployment["patch_sets"],
        lock=lock,
        interpreter=interpreter,
        environment=deployment["build"]["environment"],
    )
    name = identity.release_id(deployment["build"]["version"], parts)
    return {"id": name, "inputs": parts, "interpreter": interpreter, "missing": [], "compilers": COMPILERS}


def serving(
    deployment: dict[str, Any],
    release: dict[str, Any] | None = None,
    process: dict[str, str] | None = None,
    wanted: dict[str, Any] | None = None,
    unit: dict[str, str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """What the module benchmark_info says of a host that serves this.

    release: what it was built as; process: variables of the process over those of the deployment; wanted: those that
    the module is asked to compare, the deployment's own if left out; unit: variables that its unit sets beside them.
    """
    built = release or made(deployment)
    argv = [word for group in quote.launch_words(deployment["launch"]["arguments"]) for word in group]
    folder = Path("/opt/sglang/releases", built["id"])
    own = of_service({**deployment, "launch": {"environment": {}}}, {"id": built["id"], "path": str(folder)})
    ours = {**own, **built["compilers"], **deployment["launch"]["environment"], "LLMFLEET_STATE": "s1", **(unit or {})}
    environ = {"LANG": "C.UTF-8", "SHELL": "/bin/sh", **ours, **(process or {})}
    lines = [f"Environment={quote.environment_line(name, str(value))}\n" for name, value in ours.items()]
    record = {"id": built["id"], "inputs": built["inputs"]}
    found = running.Running(systemd.Unit("sglang-qwen"), ("python", *argv), environ, record, folder, "".join(lines))
    told = running.described(found, deployment["launch"]["environment"] if wanted is None else wanted)
    return {"serving": {**told, "state": "s1", **changes}, "benchmarks": [], "topology": TOPOLOGY}


def hindrances(
    info: dict[str, Any], base: dict[str, Any], changed: dict[str, Any] | None = None, **options: Any
) -> list[str]:
    """What keeps a host from the trial of a change to what its release is made of."""
    release = options.pop("release", None) or made(base)
    return filters.trial_hindrances(info, base, changed or base, release, **options)


def test_a_host_that_serves_the_deployment_can_try_a_change() -> None:
    base = resolved(arguments={"json-model-override-args": '{"a": 1}', "seed": -1}, environment={"MY_TOKEN": "x"})
    assert hindrances(serving(base), base) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"commit": "0" * 40}, "commit 000000000000 serves"),
        ({"patch_sets": []}, "its patch sets are []"),
        ({"arguments": {}}, "--tp-size is not set, and the deployment's 8"),
        ({"process": {"NCCL_P2P_LEVEL": "PHB"}}, "NCCL_P2P_LEVEL is PHB, and the deployment's SYS"),
        ({"process": {"PYTHONMALLOC": "malloc"}}, "PYTHONMALLOC is malloc, and the deployment's not set"),
        ({"process": {"MAX_JOBS": "64"}}, "MAX_JOBS is 64, and the deployment's 4"),
        ({"process": {"TORCH_CUDA_ARCH_LIST": "9.0a"}}, "TORCH_CUDA_ARCH_LIST is 9.0a, and the deployment's 12.0a"),
        (
            {"unit": {"FLASHINFER_CUDA_ARCH_LIST": "9.0a"}},
            "FLASHINFER_CUDA_ARCH_LIST is 9.0a, and the deployment's not",
        ),
        ({"unit": {"LC_ALL": "C", "A": "b c"}}, "LC_ALL is C, and the deployment's not set"),
        ({"unit": {"LANG": "de DE"}}, "LANG is de DE, and the deployment's not set"),
        ({"unit": {"LANGUAGE": "de"}}, "LANGUAGE is de, and the deployment's not set"),
        ({"unit": {"SHELL": "/bin/zsh"}}, "SHELL is /bin/zsh, and the deployment's not set"),
        ({"unit": {"USER": "me"}}, "USER is me, and the deployment's not set"),
        ({"unit": {"SGLANG_LOGGING_CONFIG_PATH": "/my.json"}}, "SGLANG_LOGGING_CONFIG_PATH is /my.json, and the"),
        ({"process": {"LLMFLEET_STATE": "s0"}}, "its unit is another one now than it was started from"),
        ({"process": {"CUDA_HOME": "/usr/local/cuda-13"}}, "CUDA_HOME is /usr/local/cuda-13, and the deployment's not"),
    ],
)
def test_a_host_that_serves_something_else_is_told_to_deploy_first(changes: dict[str, Any], words: str) -> None:
    base = resolved()
    first, *rest = hindrances(serving(base, **changes), base)
    assert "deploy it first" in first
    assert any(words in line for line in rest), rest


OWN = {"CUDA_HOME": "/usr/local/cuda-13", "PYTHONMALLOC": "malloc", "TRITON_CACHE_DIR": "/x", "LC_ALL": "C", "N": "8"}


def test_a_deployment_may_set_what_the_unit_or_the_host_sets_too() -> None:
    base = resolved(environment=OWN)
    assert hindrances(serving(base), base) == []
    for name in OWN:
        first, *rest = hindrances(serving(base, process={name: "other"}), base)
        assert "deploy it first" in first and rest == [f"{name} is other, and the deployment's {OWN[name]}"]
    same = resolved(environment={"CUDA_HOME": "/usr/local/cuda"})
    assert hindrances(serving(same), same) == []


def test_a_secret_is_compared_and_never_shown() -> None:
    base = resolved(environment={"MY_TOKEN": "hunter2"})
    first, *rest = hindrances(serving(base, process={"MY_TOKEN": "hunter3"}), base)
    assert "deploy it first" in first
    assert rest == ["MY_TOKEN is another one than the deployment's, and may be a secret"]


@pytest.mark.parametrize("trial", [{"LC_ALL": "C"}, {"CUDA_HOME": "/usr/local/cuda"}])
def test_a_variable_that_serves_already_is_no_change(trial: dict[str, str]) -> None:
    base, after = resolved(environment={"N": "1"}), resolved(environment={"N": "2", **trial})
    wanted = {**after["launch"]["environment"], **base["launch"]["environment"]}
    [text] = hindrances(serving(base, process={"LC_ALL": "C"}, wanted=wanted), base, after)
    [(name, value)] = trial.items()
    assert text == f"The change sets {name} to {value}, which what serves has already: leave it out."
    other = serving(base, process={"LC_ALL": "de", "CUDA_HOME": "/usr/local/cuda"}, wanted={**wanted, name: "/y"})
    assert hindrances(other, base, after) == []


def edited(deployment: dict[str, Any]) -> dict[str, Any]:
    """The deployment with other edits in its first patch set."""
    first, *others = deployment["patch_sets"]
    edits = [{**first["edits"][0], "file": "sglang/other.py"}, *first["edits"][1:]]
    return {**deployment, "patch_sets": [{**first, "edits": edits}, *others]}


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (
            lambda base: made(base, interpreter="cpython 3.12.9 x86_64"),
            f"it runs on {INTERPRETER}, and the deployment's sglang_python is cpython 3.12.9 x86_64",
        ),
        (
            lambda base: made(base, lock=LOCK.replace("2.14.1", "2.15.0")),
            "package torch is 2.14.1, and the deployment's lock has 2.15.0",
        ),
        (
            lambda base: made(resolved(build_environment={"NVCC_FLAGS": "-O1", "A_TOKEN": "hunter2"})),
            "it was built without NVCC_FLAGS, and now that would be -O1 (sglang_build_environment, or other cards)",
        ),
        (
            lambda base: made(base, lock=LOCK.replace("idna==3.0", "six==1.0")),
            "package idna is 3.0, and the deployment's lock has none",
        ),
        (
            lambda base: made(edited(base)),
            "patch set sm120 has other edits in the release that serves than in the deployment",
        ),
        (lambda base: {**made(base), "id": "other"}, "serves, and the deployment's is other"),
        (
            lambda base: {
                "id": "",
                "inputs": {},
                "interpreter": INTERPRETER,
                "missing": NO_LOCK,
            },
            "it was built with other sglang_build_overrides or sglang_uv_version, or its lock was removed",
        ),
        (
            lambda base: {"id": "", "inputs": {}, "interpreter": "cpython 3.12.9 x86_64", "missing": NO_LOCK},
            f"it runs on {INTERPRETER}, and the deployment's sglang_python is cpython 3.12.9 x86_64",
        ),
        (
            lambda base: {"id": "", "inputs": {}, "interpreter": "", "missing": ["the commit 1a in /m"]},
            "the commit 1a in",
        ),
    ],
)
def test_a_baseline_from_another_release_is_refused_with_what_differs(release: Any, words: str) -> None:
    """Else two things would change, and one be measured."""
    base = resolved()
    first, *rest = hindrances(serving(base), base, changed(SIZE), release=release(base))
    assert "deploy it first" in first and any(words in line for line in rest), rest
    assert "hunter2" not in str(rest)


def test_the_lock_that_another_interpreter_lacks_is_no_difference_of_its_own() -> None:
    base = resolved()
    bare = {"id": "", "inputs": {}, "interpreter": "cpython 3.12.9 x86_64", "missing": [*NO_LOCK, "the user x"]}
    _first, *rest = hindrances(serving(base), base, release=bare)
    assert len(rest) == 2 and "it runs on" in rest[0] and rest[1] == "the user x is missing on the host"


def test_a_build_without_what_it_was_built_with_is_said_so() -> None:
    base, other = resolved(build_environment={"NVCC_FLAGS": "-O1"}), resolved()
    _first, *rest = hindrances(serving(base), base, release=made(other))
    told = "it was built with NVCC_FLAGS -O1, and now it would be without it (sglang_build_environment, or other cards)"
    assert rest == [told]


def test_a_patch_set_of_the_change_is_its_own() -> None:
    base = resolved()
    assert hindrances(serving(base), base, changed({"patch_sets": ["sm120_fusion"]})) == []


def test_of_many_packages_that_differ_a_few_are_named() -> None:
    base = resolved()
    other = made(base, lock="".join(f"p{number}==2 \\\n    --hash=sha256:0{number}\n" for number in range(20)))
    _first, *rest = hindrances(serving(base), base, release=other)
    assert len(rest) == change.MOST + 1 and rest[-1] == f"and {22 - change.MOST} more of that kind"


def test_nothing_of_ours_no_shapes_or_another_size_is_a_hindrance() -> None:
    base = resolved()
    other = resolved(arguments={"tp-size": 4})
    assert "is inactive" in hindrances({"serving": {"problem": "x is inactive"}}, base)[0]
    bare = {**base, "benchmark": {"shapes": []}}
    assert "has no 'benchmark'" in hindrances(serving(bare), bare)[0]
    assert "tensor parallel size 4" in hindrances(serving(base), base, other)[0]


def test_a_recorded_baseline_is_of_what_serves_with_the_same_shapes_and_cards() -> None:
    shape = {"input_tokens": 1024, "output_tokens": 512, "concurrency": 32, "requests": 128}
    base = resolved(benchmark_shapes=[shape])
    told = serving(base)
    kept = [
        case.made(*FAST, id="right", state="s1"),
        case.made(*FAST, id="lost", state="s1", verdict={"result": "no verdict"}),
        case.made(*FAST, id="state", state="s2"),
        case.made(*FAST, id="cards", state="s1", topology="no GPU"),
    ]
    told["benchmarks"] = [one.as_dict() for one in kept]
    assert filters.trial_baseline(told, base)["id"] == "right"
    assert hindrances(told, base, recorded=True) == []
    assert filters.trial_baseline(told, resolved()) == {}
    assert "leave sglang_trial_baseline out" in hindrances(serving(base), base, recorded=True)[0]


def test_what_is_taken_out_is_said_so() -> None:
    trial = {"arguments": {"sleep_on_idle": None}, "environment": {"X": None, "A": 1, "MY_TOKEN": "hunter2"}}
    assert change.words(trial) == "--sleep-on-idle taken out, A=1, MY_TOKEN=***, X taken out"
    assert change.shown(trial)["environment"] == {"A": "1", "MY_TOKEN": "***", "X": None}
    assert change.words(change.shown(trial)) == change.words(trial)  # as a record is told again
