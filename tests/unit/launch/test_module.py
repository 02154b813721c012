# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module launch_arguments, run as Ansible runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import quantization

from tests.unit.deployment.example import ROOT
from tests.unit.launch import engine

MODULE = "ansible_collections.llmfleet.sglang.plugins.modules.launch_arguments"
GOOD: dict[str, Any] = {"model-path": "/m", "tp-size": 8, "sleep-on-idle": True, "enable-tf32": None, "left": False}


def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run the module and return its answer."""
    given = {"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **arguments}}
    done = subprocess.run(
        [sys.executable, "-m", MODULE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT / ".collections",
    )
    answer: dict[str, Any] = json.loads(done.stdout or done.stderr)
    return answer


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return engine.write(tmp_path / "engine")


@pytest.mark.parametrize("check", [False, True])
def test_right_arguments_pass(environment: dict[str, str], check: bool) -> None:
    answer = run(check, python=sys.executable, arguments=GOOD, environment={**environment, "SGLANG_GONE": 1})
    assert answer["changed"] is False
    assert answer["problems"] == []
    assert answer["checked"] == ["model-path", "tp-size", "sleep-on-idle"]
    assert answer["version"] == "0.5.99"
    assert answer["seconds"] > 0
    assert [note for note in answer["notes"] if "SGLANG_GONE" in note] == answer["notes"] != []


@pytest.mark.parametrize("check", [False, True])
def test_wrong_arguments_fail_with_all_of_them(environment: dict[str, str], check: bool) -> None:
    arguments = {**GOOD, "cuda-graph-max-bs": 32, "attention-backend": "trition"}
    answer = run(check, python=sys.executable, arguments=arguments, environment=environment)
    assert answer["failed"] is True
    assert answer["msg"].splitlines() == [
        "2 launch arguments are not what SGLang 0.5.99 takes (it was asked; nothing was stopped):",
        "1. 'cuda-graph-max-bs' is ambiguous: it could be 'cuda-graph-max-bs-decode' or 'cuda-graph-max-bs-prefill'. "
        "Write 'cuda-graph-max-bs-decode', or the one you mean.",
        "2. 'attention-backend' cannot be 'trition'. Did you mean 'triton'? "
        "It takes 'flashinfer', 'triton' or 'trtllm_mha'.",
    ]
    assert [problem["kind"] for problem in answer["problems"]] == ["ambiguous", "choice"]


def test_a_release_that_is_not_built_yet_is_skipped_in_check_mode_alone(tmp_path: Path) -> None:
    python = str(tmp_path / "release" / "venv" / "bin" / "python")
    answer = run(True, python=python, arguments=GOOD)
    assert answer["skipped"] is True
    assert "is not built yet" in answer["msg"]
    assert "cannot be run" in run(python=python, arguments=GOOD)["msg"]


def test_the_same_question_is_asked_once(environment: dict[str, str], tmp_path: Path) -> None:
    given: dict[str, Any] = {"python": sys.executable, "arguments": GOOD, "environment": environment}
    cache = tmp_path / "arguments.json"
    assert run(True, cache=str(cache), **given)["seconds"] > 0
    assert not cache.exists()
    assert run(cache=str(cache), **given)["seconds"] > 0
    assert run(cache=str(cache), **given)["seconds"] == 0
    again = run(cache=str(cache), **{**given, "arguments": {**GOOD, "tp-size": "x"}})
    assert again["seconds"] > 0
    assert again["failed"] is True


def test_the_folder_of_a_cache_is_made(environment: dict[str, str], tmp_path: Path) -> None:
    cache = tmp_path / "new" / "arguments.json"
    run(python=sys.executable, arguments=GOOD, environment=environment, cache=str(cache))
    assert cache.exists()


def test_a_cache_that_cannot_be_written_fails(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = str(tmp_path / "file" / "arguments.json")
    answer = run(python=sys.executable, arguments=GOOD, environment=environment, cache=cache)
    assert answer["failed"] is True
    assert "File exists" in answer["msg"]


@pytest.mark.parametrize("check", [False, True])
def test_what_the_checkpoint_says_of_its_quantization_is_handed_on(tmp_path: Path, check: bool) -> None:
    said = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": said}))
    given = {"python": sys.executable, "arguments": GOOD, "environment": engine.write(tmp_path / "engine")}
    assert run(check, checkpoint=str(tmp_path), **given)["checkpoint"] == {"quantization": said}
    assert run(check, **given)["checkpoint"] == {}
    assert run(True, python="/gone/python", arguments=GOOD, checkpoint=str(tmp_path))["checkpoint"]


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"quantization": "NVFP4"}', "{"])
def test_a_checkpoint_that_says_nothing_is_no_fault(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "hf_quant_config.json").write_text(content)
    assert quantization.read(tmp_path) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another user")
@pytest.mark.parametrize("check", [False, True])
def test_what_the_service_user_may_not_read_is_said_before_the_engine_is_asked(
    environment: dict[str, str], tmp_path: Path, check: bool
) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "checkpoint"
    folder.mkdir(mode=0o700)
    answer = run(
        check, python="/usr/bin/python3", arguments=GOOD, environment=environment, checkpoint=str(folder), user="nobody"
    )
    assert answer["failed"] is True and "problems" not in answer
    assert answer["msg"].startswith("The engine would not start: nobody cannot read what lies in ")
