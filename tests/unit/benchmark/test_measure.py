# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What serves is measured, with where it comes from; a benchmark that fails leaves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import measure, record, running
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import BenchFailed
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.sampling import Sampler, look

from tests.unit.benchmark.case import ALONE, FAST, KEY, RELEASE, SHAPE, Serving, release


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """A host on which an instance of ours serves."""
    return Serving(tmp_path)


def test_it_says_what_was_measured(serving: Serving) -> None:
    found = measure.benchmark(serving.request(quality=1.0, reason="rollout"), serving.machine())
    assert [run.output_tokens_per_second for run in found.shapes[0].runs] == list(FAST)
    assert (found.release, found.version, found.commit[:9]) == (RELEASE, "0.5.23", "ff542dc8f")
    assert (found.tensor_parallel, found.patch_sets, found.reason, found.quality) == (2, ("sm120",), "rollout", 1.0)
    assert found.topology == "2 x NVIDIA RTX PRO 6000 Blackwell Server Edition, SYS, NVLink none"
    assert found.arguments["tp-size"] == "2" and found.arguments["sleep-on-idle"] is True
    assert "config" not in found.arguments
    assert found.patches == (
        {"patch_set": "sm120", "id": "edit_of_sm120", "state": "present", "file": "sglang/x.py", "digest": "5f0c"},
    )
    assert found.packages == {"torch": "2.14.1", "flashinfer_python": "0.7.2"}
    assert (found.state, found.checkpoint, found.model) == ("s1", "nvidia/Q@9f", "qwen3.5")
    assert found.resolved == {"tp-size": 2, "sleep-on-idle": True}


def test_no_secret_is_in_it(serving: Serving) -> None:
    serving.fake.journal = [f"Skipping allreduce fusion, key {KEY}"]
    found = measure.benchmark(serving.request(), serving.machine())
    text = json.dumps(found.as_dict())
    assert KEY not in text and "hunter2" not in text and "me:pass" not in text
    assert found.environment == {"HTTPS_PROXY": "***", "MY_API_TOKEN": "***", "NCCL_P2P_LEVEL": "SYS"}


def test_equal_deployments_have_the_same_digest_and_others_another(serving: Serving) -> None:
    one = measure.benchmark(serving.request(), serving.machine())
    same = measure.benchmark(serving.request(), serving.machine())
    assert one.arguments_digest == same.arguments_digest and one.id != same.id
    assert record.digest({**one.arguments, "tp-size": "4"}) != one.arguments_digest


def test_each_run_has_a_seed_of_its_own_and_each_benchmark_the_same_ones(serving: Serving) -> None:
    measure.benchmark(serving.request(shapes=(SHAPE, ALONE), runs=4), serving.machine())
    seeds = [seed for _target, _shape, seed in serving.asked]
    assert len(set(seeds)) == 8
    serving.asked.clear()
    measure.benchmark(serving.request(shapes=(SHAPE, ALONE), runs=4), serving.machine())
    assert [seed for _target, _shape, seed in serving.asked] == seeds


def test_only_the_cards_of_the_instance_count(serving: Serving) -> None:
    found = measure.benchmark(serving.request(visible=(1,)), serving.machine())
    assert found.topology == "1 x NVIDIA RTX PRO 6000 Blackwell Server Edition"


def test_a_host_without_cards_is_measured_too(serving: Serving) -> None:
    serving.fake.gpu_problem = "missing"
    found = measure.benchmark(serving.request(), serving.machine())
    assert found.topology == "no GPU" and found.samples == ()


def test_what_takes_too_long_fails_with_what_can_be_done(serving: Serving) -> None:
    ticks = iter(range(0, 10000, 25))
    with pytest.raises(BenchFailed, match=r"2 of 6 runs .* within the 60 s .*sglang_benchmark_timeout"):
        measure.benchmark(serving.request(), serving.machine(now=lambda: float(next(ticks))))


def test_a_service_that_was_restarted_meanwhile_is_not_measured(serving: Serving) -> None:
    def restarted(*given: Any) -> Any:
        serving.fake.units["sglang-qwen.service"]["MainPID"] = "99"
        return Serving.measure(serving, *given)

    with pytest.raises(BenchFailed, match="was restarted while it was measured"):
        measure.benchmark(serving.request(), serving.machine(measure=restarted))


def test_nothing_is_measured_without_a_shape(serving: Serving) -> None:
    with pytest.raises(BenchFailed, match="the profile qwen3_5_397b_nvfp4 has no 'benchmark'"):
        measure.benchmark(serving.request(shapes=()), serving.machine())


def test_a_service_that_does_not_run_or_is_not_ours_is_refused(serving: Serving) -> None:
    serving.fake.add_unit("sglang-kimi.service", active="inactive")
    with pytest.raises(running.NotServing, match="sglang-kimi is inactive"):
        measure.benchmark(serving.request(service="sglang-kimi"), serving.machine())
    serving.fake.add_process(20, "/opt/kimi/python -m sglang.launch_server", unit="sglang-kimi.service")
    serving.fake.add_unit("sglang-kimi.service", main_pid=20)
    with pytest.raises(running.NotServing, match="was not deployed by this collection"):
        measure.benchmark(serving.request(service="sglang-kimi"), serving.machine())


def test_starved_cards_are_a_finding(serving: Serving) -> None:
    serving.fake.loads = {0: ("100", "125.00"), 1: ("100", "125.00")}

    def slow(*given: Any) -> Any:
        sampler.samples.extend([replace(one, second=float(n)) for n in range(3)])
        return Serving.measure(serving, *given)

    with Sampler(serving.fake.run, every=0.01) as sampler:
        while not sampler.samples:
            pass
        one = sampler.samples[0]
    assert one.cards == look(serving.fake.run)
    found = measure._starved(sampler_of([one] * 3), running_of(serving), serving.request())
    assert [finding.id for finding in found] == ["gpu_starved"]
    assert "125 of 600 W" in found[0].message


def sampler_of(samples: list[record.Sample]) -> Sampler:
    """A sampler that has seen these."""
    sampler = Sampler(lambda argv, timeout: None)  # type: ignore[arg-type,return-value]
    sampler.samples = samples
    return sampler


def running_of(serving: Serving) -> running.Running:
    """What serves."""
    return running.read(serving.fake.run, "sglang-qwen", serving.root, serving.fake.proc)


def test_arguments_are_read_as_they_were_meant() -> None:
    argv = [
        "python",
        "-m",
        "sglang.launch_server",
        "--tensor-parallel-size",
        "8",
        "--seed=-1",
        "--flag",
        "--lora",
        "a",
        "b",
    ]
    assert running.parse_arguments(argv) == {"tp-size": "8", "seed": "-1", "flag": True, "lora": "a b"}


def test_patches_without_a_known_set_are_told_too() -> None:
    built = release()
    built["inputs"]["patch_sets"] = []
    assert [one["patch_set"] for one in running.patches_of(built)] == [""]
