# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules `gpu_info` and `preflight`: what they take, and that what they return is what they document."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.modules import gpu_info, preflight
from ansible_collections.llmfleet.sglang.tests.unit.gpu.eight import Eight
from ansible_collections.llmfleet.sglang.tests.unit.host.good import GOOD

GIVEN: dict[str, Any] = {
    "service": "sglang-qwen",
    "listen": {"host": "127.0.0.1", "port": 30000},
    "paths": {"root": "/opt/sglang", "models": "/models", "state": "/var/lib/llmfleet", "cache": "/var/cache/llmfleet"},
    "version": "0.5.23",
}


ANSIBLES = {"changed", "invocation", "warnings", "deprecations"}


def answer(capsys: pytest.CaptureFixture[str], module: Any, **params: Any) -> dict[str, Any]:
    with patch_module_args(params), pytest.raises(SystemExit):
        module.main()
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def documented(module: Any) -> dict[str, Any]:
    returned: dict[str, Any] = yaml.safe_load(module.RETURN)
    return returned


def test_gpu_info_returns_what_it_documents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, eight: Eight
) -> None:
    eight.cards[5]["pcie.link.width.current"] = "4"
    monkeypatch.setattr(gpu_info, "look", lambda run, timeout: eight.look())
    told = answer(capsys, gpu_info)
    assert told["changed"] is False and told["gpus"][5]["link_width"] == 4
    assert set(told) - ANSIBLES == set(documented(gpu_info))
    assert set(told["gpus"][0]) == set(documented(gpu_info)["gpus"]["contains"])


def test_gpu_info_says_that_nvidia_smi_hangs_and_does_not_fail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, eight: Eight
) -> None:
    eight.hang()
    monkeypatch.setattr(gpu_info, "look", lambda run, timeout: eight.look())
    told = answer(capsys, gpu_info, timeout=3)
    assert told["status"] == "hung" and "failed" not in told


def test_preflight_hands_the_launch_to_the_checks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def checked(facts: Any, wanted: Any) -> Any:
        seen.append(wanted)
        return check(facts, wanted)

    monkeypatch.setattr(preflight, "collect", lambda question: GOOD)
    monkeypatch.setattr(preflight, "check", checked)
    gpus = {"count": 8, "compute_capability": "12.0", "memory_mib": 97887}
    launch = {"arguments": {"tp-size": 16}, "environment": {"NCCL_P2P_DISABLE": "1"}, "patch_sets": ["sm120"]}
    told = answer(
        capsys, preflight, **GIVEN, replaces=["sglang-kimi"], gpus=gpus, launch=launch, accept=["tensor_parallel"]
    )
    (wanted,) = seen
    assert (wanted.launch.ranks, wanted.launch.patch_sets, wanted.launch.multimem) == (16, ("sm120",), False)
    assert wanted.launch.switched_on("NCCL_P2P_DISABLE")
    assert told["blocking"] == [] and told["report"] == ""
    (found,) = told["findings"]
    assert (found["id"], found["severity"], found["accepted"]) == ("tensor_parallel", "blocks", True)
    assert set(told) - ANSIBLES == set(documented(preflight))
    assert told["facts"]["gpus"]["status"] == "ok" and "model" not in told["facts"]


def test_preflight_refuses_to_accept_what_there_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "collect", lambda question: GOOD)
    told = answer(capsys, preflight, **GIVEN, replaces=["sglang-kimi"], accept=["no_such"])
    assert told["failed"] and "there is no finding named no_such" in told["msg"]
