# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every shipped rule: a deployment that it finds, and one beside it that it does not."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import rules

from tests.unit.deployment.example import ROOT, resolved

SETS = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / "playbooks" / "rules").glob("*.yml"))]
BY_ID = {rule["id"]: rule for one in SETS for rule in one["rules"]}
QWEN, KIMI, GLM = "qwen3_5_397b_nvfp4", "kimi_k2_5_int4", "glm_5_nvfp4"
BOTH_SETS = ["sm120", "sm120_fusion"]
FUSION = {"enable-flashinfer-allreduce-fusion": True}
MTP = {"speculative-algorithm": "NEXTN"}
NO_SCALES = {"checkpoint": {"quantization": {"quant_algo": "NVFP4"}}}
SCALES = {"checkpoint": {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}}
BARE_HEAD = {"checkpoint": {"quantization": {"exclude_modules": ["lm_head", "mtp.layers.0*"]}}}
NAMED_HEAD = {"checkpoint": {"quantization": {"exclude_modules": ["lm_head", "mtp.fc", "mtp.layers.0*"]}}}


def case(profile: str = QWEN, **changes: Any) -> dict[str, Any]:
    """How a deployment differs from a profile's: args and env over its own, repository, facts, or any option."""
    return {"profile": profile, **changes}


def ids(differences: dict[str, Any]) -> set[str]:
    """Return the rules that hold for a profile's deployment with differences."""
    given = {"checkpoint_bytes": 1, **differences}
    repository, facts = given.pop("repository", None), given.pop("facts", None)
    given["arguments"], given["environment"] = given.pop("args", {}), given.pop("env", {})
    deployment = resolved(**given)
    if repository:
        deployment["checkpoint"]["repository"] = repository
    return {finding.id for finding in rules.findings(deployment, SETS, facts)}


# rule, a deployment that it finds, one that it does not
ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "attention_auto",
        case(args={"attention-backend": None, "prefill-attention-backend": "triton"}),
        case(
            args={
                "attention-backend": None,
                "prefill-attention-backend": "triton",
                "decode-attention-backend": "flashinfer",
            }
        ),
    ),
    (
        "attention_trtllm_mha",
        case(args={"decode-attention-backend": "trtllm_mha"}),
        case(args={"attention-backend": "triton"}),
    ),
    ("attention_other_chip", case(args={"attention-backend": "fa3"}), case(args={"attention-backend": "flashinfer"})),
    (
        "attention_hybrid_gdn_early",
        case(version="0.5.9", args={"attention-backend": "flashinfer"}),
        case(version="0.5.10", args={"attention-backend": "flashinfer"}),
    ),
    (
        "attention_hybrid_gdn",
        case(args={"attention-backend": "torch_native"}),
        case(KIMI, args={"attention-backend": "torch_native"}),
    ),
    (
        "linear_attention_state",
        case(args={"linear-attn-backend": "flashinfer"}),
        case(args={"linear-attn-backend": "flashinfer", "mamba-ssm-dtype": "bfloat16"}),
    ),
    ("moe_auto", case(args={"moe-runner-backend": "auto"}), case(args={"moe-runner-backend": "cutlass"})),
    (
        "moe_other_chip",
        case(args={"moe-runner-backend": "flashinfer_trtllm"}),
        case(args={"moe-runner-backend": "flashinfer_cutlass"}),
    ),
    (
        "fp4_gemm_auto",
        case(args={"fp4-gemm-backend": None}),
        case(args={"fp4-gemm-backend": None, "quantization": "fp8", "fp8-gemm-backend": "triton"}),
    ),
    (
        "fp4_gemm_other_chip",
        case(args={"fp4-gemm-backend": "flashinfer_trtllm"}),
        case(args={"fp4-gemm-backend": "marlin"}),
    ),
    (
        "fp4_gemm_race",
        case(version="0.5.12", args={"fp4-gemm-backend": "flashinfer_cutlass"}),
        case(version="0.5.13", args={"fp4-gemm-backend": "flashinfer_cutlass"}),
    ),
    ("fp8_gemm_other_chip", case(args={"fp8-gemm-backend": "deep_gemm"}), case(args={"fp8-gemm-backend": "triton"})),
    (
        "fp8_gemm_auto",
        case(args={"quantization": "fp8"}),
        case(args={"quantization": "fp8", "fp8-gemm-backend": "triton"}),
    ),
    (
        "deep_gemm_on",
        case(version="0.5.12", env={"SGLANG_ENABLE_JIT_DEEPGEMM": None}),
        case(version="0.5.12", env={"SGLANG_ENABLE_JIT_DEEPGEMM": "false"}),
    ),
    ("kv_cache_auto", case(args={"kv-cache-dtype": None}), case(args={"kv-cache-dtype": "bfloat16"})),
    ("kv_cache_without_scales", case(facts=NO_SCALES), case(facts=SCALES)),
    ("memory_fraction", case(args={"mem-fraction-static": 0.94}), case(args={"mem-fraction-static": "0.93"})),
    ("fusion_without_patch", case(args=FUSION), case(args=FUSION, patch_sets=BOTH_SETS)),
    (
        "fusion_without_kernels",
        case(version="0.5.17", args=FUSION, patch_sets=BOTH_SETS),
        case(version="0.5.18", args=FUSION, patch_sets=BOTH_SETS),
    ),
    (
        "fusion_second_gate",
        case(args={"flashinfer-allreduce-fusion-backend": "trtllm"}, patch_sets=BOTH_SETS),
        case(args={"flashinfer-allreduce-fusion-backend": "trtllm"}),
    ),
    (
        "fusion_without_win",
        case(args=FUSION, patch_sets=BOTH_SETS),
        case(args=FUSION, patch_sets=BOTH_SETS, facts={"benchmark": {"fusion": "win"}}),
    ),
    ("fusion_patch_inert", case(patch_sets=BOTH_SETS), case(patch_sets=BOTH_SETS, args=FUSION)),
    (
        "fusion_switched_on",
        case(version="0.5.7", repository="openai/gpt-oss-120b"),
        case(version="0.5.8", repository="openai/gpt-oss-120b"),
    ),
    (
        "symm_mem_key_error",
        case(version="0.5.13", args={"enable-torch-symm-mem": True}, patch_sets=[]),
        case(version="0.5.13", args={"enable-torch-symm-mem": True}),
    ),
    ("symm_mem_inert", case(args={"enable-torch-symm-mem": True}), case()),
    ("nvls_inert", case(args={"enable-nccl-nvls": True}), case()),
    (
        "custom_all_reduce_two_cards",
        case(args={"tp": 2, "disable-custom-all-reduce": None}),
        case(args={"tp": 2}),
    ),
    ("pcie_oneshot_fork", case(args={"enable-pcie-oneshot-allreduce": True}), case()),
    (
        "pcie_ipc_unmeasured",
        case(env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}),
        case(env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}, args={"tp-size": 4}),
    ),
    (
        "pcie_ipc_inert",
        case(version="0.5.21", env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "True"}),
        case(version="0.5.22", env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "True"}),
    ),
    (
        "expandable_segments_ipc",
        case(
            env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": 1, "PYTORCH_CUDA_ALLOC_CONF": "a:1,expandable_segments:True"},
        ),
        case(env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": 0, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ),
    ("expert_parallel", case(args={"ep": 8}), case(args={"ep-size": 1, "moe-a2a-backend": "none"})),
    (
        "nccl_p2p_contradiction",
        case(env={"NCCL_P2P_DISABLE": 1}),
        case(env={"NCCL_P2P_DISABLE": 1, "NCCL_P2P_LEVEL": None}),
    ),
    (
        "nccl_p2p_disabled_alone",
        case(env={"NCCL_P2P_DISABLE": "1", "NCCL_BUFFSIZE": 33554432}),
        case(env={"NCCL_P2P_DISABLE": "1", "NCCL_BUFFSIZE": 33554432, "NCCL_MIN_NCHANNELS": 16}),
    ),
    ("nccl_p2p_level", case(env={"NCCL_P2P_LEVEL": "NUMA"}), case(env={"NCCL_P2P_LEVEL": "PHB"})),
    (
        "spec_v2_missing",
        case(version="0.5.10", args=MTP),
        case(version="0.5.10", args=MTP, env={"SGLANG_ENABLE_SPEC_V2": "True"}),
    ),
    (
        "spec_v2_gone",
        case(version="0.5.14", env={"SGLANG_ENABLE_SPEC_V2": "True"}),
        case(version="0.5.13", env={"SGLANG_ENABLE_SPEC_V2": "True"}),
    ),
    (
        "spec_steps",
        case(args={**MTP, "speculative-num-steps": 4}),
        case(args={**MTP, "speculative-num-steps": 3}),
    ),
    (
        "spec_mamba_buffer",
        case(version="0.5.13", args=MTP),
        case(version="0.5.13", args={**MTP, "mamba-scheduler-strategy": "extra_buffer"}),
    ),
    ("spec_head_not_excluded", case(args=MTP, facts=BARE_HEAD), case(args=MTP, facts=NAMED_HEAD)),
    ("kimi_cards", case(KIMI, args={"tp-size": 4}), case(KIMI, args={"tp-size": 4, "pp-size": 2})),
    ("kimi_kv_cache", case(KIMI, args={"kv-cache-dtype": "fp8_e4m3"}), case(KIMI)),
    (
        "glm5_early",
        case(version="0.5.16", repository="nvidia/GLM-5-NVFP4"),
        case(version="0.5.17", repository="nvidia/GLM-5-NVFP4"),
    ),
    (
        "glm5_kv_cache_early",
        case(version="0.5.12", repository="festr2/GLM-5-NVFP4-MTP"),
        case(version="0.5.12", repository="festr2/GLM-5-NVFP4-MTP", args={"kv-cache-dtype": "bf16"}),
    ),
    (
        "glm5_sparse_backend",
        case(GLM, args={"dsa-decode-backend": "trtllm"}),
        case(GLM, args={"dsa-decode-backend": None, "dsa-prefill-backend": None}),
    ),
    ("glm5_shared_experts", case(GLM, args={"disable-shared-experts-fusion": None}), case(GLM)),
    ("glm5_graph_batch", case(GLM, args={"cuda-graph-max-bs-decode": 512}), case(GLM)),
    ("glm5_cards", case(GLM, args={"tp-size": 4}), case(GLM)),
]


@pytest.mark.parametrize("rules_file", SETS, ids=lambda one: str(one["name"]))
def test_a_rule_set_is_sound(rules_file: dict[str, Any]) -> None:
    assert rules.problems(rules_file) == []


def test_every_rule_has_a_row() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(BY_ID)


@pytest.mark.parametrize(("rule", "found", "other"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_finds_what_it_is_for_and_nothing_beside_it(
    rule: str, found: dict[str, Any], other: dict[str, Any]
) -> None:
    assert rule in ids(found)
    assert rule not in ids(other)


@pytest.mark.parametrize(
    ("profile", "version"),
    [(QWEN, one) for one in ("0.5.9", "0.5.12", "0.5.13", "0.5.15", "0.5.16", "0.5.17", "0.5.19", "0.5.20", "0.5.23")]
    + [(KIMI, one) for one in ("0.5.13", "0.5.17", "0.5.18", "0.5.20", "0.5.23")]
    + [(GLM, one) for one in ("0.5.17", "0.5.18", "0.5.20", "0.5.23")],
)
def test_a_shipped_profile_is_clean(profile: str, version: str) -> None:
    assert ids(case(profile, version=version)) == set()


def test_a_device_without_a_gpu_is_none_of_these_cards() -> None:
    assert ids(case(args={"device": "cpu", "attention-backend": None, "kv-cache-dtype": None})) == set()


def test_other_cards_are_none_of_these_cards() -> None:
    assert ids(case(gpus={"compute_capability": "10.0"}, args={"attention-backend": "trtllm_mha"})) == set()
    assert ids(case(gpus={"compute_capability": "12.1"}, args={"attention-backend": "trtllm_mha"})) != set()
