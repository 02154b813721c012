# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launch arguments put to a real argparse parser in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import check, probe

from tests.unit.launch import engine

GOOD: dict[str, Any] = {"model-path": "/models/m"}

# arguments, the kind of the problem, what the message says, what the advice says
WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"cuda-graph-max-bs": 32},
        "ambiguous",
        "'cuda-graph-max-bs-decode' or 'cuda-graph-max-bs-prefill'",
        "Write 'cuda-graph-max-bs-decode'",
    ),
    ({"mamba-scheduler-strategy": "extra_buffer"}, "unknown", "There is no", "'mamba-radix-cache-strategy'"),
    (
        {"atention-backend": "triton"},
        "unknown",
        "There is no launch argument 'atention-backend'",
        "'attention-backend'",
    ),
    ({"backend-for-attention": "triton"}, "unknown", "There is no", "'attention-backend'"),
    ({"zzz": 1}, "unknown", "There is no launch argument 'zzz'", "No flag has a name near it"),
    (
        {"attention-back": "triton"},
        "abbreviation",
        "an abbreviation of 'attention-backend'",
        "Write 'attention-backend'",
    ),
    (
        {"attention-backend": "trition"},
        "choice",
        "cannot be 'trition'",
        "Did you mean 'triton'? It takes 'flashinfer', ",
    ),
    ({"attention-backend": True}, "missing_value", "needs a value", "'trtllm_mha'"),
    ({"tp-size": True}, "missing_value", "needs a value", "a whole number"),
    ({"tp-size": "eight"}, "value", "'tp-size' has to be a whole number, not 'eight'", ""),
    ({"tp-size": 8.0}, "value", "a whole number, not 8.0", ""),
    ({"mem-fraction-static": "0,85"}, "value", "has to be a number, not '0,85'", ""),
    ({"sleep-on-idle": "yes"}, "no_value", "takes no value", "null to leave it out"),
    ({"enable-tf32": 1}, "no_value", "takes no value", "'no-enable-tf32'"),
    ({"preferred-sampling-params": "{top_p: 1}"}, "json", "is no JSON: Expecting property name", "single quotes"),
    ({"tp-size": [1, 2]}, "value", "'tp-size' has to be a whole number, not [1, 2]", ""),
    ({"attention-backend": ["triton", "x"]}, "value", "takes one value, not ['triton', 'x']", ""),
    ({"attention-backend": {"a": 1}}, "choice", "cannot be {'a': 1}", "'triton'"),
    ({"cuda-graph-bs": [1, "x"]}, "value", "has to be a whole number", ""),
    ({"model-loader-extra-config": "threads=16"}, "json", "is no JSON", "single quotes"),
    ({"json-model-override-args": '{"a": 1'}, "json", "is no JSON", "single quotes"),
    ({"deepep-config": "{normal: 1}"}, "json", "is no JSON", "single quotes"),
    ({"enable-ep-moe": True}, "removed", "use --ep-size instead", ""),
    ({"attention-backend": "-x"}, "choice", "cannot be '-x'", "'triton'"),
    ({"sleep-on-idle": "-x"}, "no_value", "takes no value", "Set it to true"),
]
RIGHT: list[dict[str, Any]] = [
    {"tp-size": 8, "tensor-parallel-size": "8"},
    {"mem-fraction-static": 0.85, "cuda-graph-max-bs-decode": 32},
    {"sleep-on-idle": True, "no-enable-tf32": True, "enable-ep-moe": None, "left": False},
    {"model-loader-extra-config": '{"enable_multithread_load": true}', "preferred-sampling-params": "{}"},
    {"deepep-config": "/etc/deepep.json", "json-pattern": "[\n ]?", "model-checksum": True},
    {"mem-fraction-static": -1, "cuda-graph-bs": [1, 2, 4], "json-pattern": "-x"},
    {"preferred-sampling-params": {"top_p": 1}, "model-loader-extra-config": {"num_threads": 16}},
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return engine.write(tmp_path_factory.mktemp("engine"))


def found(arguments: dict[str, Any], environment: dict[str, str]) -> list[check.Problem]:
    return check.problems(arguments, probe.ask(engine.question(arguments, environment)))


@pytest.mark.parametrize(("arguments", "kind", "message", "advice"), WRONG, ids=lambda one: str(one)[:40])
def test_a_wrong_argument_is_named(
    arguments: dict[str, Any], kind: str, message: str, advice: str, environment: dict[str, str]
) -> None:
    (problem,) = found({**GOOD, **arguments}, environment)
    assert (problem.kind, problem.flag) == (kind, next(iter(arguments)))
    assert message in problem.message
    assert advice in problem.advice


@pytest.mark.parametrize("arguments", RIGHT, ids=str)
def test_right_arguments_are_no_problem(arguments: dict[str, Any], environment: dict[str, str]) -> None:
    assert found({**GOOD, **arguments}, environment) == []


def test_all_problems_come_at_once_in_order(environment: dict[str, str]) -> None:
    problems = found({**GOOD, "zzz": 1, "tp-size": "x", "sleep-on-idle": 3}, environment)
    assert [one.flag for one in problems] == ["zzz", "tp-size", "sleep-on-idle"]
    lines = check.text(problems, "0.5.99").splitlines()
    assert lines[0].startswith("3 launch arguments are not what SGLang 0.5.99 takes")
    assert lines[2] == "2. 'tp-size' has to be a whole number, not 'x'."


def test_arguments_that_exclude_each_other(environment: dict[str, str]) -> None:
    (problem,) = found({**GOOD, "left": True, "right": True}, environment)
    assert problem.kind == "together"
    assert "not allowed with argument" in problem.message


def test_a_required_argument_that_is_missing(environment: dict[str, str]) -> None:
    (problem,) = found({"tp-size": 8}, environment)
    assert problem.kind == "together"
    assert "--model-path" in problem.message


def test_the_environment_reaches_the_engine(environment: dict[str, str]) -> None:
    arguments = {**GOOD, "sampling-backend": "oracle"}
    assert [one.kind for one in found(arguments, environment)] == ["choice"]
    assert found(arguments, {**environment, "SGLANG_ORACLE": "1"}) == []


def test_what_the_engine_warns_of_and_does_not_read_is_noted(environment: dict[str, str]) -> None:
    asked = engine.question({**GOOD, "disable-cuda-graph": True}, environment, ("SGLANG_ORACLE", "SGLANG_GONE"))
    notes = check.notes(probe.ask(asked))
    assert notes == [
        "--disable-cuda-graph is deprecated.",
        "Nothing in the source of SGLang 0.5.99 reads the environment variable SGLANG_GONE: it has no effect.",
    ]


def test_nothing_found_is_no_text() -> None:
    assert check.text([], "0.5.99") == ""


def test_the_package_comes_from_where_the_test_wrote_it(environment: dict[str, str]) -> None:
    answer = probe.ask(engine.question(GOOD, environment))
    assert Path(answer["source"]).parent == Path(environment["PYTHONPATH"])
    assert answer["version"] == "0.5.99"
