# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up fleet: what Ansible knows of each host after a run, with hosts of every fate."""

from __future__ import annotations

from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import model

START = 1796034600.0
OLD, NEW = "0.5.22-1111111aa-2222222222222222", "0.5.23-ff542dc8f-0c39ca6572f313f0"
COMMIT = "ff542dc8fc4d2be4fb5846a2276de42f17fc644b"
CHECKPOINT = "nvidia/Qwen3.5-397B-A17B-NVFP4@9fc674748688463efc63ddb9c765d13cb8668bf9"
RUN = model.Run("deployment", "blackwell", "2026-11-30T12:03:11+00:00", "0123456789ab", "ops@controller", "0.1.0")
SECRET = "sk-made-up-key-0001"

BROKEN = """\
The engine ran out of GPU memory while it captured CUDA graphs. Lower mem-fraction-static, or cuda-graph-max-bs-decode.
Going back failed too, at "Prove that it answers again": http://10.9.0.3:30000 gave no answer at all within 900 s; the
last try said: Connection refused (111). From its journal:
  [2026-11-30 12:01:58 TP3] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB.
The state of the host now:
sglang-kimi.service: failed; it served before; its unit is as it was.
What served before is kept in /var/lib/llmfleet/qwen/snapshot.json; llmfleet.sglang.rollback tries again."""
BACK = """\
http://10.9.0.2:30000 gave a wrong answer: expected Paris, and got "!!!!!!!!!!!!!!!!".
The host serves again what it served before: sglang-kimi. Its unit is kept in /var/lib/llmfleet/qwen/rejected."""
CHANGES = [
    {"what": "service", "before": "sglang-kimi (not made by this collection)", "after": "sglang-qwen"},
    {"what": "release", "before": OLD, "after": NEW},
    {"what": "commit", "before": "1111111aa" + "0" * 31, "after": COMMIT},
    {
        "what": "checkpoint",
        "before": "moonshotai/Kimi-K2.5@163a0c55668c60711956e99362c192cb3854ca06",
        "after": CHECKPOINT,
    },
    {"what": "torch", "before": "2.13.0+cu130", "after": "2.14.1+cu130"},
    {"what": "patches", "before": "none", "after": "symm_mem_max_sizes (present), multimem_world_sizes (present)"},
    {"what": "argument --mem-fraction-static", "before": "0.85", "after": "0.9"},
    {"what": "variable NCCL_P2P_LEVEL", "before": "not set", "after": "SYS"},
]
PATCHES = [
    {
        "id": name,
        "state": "present",
        "file": f"sglang/srt/distributed/device_communicators/{file}.py",
        "digest": "3" * 64,
    }
    for name, file in (("symm_mem_max_sizes", "all_reduce_utils"), ("multimem_world_sizes", "torch_symm_mem"))
]
FINDINGS = [
    {
        "id": "iommu_acs",
        "kind": "host",
        "severity": "warns",
        "message": "The IOMMU translates for 8 cards, and ACS redirects at 4 bridges above them.",
        "evidence": "0000:20:01.1, 0000:40:01.1, 0000:80:01.1, 0000:a0:01.1",
        "advice": "Boot with iommu=pt, or switch ACS off in the firmware.",
        "accepted": False,
    },
    {
        "id": "gpu_persistence",
        "kind": "host",
        "severity": "informs",
        "message": "Persistence mode is off on all cards.",
        "evidence": "",
        "advice": "Start nvidia-persistenced.",
        "accepted": False,
    },
    {
        "id": "peer_loads",
        "kind": "rule",
        "severity": "warns",
        "message": "Kernels that load from another card are slow on this topology.",
        "evidence": "enable-flashinfer-allreduce-fusion",
        "advice": "Leave it off. Source: flashinfer issue 3903.",
        "accepted": True,
    },
]


def times(begin: float, fate: str = "new") -> dict[str, Any]:
    """What a host noted of a cut-over that began so many seconds after START."""
    at = START + begin
    steps: list[dict[str, Any]] = [
        {"step": "begin", "at": at},
        {"step": "stop", "at": at + 6.0, "service": "sglang-kimi", "ended": at + 14.5},
        {"step": "start", "at": at + 16.0, "service": "sglang-qwen", "why": "the unit is inactive"},
    ]
    if fate == "new":
        ends: list[tuple[str, float]] = [("ready", 71.0), ("answers", 78.0), ("verdict", 80.0)]
        steps += [{"step": step, "at": at + after} for step, after in ends]
    else:
        steps += [
            {"step": "failed", "at": at + 84.0},
            {"step": "stop", "at": at + 85.0, "service": "sglang-qwen", "ended": at + 90.0},
            {"step": "back", "at": at + 91.5, "services": ["sglang-kimi"]},
        ]
    if fate == "went back":
        steps += [{"step": "ready", "at": at + 150.0}, {"step": "answers", "at": at + 153.0}]
    if fate == "broken":
        steps += [{"step": "failed", "at": at + 240.0}]
    return {"schema": 1, "run": "0123456789ab", "first_run": "0123456789ab", "prepare": START - 1500, "steps": steps}


def benchmark(name: str, release: str, speed: float, draw: float, state: str) -> dict[str, Any]:
    """A line of benchmarks.jsonl as cutover_info returns it; tokens a second at 32 at a time, W of eight cards."""
    shapes = [
        {
            "input_tokens": 1024,
            "output_tokens": 512,
            "concurrency": concurrency,
            "requests": 4 * concurrency,
            "cold": 1,
            "runs": [
                {
                    "output_tokens_per_second": round(speed * share * wave, 1),
                    "total_tokens_per_second": round(3 * speed * share * wave, 1),
                    "seconds": 17.5,
                }
                for wave in (0.8, 1.0, 1.01, 0.99, 1.02, 0.985)
            ],
        }
        for concurrency, share in ((1, 0.05), (32, 1.0), (128, 1.9))
    ]
    samples = [
        {
            "second": 3.0 * at,
            "draw": draw * (0.35 if at in (0, 19, 20, 39) else 1.0 + 0.04 * (at % 5 - 2)),
            "limit": 4800.0,
            "utilisation": 99.0,
        }
        for at in range(40)
    ]
    return {
        "id": name,
        "at": "2026-11-30T12:01:00+00:00" if state == "now" else "2026-11-12T08:30:00+00:00",
        "seconds": 120.0,
        "instance": "qwen",
        "reason": "rollout",
        "release": release,
        "state": state,
        "profile": "qwen3_5_397b_nvfp4",
        "tensor_parallel": 8,
        "topology": "8 x NVIDIA RTX PRO 6000 Blackwell, SYS, no NVLink",
        "shapes": shapes,
        "samples": samples,
        "patches": [{**one, "patch_set": "sm120"} for one in PATCHES],
        "paths": [
            {
                "id": "symm_mem",
                "asked": False,
                "active": False,
                "evidence": "multicast_ptr == 0: symmetric memory is left out",
                "by": {"patch_sets": ["sm120"], "arguments": [], "environment": []},
            }
        ],
        "findings": [],
    }


def measured(now: float = 3740.0) -> list[dict[str, Any]]:
    """A baseline, and a benchmark of the new release beside it."""
    low = {
        "id": "gpu_starved",
        "severity": "warns",
        "message": "8 cards were fully used at no more than 125 of 600 W (21%): kernels run and wait.",
        "evidence": "",
        "advice": "Try the causes in this order, one at a time.",
    }
    new = benchmark("b2", NEW, now, 1000.0 if now < 1000 else 3650.0, "now")
    return [benchmark("b1", OLD, 3740.0, 3600.0, "then"), {**new, "findings": [low] if now < 1000 else []}]


def measure(host: dict[str, Any], lines: list[dict[str, Any]], result: dict[str, Any] | None = None) -> None:
    """Let a host have these benchmarks, of which this run made the last one, or what its result says."""
    host["sglang_noted"]["benchmarks"] = lines
    host["sglang_benchmark_result"] = {"benchmark": lines[-1]} if result is None else result


def host(number: int, fate: str = "new", begin: float = 0.0, **more: Any) -> dict[str, Any]:
    """What Ansible knows of a host. more: keys of what cutover_info returned."""
    verdicts: dict[str, Any] = {
        "new": {
            "serves": True,
            "changed": True,
            "checked": False,
            "model": "qwen3.5-397b-a17b",
            "address": f"10.9.0.{number}:30000",
        },
        "went back": {"serves": False, "restored": True, "message": BACK},
        "broken": {"serves": False, "restored": False, "message": BROKEN},
    }
    touched = fate in verdicts
    noted = {
        "mine": touched,
        "now": START + 1000,
        "clock_ahead": 0.4,
        "times": times(begin, fate) if touched else {},
        "phase": {"new": "serving", "went back": "restored"}.get(fate, "cutover"),
        "served": ["sglang-kimi"],
        "release": NEW if touched else OLD,
        "commit": COMMIT,
        "checkpoint": CHECKPOINT,
        "model": "qwen3.5-397b-a17b",
        "service": "sglang-qwen",
        "patches": PATCHES,
        "changes": CHANGES,
        "benchmarks": [],
        "problems": [],
        **more,
    }
    return {
        "sglang_deployment": {
            "name": "qwen",
            "service": "sglang-qwen",
            "served_model_name": "qwen3.5-397b-a17b",
            "listen": {"host": f"10.9.0.{number}", "port": 30000},
            "launch": {"arguments": {}, "environment": {}},
            "gpus": {},
            "build": {"version": "0.5.23"},
            "patch_sets": [],
            "profile": "q",
        },
        "sglang_prepared": {"done": True, "message": ""},
        "sglang_service_plan": {"reason": "the unit is not there yet"},
        "sglang_build_release": {"id": NEW},
        "sglang_api_key": SECRET,
        **({"sglang_verdict": verdicts[fate]} if touched else {}),
        "sglang_noted": noted,
    }


def fleet(size: int, *, benchmarks: bool = False) -> dict[str, dict[str, Any]]:
    """Hosts by name. The second went back, the third is broken, the last was not touched, unless there are too few."""
    fates = dict.fromkeys(range(1, size + 1), "new")
    if size >= 3:
        fates |= {2: "went back", 3: "broken"}
    if size >= 4:
        fates[size] = "untouched"
    batch = {number: 0 if number == 1 else 1 if number <= max(2, size // 10) else 2 for number in fates}
    found = {}
    for number, fate in fates.items():
        one = found[f"gpu-{number:02d}"] = host(number, fate, 110.0 * batch[number] + 1.7 * (number % 7))
        if benchmarks and fate == "new" and (number == 1 or size > 3):
            measure(one, measured(3690.0))
    return found


def made(hosts: dict[str, dict[str, Any]], run: model.Run = RUN) -> dict[str, Any]:
    """The report of a fleet of which all hosts can be reached, with findings on each."""
    return model.report(run, list(hosts), hosts, list(hosts), dict.fromkeys(hosts, FINDINGS))
