# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with the real engine: what slows it is found and undone, what changes nothing is not kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from testinfra.host import Host

from tests.faults.breaking import NODE, RECORD, SERVES_AGAIN, Deployment, deploy, gpus, refused, restored
from tests.fleet.control import INVENTORY, PROJECT, Run
from tests.fleet.hosts import Serving, root, serving, wait

PROFILE = {"sglang_profile": "qwen3_5_397b_nvfp4"}
TRIAL = PROJECT / "playbooks" / "trial.yml"
BENCHMARK = PROJECT / "playbooks" / "benchmark.yml"
ARGUMENTS = yaml.safe_load((INVENTORY / "group_vars/sglang/cpu.yml").read_text())["sglang_arguments"]
# As few runs as a verdict takes, with time enough on a busy machine, and long prompts.
SHAPE = {"input_tokens": 1024, "output_tokens": 2, "concurrency": 2, "requests": 24}
# Runs of some seconds: the cards are looked at every two.
LASTING = {"input_tokens": 64, "output_tokens": 32, "concurrency": 4, "requests": 128}
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


def test_a_change_that_makes_it_faster_is_kept(node: Host, deployed: Serving) -> None:
    del deployed
    slow = {"sglang_arguments": {**ARGUMENTS, **SLOW["arguments"]}}
    deploy(slow).must_pass()
    before = serving(node)
    run = trial({"arguments": {"chunked-prefill-size": None}}, **slow)
    told = last(node, run)
    assert run.rc == 0 and told["result"] == "better", json.dumps(told["verdict"], indent=1)
    assert told["kept"] is True and not told["restored"]
    [slower], [faster] = told["baseline_figures"].values(), told["candidate_figures"].values()
    assert slower < faster and f"{slower:.5g} tokens a second before, {faster:.5g}" in run.output
    kept = serving(node)
    assert kept.unit != before.unit
    # What the trial kept is what the inventory describes without the argument.
    again = deploy().must_pass()
    assert again.changed == {NODE: 0} and serving(node) == kept


def test_a_canary_that_is_slower_goes_back_and_both_figures_are_told(node: Host, baseline: Serving) -> None:
    Deployment({**PROFILE, **SHORT}, book=BENCHMARK).end(timeout=1500).must_pass()
    slow = {"sglang_arguments": {**ARGUMENTS, **SLOW["arguments"]}, "sglang_benchmark": "canary"}
    run = deploy({**SHORT, **slow}, timeout=1800)
    assert run.rc == 2 and "worse" in refused(run), run.output
    figures = [json.loads(line) for line in root(node, f"tail -n 2 {RECORD}/benchmarks.jsonl").splitlines()]
    assert [one["reason"] for one in figures] == ["asked", "rollout"]
    assert figures[1]["verdict"]["result"] == "worse", json.dumps(figures[1]["verdict"], indent=1)
    assert SERVES_AGAIN in run.output and "went back" in run.output
    restored(node, baseline)


def test_cards_that_wait_are_found_while_they_are_measured(node: Host, baseline: Serving) -> None:
    gpus(waits_watts=122)
    try:
        asked = {**PROFILE, **SHORT, "sglang_benchmark_shapes": [LASTING]}
        run = Deployment(asked, book=BENCHMARK).end(timeout=1500).must_pass()
    finally:
        gpus()
    starved = "8 cards were fully used at no more than 122 of 600 W (20%)"
    measured = json.loads(root(node, f"tail -n 1 {RECORD}/benchmarks.jsonl"))
    assert [one["id"] for one in measured["findings"]] == ["gpu_starved"], measured["findings"]
    assert starved in measured["findings"][0]["message"] and starved in run.output
    assert serving(node) == baseline


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


def test_a_benchmark_ends_with_the_controller_that_asked_for_it(node: Host, baseline: Serving) -> None:
    lines = f"cat {RECORD}/benchmarks.jsonl 2>/dev/null | wc -l"
    before = int(root(node, lines))
    asked = {**PROFILE, **SHORT, "sglang_benchmark_shapes": [LASTING], "sglang_benchmark_runs": 8}
    run = Deployment(asked, book=BENCHMARK)
    running = "pgrep --full '[s]glang.bench_serving' || true"
    wait("bench_serving", lambda: root(node, running) != "", timeout=200, interval=0.5)
    run.kill_alone()
    wait("its end", lambda: root(node, running) == "", timeout=60, interval=0.5)
    assert serving(node) == baseline
    after = Deployment({**PROFILE, **SHORT}, book=BENCHMARK).end(timeout=900).must_pass()
    assert "took over the lock of" in after.output
    assert int(root(node, lines)) == before + 1  # of what was cut short nothing is recorded, then or later


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
