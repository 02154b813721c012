# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What serves is measured, with where it comes from; a benchmark that fails leaves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import ended, measure, record, running, table
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import Abandoned, BenchFailed
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Run
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.sampling import Sampler, look
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import MANIFEST
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.kernel import Kernel
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import Matrix

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
    serving.start(11, NCCL_P2P_LEVEL="PHB")
    another = measure.benchmark(serving.request(), serving.machine())
    assert another.arguments == one.arguments and another.arguments_digest != one.arguments_digest
    assert record.digest({**one.arguments, "tp-size": "4"}, one.environment) != one.arguments_digest


def test_the_checkpoint_is_that_of_the_process_and_not_of_the_last_deployment(serving: Serving) -> None:
    assert measure.benchmark(serving.request(), serving.machine()).checkpoint == "nvidia/Q@9f"
    (serving.state / "qwen" / "record.json").unlink()  # a first canary has none before it is concluded
    assert measure.benchmark(serving.request(), serving.machine()).checkpoint == "nvidia/Q@9f"
    (serving.weights / MANIFEST).unlink()
    assert measure.benchmark(serving.request(), serving.machine()).checkpoint == ""


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


def test_a_service_that_died_under_the_load_is_said_to_have_with_its_cause(serving: Serving) -> None:
    def dies(*_given: Any) -> Any:
        serving.fake.units["sglang-qwen.service"].update(
            ActiveState="activating", MainPID="0", Result="exit-code", ExecMainStatus="1"
        )
        serving.fake.journal = ["server up", f"torch.OutOfMemoryError: CUDA out of memory. Tried {KEY}"]
        raise BenchFailed("bench_serving ended with 1:\n  Fail to set RLIMIT_NOFILE")

    with pytest.raises(BenchFailed) as caught:
        measure.benchmark(serving.request(), serving.machine(measure=dies))
    text = str(caught.value)
    first, *rest = text.splitlines()
    assert first.startswith(
        "sglang-qwen.service died while it was measured (result exit-code, status 1), and systemd starts it again. "
    )
    assert "[" in first and "the log says: torch.OutOfMemoryError" in first and KEY not in text
    assert rest[-1] == "All of it: journalctl --unit=sglang-qwen.service --lines=500 --no-pager"
    assert "RLIMIT" not in text


def test_an_end_of_which_nothing_is_known_is_told_with_the_last_exception(serving: Serving) -> None:
    def dies(*_given: Any) -> Any:
        serving.fake.units["sglang-qwen.service"]["MainPID"] = "99"
        serving.fake.journal = ["ValueError: nobody knows"]
        raise BenchFailed("3 of 4 requests failed:\n  x")

    with pytest.raises(BenchFailed, match=r"was restarted .*10, now 99\).*not known. .*ValueError: nobody knows"):
        measure.benchmark(serving.request(), serving.machine(measure=dies))


def test_a_run_knows_whether_the_process_is_there_that_it_measures(serving: Serving) -> None:
    measure.benchmark(serving.request(), serving.machine())
    target, *_rest = serving.asked[0]
    assert target.serves()
    (serving.fake.root / "proc" / "10").rename(serving.fake.root / "proc" / "11")
    assert not target.serves()


def test_a_service_that_ends_late_is_waited_for(serving: Serving) -> None:
    """Requests fail before the engine has ended as a whole."""
    unit = serving.fake.units["sglang-qwen.service"]
    seconds: list[float] = []

    def passes(second: float) -> None:
        seconds.append(second)
        unit["MainPID"] = "99" if len(seconds) == 3 else unit["MainPID"]

    clock = ended.Clock(lambda: sum(seconds), passes)
    before = running_of(serving).unit
    assert "was restarted" in ended.why(serving.fake.run, before, (), 15.0, clock) and len(seconds) == 3
    seconds.clear()
    after = replace(before, main_pid=99)
    assert ended.why(serving.fake.run, after, (), 2.0, clock) == "" and len(seconds) == 2


def test_a_benchmark_that_failed_by_itself_says_what_it_said(serving: Serving) -> None:
    def fails(*_given: Any) -> Any:
        raise BenchFailed("bench_serving ended with 1:\n  ValueError: no")

    with pytest.raises(BenchFailed) as caught:
        measure.benchmark(serving.request(), serving.machine(measure=fails))
    assert str(caught.value) == "bench_serving ended with 1:\n  ValueError: no"

    def fails_with_the_bus(*_given: Any) -> Any:
        serving.fake.bus_problem = "Connection refused"
        fails()

    with pytest.raises(BenchFailed, match="ValueError: no"):
        measure.benchmark(serving.request(), serving.machine(measure=fails_with_the_bus))


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
    view = serving.machine().look(serving.fake.run, 1)
    found = measure._starved([one] * 3, view, running_of(serving), serving.request())
    assert [finding.id for finding in found] == ["gpu_starved"]
    assert "125 of 600 W" in found[0].message


@pytest.mark.parametrize(
    ("changes", "visible", "cause"),
    [
        ({"p2p": Matrix({"GPU0": {"GPU1": "CNS"}, "GPU1": {"GPU0": "CNS"}})}, (), "exchange through main memory"),
        ({"kernel": Kernel("", {}, (), None, None)}, (), "all-reduce by kernels"),  # nothing was found
        ({"power_limit_default": 700.0}, (), "clocks that are held down"),
        ({"power_limit_default": 700.0}, (1,), "all-reduce by kernels"),  # the other card's is not its own
        ({"link_width": 4, "link_width_max": 16}, (), "a slow PCIe link"),
    ],
)
def test_the_causes_of_starving_are_in_the_order_that_the_host_gives(
    serving: Serving, changes: dict[str, Any], visible: tuple[int, ...], cause: str
) -> None:
    serving.fake.loads = {0: ("100", "125.00"), 1: ("100", "125.00")}
    seen = serving.machine().look(serving.fake.run, 1)
    if not set(changes) <= {"p2p", "kernel"}:
        first, *others = seen.reading.gpus
        seen = replace(seen, reading=replace(seen.reading, gpus=(replace(first, **changes), *others)))
    else:
        seen = replace(seen, **changes)
    sample = record.Sample(1.0, look(serving.fake.run))
    [found] = measure._starved([sample] * 3, seen, running_of(serving), serving.request(visible=visible))
    assert f"Most likely: {cause}" in found.message


@pytest.mark.parametrize(
    ("readings", "told"), [(0, "No reading of the cards"), (1, "One reading of"), (2, "2 readings of"), (3, "")]
)
def test_runs_that_are_too_short_to_tell_are_said_so_where_there_are_cards(
    serving: Serving, readings: int, told: str
) -> None:
    serving.fake.loads = {0: ("100", "590.00"), 1: ("100", "590.00")}
    view = serving.machine().look(serving.fake.run, 1)
    samples = [record.Sample(1.0, look(serving.fake.run))] * readings
    found = measure._starved(samples, view, running_of(serving), serving.request())
    assert [one.id for one in found] == (["gpu_hardly_seen"] if told else [])
    assert all(one.message.startswith(told) and one.severity == "informs" for one in found)
    none = replace(view, reading=replace(view.reading, gpus=()))
    assert measure._starved([], none, running_of(serving), serving.request()) == []


def test_a_note_that_nobody_knows_stands_below_the_table(serving: Serving) -> None:
    found = measure.benchmark(serving.request(), serving.machine())
    text = "No reading of the cards fell within the warm runs: too few to tell whether they starve."
    assert [one["id"] for one in found.findings] == ["gpu_hardly_seen"]
    assert table.table({"gpu-07": [found]}, {}).endswith(f"gpu-07, {found.at[:16]}: {text}")


class Slow:
    """Stands for bench_serving: each run takes 20 seconds to start, and then measures for ten."""

    def __init__(self, serving: Serving, busy: Callable[[float], tuple[float, float]]) -> None:
        self.serving, self.busy, self.second = serving, busy, 0.0

    def now(self) -> float:
        return self.second

    def measure(self, *given: Any) -> Run:
        self.second += 30.0
        return Serving.measure(self.serving, *given)

    def __call__(self, *_given: Any, **_more: Any) -> Slow:
        return self

    def __enter__(self) -> Slow:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def samples(self) -> list[record.Sample]:
        """One every two seconds, of one card with this use and draw."""
        times = [float(at) for at in range(0, int(self.second), 2)]
        return [record.Sample(at, (record.Card("GPU-1", *self.busy(at), 600.0),)) for at in times]


@pytest.mark.parametrize(
    ("busy", "starved"),
    [
        # While requests ran it starved, and while bench_serving started it did nothing.
        (lambda second: (100.0, 125.0) if second % 30 >= 20 else (0.0, 30.0), True),
        # Only the cold run was as it should be.
        (lambda second: (100.0, 590.0 if second <= 30 else 125.0), True),
        # It worked while requests ran; something else starved it between.
        (lambda second: (100.0, 590.0) if second % 30 >= 20 else (100.0, 125.0), False),
    ],
)
def test_only_what_cards_did_while_requests_ran_says_whether_they_starve(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, busy: Callable[[float], tuple[float, float]], starved: bool
) -> None:
    slow = Slow(serving, busy)
    monkeypatch.setattr(measure, "Sampler", slow)
    request = serving.request(runs=2, timeout=600.0)
    found = measure.benchmark(request, serving.machine(measure=slow.measure, now=slow.now))
    assert [one["id"] for one in found.findings] == (["gpu_starved"] if starved else [])


def test_samples_are_counted_from_where_the_benchmark_began(serving: Serving) -> None:
    with Sampler(serving.fake.run, began=100.0, every=0.01, clock=lambda: 142.0) as sampler:
        while not sampler.samples:
            pass
    assert sampler.samples[0].second == 42.0


def test_a_failed_run_is_given_time_to_show_that_the_service_died(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that ended well is not: it would only wait for nothing."""
    seen: list[float] = []

    def why(*given: Any) -> str:
        seen.append(given[-1])
        return "it died late" if given[-1] else ""

    def fails(*_given: Any) -> Any:
        raise BenchFailed("2 of 4 requests failed")

    monkeypatch.setattr(ended, "why", why)
    with pytest.raises(BenchFailed, match="it died late"):
        measure.benchmark(serving.request(), serving.machine(measure=fails, patience=7.0))
    measure.benchmark(serving.request(), serving.machine(patience=7.0))
    assert seen == [7.0, 0.0]


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


def test_nothing_more_is_measured_for_a_run_that_has_gone(serving: Serving) -> None:
    machine = serving.machine(over=lambda: "it has gone" if len(serving.asked) == 3 else "")
    with pytest.raises(Abandoned, match="nothing more was measured, for it has gone"):
        measure.benchmark(serving.request(), machine)
    assert len(serving.asked) == 3 and serving.asked[0][0].over() == "it has gone"
