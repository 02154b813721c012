# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patched is not active: what the running engine says of a path decides."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import paths

from tests.unit.benchmark.case import PATHS

FUSION = {"flashinfer-allreduce-fusion-backend": "trtllm"}
SYMM = {"enable-torch-symm-mem": True}
IPC = {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}
_SYMM = "TorchSymmMemCommunicator: "
_IPC = "FlashInfer PCIe-IPC "

# A log line for each pattern of roles/sglang_benchmark/files/paths.yml, as 0.5.23 writes it.
SKIPPED: list[tuple[str, str]] = [
    ("flashinfer_allreduce_fusion", "FlashInfer workspace preflight probe failed (x). Skipping allreduce fusion."),
    (
        "flashinfer_allreduce_fusion",
        "Failed to initialize FlashInfer workspace (backend=x): y. Disabling flashinfer allreduce fusion permanently.",
    ),
    (
        "flashinfer_allreduce_fusion",
        "FlashInfer allreduce fusion disabled globally because workspace initialization failed on at least one rank.",
    ),
    (
        "flashinfer_allreduce_fusion",
        "FlashInfer AllReduce fusion disabled: the 8 ranks of this group are not confirmed to share one NVLink clique",
    ),
    ("flashinfer_allreduce_fusion", "FlashInfer comm not available, skipping workspace initialization"),
    (
        "flashinfer_allreduce_fusion",
        "flashinfer.comm unified allreduce_fusion API is not available, falling back to standard implementation",
    ),
    (
        "flashinfer_allreduce_fusion",
        "FlashInfer allreduce fusion is forcibly disabled via --enforce-disable-flashinfer-allreduce-fusion.",
    ),
    (
        "flashinfer_allreduce_fusion",
        "Disable --flashinfer-allreduce-fusion-backend because deterministic inference is enabled.",
    ),
    ("torch_symm_mem", f"{_SYMM}Device capability 12 not supported, communicator is not available."),
    ("torch_symm_mem", f"{_SYMM}World size 6 not supported, communicator is not available."),
    ("torch_symm_mem", f"{_SYMM}torch symmetric memory multicast operations are not supported."),
    (
        "pcie_ipc_allreduce",
        "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE is set but this FlashInfer build has no pcie_ipc_comm; falling back to NCCL "
        "all-reduce.",
    ),
    ("pcie_ipc_allreduce", "Deterministic inference is on; leaving PCIe-IPC all-reduce off. Its kernels pick a tactic"),
    ("pcie_ipc_allreduce", f"{_IPC}workspace (max_numel=1) failed: x; reductions stay on NCCL"),
    ("pcie_ipc_allreduce", f"{_IPC}all-reduce serves bf16 only; torch.float16 reductions stay on NCCL."),
]
ACTIVE = [
    (
        "flashinfer_allreduce_fusion",
        "FlashInfer AllReduce Fusion enabled and workspace initialized: backend=trtllm, rank=0, world_size=8",
    ),
    ("pcie_ipc_allreduce", f"{_IPC}workspace built (world=8, max_numel=1, hidden=2)"),
]


def seen(log: list[str], **changes: Any) -> paths.Seen:
    """An engine with everything asked for, at tensor parallel size 8, that logged this."""
    given: dict[str, Any] = {
        "patch_sets": ["sm120", "sm120_fusion"],
        "arguments": {**FUSION, **SYMM},
        "environment": IPC,
        "tensor_parallel": 8,
        "info": None,
        **changes,
    }
    return paths.Seen(log=["server up", *log], **given)


def taken(log: list[str], name: str, **changes: Any) -> paths.Taken:
    """What is said of one path."""
    [one] = [one for one in paths.taken(PATHS, seen(log, **changes)) if one.id == name]
    return one


@pytest.mark.parametrize(("name", "line"), SKIPPED)
def test_a_line_by_which_the_engine_says_that_it_left_the_path_out(name: str, line: str) -> None:
    one = taken([f"[2026-11-30 10:00:00 TP0] {line}"], name)
    assert one.asked and one.active is False and line in one.evidence


@pytest.mark.parametrize(("name", "line"), ACTIVE)
def test_a_line_by_which_it_says_that_the_path_runs(name: str, line: str) -> None:
    assert taken([line], name).active is True


def test_every_pattern_has_a_line_and_every_path_a_source() -> None:
    for path in PATHS:
        for kind, rows in (("skipped", SKIPPED), ("active", ACTIVE)):
            lines = [line for name, line in rows if name == path.id]
            unused = [one.pattern for one in getattr(path, kind) if not any(one.search(line) for line in lines)]
            assert unused == [], f"{path.id}, {kind}: a log line of it belongs in this file"
        assert path.source


def test_left_out_goes_before_running() -> None:
    assert taken([ACTIVE[0][1], SKIPPED[2][1]], "flashinfer_allreduce_fusion").active is False


def test_a_silent_engine_tells_nothing() -> None:
    one = taken([], "flashinfer_allreduce_fusion")
    assert one.active is None and "neither the log" in one.evidence


def test_a_patch_without_its_argument_does_nothing() -> None:
    one = taken([], "flashinfer_allreduce_fusion", arguments={})
    assert not one.asked and one.active is False and "it takes --enable-flashinfer-" in one.evidence


def test_a_single_card_has_nothing_to_reduce() -> None:
    one = taken([], "flashinfer_allreduce_fusion", tensor_parallel=1)
    assert one.active is False and "tensor parallel size 1" in one.evidence


def test_what_server_info_calls_off_is_off() -> None:
    off = {"flashinfer_allreduce_fusion_backend": None, "enable_flashinfer_allreduce_fusion": False}
    one = taken([], "flashinfer_allreduce_fusion", info=off)
    assert one.active is False and "/server_info: flashinfer_allreduce_fusion_backend is None" in one.evidence
    on = {**off, "flashinfer_allreduce_fusion_backend": "trtllm"}
    assert taken([], "flashinfer_allreduce_fusion", info=on).active is None


def test_a_path_that_nothing_asks_for_is_not_spoken_of() -> None:
    assert paths.taken(PATHS, seen([], patch_sets=[], arguments={}, environment={})) == []


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"patch_sets": ["sm120_fusion"]}, ["flashinfer_allreduce_fusion"]),
        ({"arguments": {"enable_torch_symm_mem": True}}, ["torch_symm_mem"]),
        ({"environment": IPC}, ["pcie_ipc_allreduce"]),
        ({"arguments": {"chunked-prefill-size": 64}, "patch_sets": None}, []),
        ({"arguments": {"enable-torch-symm-mem": None}}, []),
        ({"arguments": {"enable-torch-symm-mem": False}}, []),
        ({"arguments": {"flashinfer-allreduce-fusion-backend": "none"}}, []),
        ({"environment": {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "0"}}, []),
        ({"environment": {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "False"}}, []),
        ({"arguments": {"enable-torch-symm-mem": None}, "environment": IPC}, ["pcie_ipc_allreduce"]),
    ],
)
def test_which_paths_a_change_is_about(change: dict[str, Any], names: list[str]) -> None:
    assert [one.id for one in PATHS if paths.concern(one, change)] == names


@pytest.mark.parametrize("wrong", [{"skipped": ["("]}, {"id": "x", "skipped": None}])
def test_data_that_is_wrong_is_named(wrong: dict[str, Any]) -> None:
    row: dict[str, Any] = {key: [] for key in paths.KEYS}
    row |= {"id": "mine", "least_tensor_parallel": 1, "source": "s", **wrong}
    row = {key: value for key, value in row.items() if value is not None}
    with pytest.raises(ValueError, match=r"the path '(mine|x)' has"):
        paths.read([row])
