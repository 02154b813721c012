# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the engine fit the host, and do the cards reach each other: one thing spoilt at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.kernel import Kernel, Xid
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import View
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.pci import Bridge, Slot
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import Matrix
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.facts import Space
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import CATALOGUE, Finding
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.fit_checks import least_cuda
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.model import Model, model_of
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import Launch, Wanted, launch_of
from ansible_collections.llmfleet.sglang.tests.unit.host.good import (
    CARDS,
    COMMIT,
    GB,
    GOOD,
    READING,
    VIEW,
    WANTED,
    cards,
    seen,
)

ARGUMENTS: dict[str, Any] = {"tp-size": 8, "mem-fraction-static": 0.85, "kv-cache-dtype": "fp8_e4m3"}
TP8 = replace(WANTED, launch=Launch(ARGUMENTS, {}, ("sm120",)))
# The shape of a hybrid model: a quarter of the layers have attention.
HYBRID = {
    "text_config": {
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "num_hidden_layers": 60,
        "head_dim": 256,
        "num_experts": 512,
        "full_attention_interval": 4,
    }
}


def launched(environment: dict[str, str] | None = None, **arguments: Any) -> Wanted:
    """The deployment with further launch arguments (underscores for dashes); None takes one out."""
    given = {**ARGUMENTS, **{name.replace("_", "-"): value for name, value in arguments.items()}}
    left = {name: value for name, value in given.items() if value is not None}
    return replace(TP8, launch=replace(TP8.launch, arguments=left, environment=environment or {}))


def view(**changes: Any) -> dict[str, View]:
    return {"view": replace(VIEW, **changes)}


def matrix(word: str) -> Matrix:
    return Matrix({f"GPU{one}": {f"GPU{other}": word for other in range(8)} for one in range(8)})


def slots(**changes: Any) -> dict[str, Slot]:
    """The good slots with the third card's changed."""
    return {**VIEW.slots, "GPU-2": replace(VIEW.slots["GPU-2"], **changes)}


def kernel(*xids: Xid, registry: str = "") -> Kernel:
    return replace(VIEW.kernel, xids=xids, parameters={"RegistryDwords": registry})


def joined(capability: str = "9.0") -> View:
    """Cards on an NVSwitch that joined the fabric."""
    gpus = tuple(
        replace(card, fabric_state="Completed", fabric_status="Success", compute_capability=capability)
        for card in CARDS
    )
    return replace(VIEW, topology=matrix("NV18"), reading=replace(READING, gpus=gpus))


FELL = Xid("0000:02:00.0", 79, 1, "GPU has fallen off the bus.")
GONE = Xid("0000:41:00.0", 79, 1, "GPU has fallen off the bus.")
FAULT = Xid("0000:02:00.0", 31, 4, "pid=99, name=python3")
FUSED: dict[str, Any] = {"enable_flashinfer_allreduce_fusion": True}

# What is changed about host and deployment, the finding it makes, its severity, and words of the message.
BAD: list[tuple[dict[str, Any], Wanted, str, str, str]] = [
    (view(kernel=kernel(FELL)), TP8, "gpu_xid", "warns", "Xid 79 (1 x) of GPU 2"),
    (view(kernel=kernel(GONE)), TP8, "gpu_xid", "warns", "the card at 0000:41:00.0, which nvidia-smi does not show"),
    (view(kernel=kernel(FAULT)), TP8, "gpu_xid", "informs", "Xid 31 (4 x) of GPU 2"),
    (
        view(slots=slots(width_max=16), reading=cards(link_width=4, link_width_max=4)),
        TP8,
        "gpu_link",
        "warns",
        "x4 of x16",
    ),
    (view(topology=Matrix(), problems=("it hangs",)), TP8, "gpu_topology", "informs", "it hangs"),
    (
        view(p2p=matrix("CNS")),
        TP8,
        "gpu_p2p",
        "warns",
        "28 of 28 pairs of cards cannot read each other's memory, such as",
    ),
    (view(slots=slots(iommu="translated")), TP8, "iommu_acs", "warns", "the IOMMU translates"),
    (view(slots=slots(bridges=(Bridge("0000:00:01.1", True),))), TP8, "iommu_acs", "warns", "the bridges 0000:00:01.1"),
    (
        view(slots=slots(iommu="translated", bridges=(Bridge("0000:00:01.1", True),))),
        TP8,
        "iommu_acs",
        "warns",
        "NCCL was seen to hang with both",
    ),
    (view(slots=slots(numa_node=1)), TP8, "gpu_numa", "informs", "GPUs 2 on node 1"),
    (view(topology=matrix("NODE")), TP8, "peer_loads", "informs", "(NODE)"),
    (
        view(topology=matrix("SYS")),
        launched({"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}),
        "peer_loads",
        "warns",
        "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE asks for such kernels",
    ),
    ({}, launched(enable_torch_symm_mem=True), "multicast", "warns", "enable-torch-symm-mem: this needs multicast"),
    ({}, launched(enable_nccl_nvls=True), "multicast", "warns", "enable-nccl-nvls"),
    ({}, launched(**FUSED), "multicast", "warns", "not all cards are joined by NVLinks"),
    ({}, replace(TP8, launch=replace(TP8.launch, multimem=True)), "multicast", "warns", "sglang_multimem_world_sizes"),
    (
        {"view": joined()},
        replace(TP8, compute_capability="9.0"),
        "multicast",
        "informs",
        "The cards have multicast",
    ),
    ({}, launched(tp_size=16), "tensor_parallel", "blocks", "tp-size 16 take 16 cards, and the deployment has 8"),
    ({}, launched(tp_size=4, dp_size=4), "tensor_parallel", "blocks", "take 16 cards"),
    (
        {"model": {"num_attention_heads": 20, "num_hidden_layers": 10, "hidden_size": 2560}},
        TP8,
        "tensor_parallel",
        "blocks",
        "20 attention heads cannot be split over 8 cards",
    ),
    (
        {"model": {"num_attention_heads": 48, "num_key_value_heads": 6, "num_hidden_layers": 1, "head_dim": 64}},
        TP8,
        "tensor_parallel",
        "blocks",
        "6 KV heads",
    ),
    ({"model": HYBRID}, launched(ep_size=3), "tensor_parallel", "blocks", "512 experts cannot be split over ep-size 3"),
    (view(cuda="12.9"), TP8, "cuda_lane", "blocks", "runs CUDA up to 12.9, and SGLang 0.5.23 needs 13.0"),
    (
        {**view(cuda="12.9"), "releases": {COMMIT: "13.0"}},
        TP8,
        "cuda_lane",
        "blocks",
        "the finished release needs 13.0",
    ),
    (view(cuda="12.6"), replace(TP8, sglang_version="0.5.9"), "cuda_lane", "blocks", "needs 12.8"),
    ({"memory_total": 128 * GB}, TP8, "ram", "informs", "every start reads it from the disk again"),
    (
        {"memory_total": 512 * GB},
        launched(hicache_size=100),
        "ram",
        "blocks",
        "hicache-size 100 on 8 cards take 800.0 GB",
    ),
    (
        {"shm": Space("/dev/shm", "/dev/shm", 3, GB, 10**6, total=64 * 2**20)},
        TP8,
        "shm",
        "warns",
        "/dev/shm has 0.1 GB",
    ),
    ({"shm": Space("/dev/shm", "/dev", 3, GB, 10**6)}, TP8, "shm", "blocks", "cannot be used"),
    ({"gpus": cards(power_limit=450.0, power_limit_default=600.0)}, TP8, "gpu_power_limit", "warns", "450 of 600 W"),
    ({"gpus": cards(power_limit=450.0)}, TP8, "gpu_mixed", "warns", "not alike"),
]


def found(changes: dict[str, Any], wanted: Wanted, name: str) -> list[Finding]:
    return [one for one in check(seen(**changes), wanted) if one.id == name]


@pytest.mark.parametrize(
    ("changes", "wanted", "name", "severity", "words"), BAD, ids=[f"{row[2]}-{row[3]}-{n}" for n, row in enumerate(BAD)]
)
def test_each_fault_makes_its_own_finding(
    changes: dict[str, Any], wanted: Wanted, name: str, severity: str, words: str
) -> None:
    (one,) = found(changes, wanted, name)
    assert one.severity == severity and words in one.message
    # What is not the matter is not said: the sums of memory, which are always told, aside.
    others = {other.id for other in check(seen(**changes), wanted)} - {name, "memory_fit"}
    assert others <= {"gpu_mixed", "peer_loads", "multicast"} and len(others) <= 1


def test_a_good_host_has_its_sum_of_memory_to_tell_and_nothing_else() -> None:
    (one,) = check(GOOD, TP8)
    assert (one.id, one.severity) == ("memory_fit", "informs")
    assert "97887 MiB x 0.85 = 83203 MiB for weights and KV cache; 223.0 GB of weights / 8 cards = 26584 MiB; " in (
        one.message
    )
    assert "56619 MiB left for the KV cache" in one.message


def test_weights_that_do_not_fit_are_told_with_the_sum() -> None:
    (one,) = found({}, launched(tp_size=2), "memory_fit")
    assert one.severity == "blocks"
    assert "223.0 GB of weights / 2 cards = 106335 MiB; short of 23132 MiB before any KV cache" in one.message
    (one,) = found({}, launched(tp_size=2, cpu_offload_gb=40), "memory_fit")
    assert one.severity == "informs" and "less 40960 MiB in main memory" in one.message


def test_with_the_checkpoint_there_the_tokens_are_counted() -> None:
    (one,) = found({"model": HYBRID}, TP8, "memory_fit")
    assert "15 layers x 2 x 1 KV heads x 256 x 1 = 7680 bytes a token on a card: about 7730380 tokens" in one.message
    (one,) = found({"model": HYBRID}, launched(context_length=10_000_000), "memory_fit")
    assert one.severity == "warns" and "smaller than context-length 10000000" in one.message
    (one,) = found({"model": HYBRID}, launched(kv_cache_dtype="bfloat16"), "memory_fit")
    assert "x 2 = 15360 bytes a token" in one.message


@pytest.mark.parametrize("config", [HYBRID, {}])
def test_nothing_is_said_of_an_engine_on_the_cpu(config: dict[str, Any]) -> None:
    spoilt = seen(**{**view(p2p=matrix("CNS"), cuda="11.0"), "model": config, "memory_total": GB})
    assert check(spoilt, launched(device="cpu", tp_size=16)) == []
    assert check(spoilt, WANTED) == []  # nor without knowing how it will be started


def test_one_card_has_no_ways_between_cards() -> None:
    spoilt = seen(**view(p2p=matrix("CNS"), topology=matrix("SYS"), slots=slots(iommu="translated", numa_node=1)))
    assert [one.id for one in check(spoilt, launched(tp_size=1, mem_fraction_static=None))] == []


@pytest.mark.parametrize("name", ["gpu_p2p", "iommu_acs"])
def test_without_peer_to_peer_its_obstacles_do_not_matter(name: str) -> None:
    changes = view(p2p=matrix("CNS"), slots=slots(iommu="translated"))
    assert found(changes, TP8, name)
    assert not found(changes, launched({"NCCL_P2P_DISABLE": "1"}), name)


def test_forced_peer_to_peer_makes_kernels_own_loads_fast_enough() -> None:
    assert not found(view(topology=matrix("NODE"), kernel=kernel(registry="ForceP2P=0x11;")), TP8, "peer_loads")


def test_where_multicast_is_unknown_nothing_is_concluded() -> None:
    unknown = replace(joined(), reading=replace(READING, gpus=CARDS))
    assert unknown.multicast[0] == "unknown"
    assert not found({"view": unknown}, launched(enable_torch_symm_mem=True), "multicast")


def test_with_multicast_symmetric_memory_is_fine() -> None:
    given = replace(launched(enable_torch_symm_mem=True), compute_capability="9.0")
    assert not [one for one in found({"view": joined()}, given, "multicast") if one.severity == "warns"]


def test_a_driver_that_does_not_tell_its_cuda_is_not_judged() -> None:
    assert not found(view(cuda=""), TP8, "cuda_lane")


@pytest.mark.parametrize(
    ("version", "capability", "least"),
    [
        ("0.5.10.post1", "12.0", (12, 8)),
        ("0.5.10.post1", "9.0", (12, 0)),
        ("0.5.11", "12.0", (13, 0)),
        ("main", "12.0", (13, 0)),
    ],
)
def test_the_cuda_that_a_version_needs(version: str, capability: str, least: tuple[int, int]) -> None:
    assert least_cuda(version, capability) == least


def test_few_kv_heads_are_copied() -> None:
    assert not found({"model": HYBRID}, TP8, "tensor_parallel")


def test_data_parallel_attention_shares_the_cards() -> None:
    assert launched(tp_size=8, dp_size=8, enable_dp_attention=True).launch.ranks == 8
    assert not found({"model": HYBRID}, launched(dp_size=8, enable_dp_attention=True), "tensor_parallel")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"num_attention_heads": 8}, None),
        ({"num_attention_heads": True, "num_hidden_layers": 4}, None),
        ({"num_attention_heads": 8, "num_hidden_layers": 4, "hidden_size": 512}, Model(8, 8, 64, 4)),
        (
            {
                "num_attention_heads": 64,
                "num_hidden_layers": 61,
                "kv_lora_rank": 512,
                "qk_rope_head_dim": 64,
                "n_routed_experts": 384,
                "head_dim": 128,
            },
            Model(64, 0, 128, 61, latent=576, experts=384),
        ),
        (
            {
                "num_attention_heads": 8,
                "num_hidden_layers": 4,
                "head_dim": 64,
                "layer_types": ["linear_attention", "full_attention", "linear_attention", "sliding_attention"],
            },
            Model(8, 8, 64, 2),
        ),
        (HYBRID, Model(32, 2, 256, 15, experts=512)),
    ],
)
def test_a_model_by_its_configuration(config: dict[str, Any], expected: Model | None) -> None:
    assert model_of(config) == expected


def test_latent_attention_keeps_its_cache_on_every_card() -> None:
    assert Model(64, 0, 128, 61, latent=576).kv_bytes(8, "auto") == (61 * 576 * 2, "61 layers x 576 x 2")


def test_no_secret_of_a_launch_reaches_the_host() -> None:
    deployment: dict[str, Any] = {
        "launch": {
            "arguments": {"tp-size": 8, "model-path": "/models/x", "file-storage-path": "/secret"},
            "environment": {"HF_TOKEN": "secret", "NCCL_P2P_DISABLE": "1"},
        },
        "patch_sets": [
            {"name": "sm120", "edits": [{"id": "multimem_world_sizes", "dict_entry": {"value": "[]"}}, {"id": "gate"}]}
        ],
    }
    assert launch_of(deployment) == {
        "arguments": {"tp-size": 8},
        "environment": {"NCCL_P2P_DISABLE": "1"},
        "patch_sets": ["sm120"],
        "multimem": False,
    }
    deployment["patch_sets"][0]["edits"][0] = {"id": "multimem_world_sizes", "dict_entry": {"value": "[4, 6, 8]"}}
    assert launch_of(deployment)["multimem"] is True


def test_every_finding_is_tested() -> None:
    here = Path(__file__).parent
    tests = "".join(path.read_text("utf-8") for path in (here / "test_checks.py", here / "test_fit.py"))
    others = (here.parent / "verdict" / "test_starved.py", here.parent / "benchmark" / "test_measure.py")
    tests += "".join(path.read_text("utf-8") for path in others)
    assert [name for name in CATALOGUE if not re.search(rf'"{name}"', tests)] == []
