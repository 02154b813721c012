# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with the real engine: what slows it is found and undone, what changes nothing is not kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testinfra.host import Host

from tests.faults.breaking import RECORD, Deployment, deploy, refused, restored
from tests.fleet.control import PROJECT, Run
from tests.fleet.hosts import Serving, root, serving

PROFILE = {"sglang_profile": "qwen3_5_397b_nvfp4"}
TRIAL = PROJECT / "playbooks" / "trial.yml"
BENCHMARK = PROJECT / "playbooks" / "benchmark.yml"
# As few runs as a verdict takes, with time enough on a busy machine, and long prompts.
SHAPE = {"input_tokens": 1024, "output_tokens": 2, "concurrency": 2, "requests": 24}
SHORT = {"sglang_benchmark_runs": 4, "sglang_benchmark_timeout": 1500, "sglang_benchmark_shapes": [SHAPE]}
# A pass of the engine for every eight tokens of a prompt: a loss that other load on the machine does not hide.
SLOW = {"arguments": {"chunked-prefill-size": 8}}
NOTHING = {"environment": {"LLMFLEET_TEST": "changes nothing"}}
FUSION: dict[str, Any] = {
    "patch_sets": ["sm120_fusion"],
    "arguments": {"flashinfer-allreduce-fusion-backend": "trtllm"},
}
# On a machine without a GPU, SGLang takes this backend at the parser and raises when it loads it.
RAISES = {"arguments": {"attention-backend": "flashinfer"}}


def trial(change: dict[str, Any], **variables: Any) -> Run:
    """A trial to its end."""
    return Deployment({**PROFILE, **SHORT, "sglang_trial": change, **variables}, book=TRIAL).end(timeout=3500)


def last(host: Host, run: Run) -> dict[str, Any]:
    """The trial that the run recorded."""
    assert "Tried on " in run.output, run.output
    line: dict[str, Any] = json.loads(root(host, f"tail -n 1 {RECORD}/trials.jsonl"))
    return line


@pytest.fixture
def baseline(node: Host, deployed: Serving) -> Serving:
    """What the inventory says serves: no other is a trial's baseline, and faults before may have left one."""
    del deployed
    deploy().must_pass()
    return serving(node)


def test_a_change_that_slows_the_engine_is_found_and_undone(node: Host, baseline: Serving) -> None:
    run = trial(SLOW)
    told = last(node, run)
    assert told["result"] == "worse", json.dumps(told["verdict"], indent=1)
    assert run.rc == 2 and told["restored"] is True and told["kept"] is False
    [before], [after] = told["baseline_figures"].values(), told["candidate_figures"].values()
    assert after < before and f"{before:.5g} tokens a second before, {after:.5g}" in run.output
    assert told["facts"][0]["active"] == "yes: /server_info says 8"
    assert "The host serves the baseline again" in run.output
    after_all = restored(node, baseline)
    assert after_all.pid != baseline.pid
    assert "demo-only-key" not in root(node, f"cat {RECORD}/trials.jsonl {RECORD}/benchmarks.jsonl")


def test_a_change_that_changes_nothing_is_not_kept(node: Host, baseline: Serving) -> None:
    run = trial(NOTHING, sglang_benchmark_runs=6)
    told = last(node, run)
    # Where the runs scatter too much it is the latter.
    assert told["result"] in ("same", "no verdict"), json.dumps(told["verdict"], indent=1)
    assert run.rc == (0 if told["result"] == "same" else 2)
    assert told["restored"] is True and told["facts"][0]["active"] == "yes: the process has it"
    restored(node, baseline)


def test_a_patch_that_the_engine_does_not_use_is_inert(node: Host, baseline: Serving) -> None:
    run = trial(FUSION)
    told = last(node, run)
    assert run.rc == 2 and told["result"] == "inert", json.dumps(told, indent=1)
    [patch, *_arguments] = told["facts"]
    assert patch["patched"][0].startswith("fusion_gate: present in sglang/srt/layers/")
    assert "tensor parallel size 1" in patch["active"]
    restored(node, baseline)


def test_a_change_that_raises_is_a_failed_start_with_its_diagnosis(node: Host, baseline: Serving) -> None:
    run = trial(RAISES)
    told = last(node, run)
    assert run.rc == 2 and told["result"] == "failed start" and told["candidate"] == "", json.dumps(told, indent=1)
    assert "From its journal:" in told["reason"] and told["restored"] is True
    restored(node, baseline)


def test_an_engine_that_dies_while_it_is_measured_is_said_to_have(node: Host, baseline: Serving) -> None:
    run = Deployment({**PROFILE, **SHORT}, book=BENCHMARK)
    run.until("benchmark of ", timeout=400)
    root(node, "pkill -9 -f '^sglang::scheduler'")
    ended = run.end(timeout=600)
    assert ended.rc == 2 and "died while it was measured" in refused(ended), ended.output
    assert "was killed from outside" in refused(ended)
    assert "AGAINST LAST" in ended.output and "Report: " in ended.output
    deploy().must_pass()  # which waits until it serves again
    assert serving(node).pid != baseline.pid


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"sglang_trial": {}}, "sglang_trial names no change"),
        ({"sglang_trial": {"patch_sets": ["sm120"]}}, "sglang_trial changes nothing"),
    ],
)
def test_what_cannot_be_tried_touches_nothing(
    node: Host, baseline: Serving, variables: dict[str, Any], words: str
) -> None:
    run = Deployment({**PROFILE, **variables}, book=TRIAL).end()
    assert words in refused(run)
    assert serving(node) == baseline
