# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the profiles of Kimi-K2.5 and GLM-5 resolve to, by hand; Qwen's is in tests/unit/deployment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.deployment.example import REVISION, problems, resolved

KIMI, GLM = "kimi_k2_5_int4", "glm_5_nvfp4"
LOADER = '{"enable_multithread_load": true, "num_threads": 16}'

KIMI_0_5_23: dict[str, Any] = {
    "model-path": f"/models/.checkpoints/moonshotai--Kimi-K2.5/{REVISION}",
    "served-model-name": "kimi-k2.5",
    "host": "192.0.2.11",
    "port": 30000,
    "tp-size": 8,
    "trust-remote-code": True,
    "attention-backend": "flashinfer",
    "moe-runner-backend": "marlin",
    "kv-cache-dtype": "bfloat16",
    "mem-fraction-static": 0.93,
    "chunked-prefill-size": 8192,
    "cuda-graph-max-bs-decode": 16,
    "disable-custom-all-reduce": True,
    "reasoning-parser": "kimi_k2",
    "tool-call-parser": "kimi_k2",
    "model-loader-extra-config": LOADER,
    "watchdog-timeout": 1200,
    "sleep-on-idle": True,
    "enable-metrics": True,
}
KIMI_0_5_13: dict[str, Any] = {
    **{flag: value for flag, value in KIMI_0_5_23.items() if flag != "cuda-graph-max-bs-decode"},
    "cuda-graph-max-bs": 16,
}
GLM_0_5_23: dict[str, Any] = {
    "model-path": f"/models/.checkpoints/nvidia--GLM-5-NVFP4/{REVISION}",
    "served-model-name": "glm-5",
    "host": "192.0.2.11",
    "port": 30000,
    "quantization": "modelopt_fp4",
    "tp-size": 8,
    "attention-backend": "dsa",
    "dsa-prefill-backend": "flashinfer_sparse_mla",
    "dsa-decode-backend": "flashinfer_sparse_mla",
    "kv-cache-dtype": "fp8_e4m3",
    "moe-runner-backend": "flashinfer_cutlass",
    "fp4-gemm-backend": "flashinfer_cutlass",
    "disable-shared-experts-fusion": True,
    "mem-fraction-static": 0.85,
    "chunked-prefill-size": 16384,
    "cuda-graph-max-bs-decode": 32,
    "disable-custom-all-reduce": True,
    "reasoning-parser": "glm45",
    "tool-call-parser": "glm47",
    "model-loader-extra-config": LOADER,
    "watchdog-timeout": 1200,
    "sleep-on-idle": True,
    "enable-metrics": True,
}
GLM_0_5_17: dict[str, Any] = {
    **{flag: value for flag, value in GLM_0_5_23.items() if flag != "cuda-graph-max-bs-decode"},
    "cuda-graph-max-bs": 32,
}
KIMI_ENVIRONMENT = {"NCCL_IB_DISABLE": "1", "NCCL_P2P_LEVEL": "SYS"}
GLM_ENVIRONMENT = {
    "NCCL_IB_DISABLE": "1",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MIN_NCHANNELS": "8",
    "NCCL_ALLOC_P2P_NET_LL_BUFFERS": "1",
    "OMP_NUM_THREADS": "8",
    "SAFETENSORS_FAST_GPU": "1",
}


@pytest.mark.parametrize(
    ("profile", "version", "arguments", "environment"),
    [
        (KIMI, "0.5.23", KIMI_0_5_23, KIMI_ENVIRONMENT),
        (KIMI, "0.5.13", KIMI_0_5_13, KIMI_ENVIRONMENT),
        (GLM, "0.5.23", GLM_0_5_23, GLM_ENVIRONMENT),
        (GLM, "0.5.17", GLM_0_5_17, GLM_ENVIRONMENT),
    ],
)
def test_arguments_and_environment(
    profile: str, version: str, arguments: dict[str, Any], environment: dict[str, str]
) -> None:
    launch = resolved(profile=profile, version=version, checkpoint_bytes=1)["launch"]
    assert launch["arguments"] == arguments
    assert launch["environment"] == environment


@pytest.mark.parametrize(
    ("profile", "service", "repository"),
    [(KIMI, "sglang-kimi", "moonshotai/Kimi-K2.5"), (GLM, "sglang-glm", "nvidia/GLM-5-NVFP4")],
)
def test_names_checkpoint_and_prompts(profile: str, service: str, repository: str) -> None:
    deployment = resolved(profile=profile, checkpoint_bytes=7)
    assert deployment["service"] == service
    assert deployment["checkpoint"]["repository"] == repository
    assert deployment["checkpoint"]["bytes"] == deployment["disk"]["models_bytes"] == 7
    assert deployment["gpus"] == {"count": 8, "compute_capability": "12.0", "memory_mib": 97887}
    assert [prompt["expect"] for prompt in deployment["verify"]["prompts"]] == ["Paris", "Tokyo", "Shakespeare"]
    thinking = "thinking" if profile == KIMI else "enable_thinking"
    assert all(
        prompt["extra"] == {"chat_template_kwargs": {thinking: False}} for prompt in deployment["verify"]["prompts"]
    )


@pytest.mark.parametrize("profile", [KIMI, GLM])
def test_a_size_that_no_source_says_is_asked_for(profile: str) -> None:
    (problem,) = problems(profile=profile)
    assert problem.startswith(f"The model profile '{profile}' has no 'bytes' in 'checkpoint'")
    assert "set sglang_checkpoint_bytes to the sum of the repository's files on the Hub" in problem


@pytest.mark.parametrize(("profile", "version", "first"), [(KIMI, "0.5.12", "0.5.13"), (GLM, "0.5.16", "0.5.17")])
def test_a_version_that_a_profile_is_not_made_for_is_refused(profile: str, version: str, first: str) -> None:
    (problem,) = problems(profile=profile, version=version, checkpoint_bytes=1)
    assert problem == f"The model profile '{profile}' is made for SGLang >={first}, and sglang_version is {version}."
