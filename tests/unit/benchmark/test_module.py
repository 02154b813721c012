# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module benchmark: a line for a benchmark, none for one that failed, and the verdict in it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.filter.benchmark import benchmark_table, benchmark_verdict
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import measure, record, table
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import BenchFailed
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Run
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import detail
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.modules import benchmark

from tests.unit.benchmark.case import FAST, ROOT, SLOW, Serving, kept, made

SHAPE = {"input_tokens": 1024, "output_tokens": 512, "concurrency": 32, "requests": 128}


class Case:
    """A host on which an instance serves, and the module as the role calls it."""

    def __init__(self, serving: Serving, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.serving, self.capsys = serving, capsys
        self.place = serving.state / "qwen" / record.NAME
        monkeypatch.setattr(benchmark, "Machine", serving.machine)

    def run(self, **changes: Any) -> dict[str, Any]:
        """Run the module."""
        given = {
            "service": "sglang-qwen",
            "instance": "qwen",
            "profile": "qwen3_5_397b_nvfp4",
            "root": str(self.serving.root),
            "state_folder": str(self.serving.state),
            "host": "0.0.0.0",
            "port": 30000,
            "shapes": [SHAPE],
            "quality": 1.0,
            **changes,
        }
        with patch_module_args(given), pytest.raises(SystemExit):
            benchmark.main()
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer

    def before(self, *figures: float, **changes: Any) -> None:
        """What was measured here before."""
        topology = measure.topology_of(self.serving.machine().look(self.serving.fake.run, 1))
        record.append(self.place, made(*figures, tensor_parallel=2, topology=topology, **changes))


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Case:
    """A host on which an instance of ours serves."""
    return Case(Serving(tmp_path), monkeypatch, capsys)


def test_a_benchmark_adds_one_line(case: Case) -> None:
    done = case.run()
    assert done["changed"] is True and done["against"] is None and done["benchmark"]["verdict"] is None
    assert [one.as_dict() for one in kept(case.place)] == [done["benchmark"]]
    assert case.serving.asked[0][0].host == "127.0.0.1"


def test_a_failed_one_adds_none_and_says_why(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        if len(case.serving.asked) == 3:
            raise BenchFailed("bench_serving ended with 1:\n  ValueError: no")
        return Serving.measure(case.serving, *given)

    monkeypatch.setattr(benchmark, "Machine", lambda **given: case.serving.machine(**given, measure=fails))
    done = case.run()
    assert done["failed"] and done["msg"].endswith("bench_serving ended with 1:\n  ValueError: no")
    assert not case.place.exists()


def test_check_mode_measures_nothing(case: Case) -> None:
    done = case.run(_ansible_check_mode=True)
    assert done["skipped"] is True and case.serving.asked == [] and not case.place.exists()


def test_it_is_judged_against_what_served_before(case: Case) -> None:
    case.before(*SLOW, id="then", state="s0")
    (case.serving.state / "qwen" / "record.json").write_text(json.dumps({"state": "s0"}))
    case.before(*FAST, id="another", state="s9")
    done = case.run(against="before", reason="rollout")
    assert done["against"]["id"] == "then" and done["benchmark"]["baseline"] == "then"
    assert done["benchmark"]["verdict"]["result"] == "better"
    assert kept(case.place)[-1].verdict == done["benchmark"]["verdict"]


def test_a_loss_is_told_with_both_figures(case: Case) -> None:
    case.before(*FAST, id="then", state="s0")
    case.serving.figures = iter(SLOW)
    done = case.run(against="before")
    assert benchmark_verdict(done).startswith("The benchmark says worse: 3740 became 236 (-93.7%)")


def test_what_was_judged_and_lost_is_no_baseline(case: Case) -> None:
    case.before(*FAST, id="good", state="s7")
    case.before(*SLOW, id="lost", state="s9", verdict={"result": "worse", "reason": "r"})
    done = case.run(against="before")
    assert done["against"]["id"] == "good" and done["benchmark"]["verdict"]["result"] == "same"


def test_a_baseline_that_a_trial_took_from_the_record_is_told(case: Case) -> None:
    case.before(*FAST, id="then", state="s0", at="2026-11-28T10:05:00+00:00")
    assert "recorded" not in case.run(against="then")["benchmark"]["verdict"]
    assert case.run(against="then", recorded=True)["benchmark"]["verdict"]["recorded"] is True
    text = table.table({"gpu-07": kept(case.place)}, {})
    assert text.count("held against the recorded benchmark of 2026-11-28T10:05, and not against one") == 1


def test_the_reasons_are_those_of_the_record_and_each_has_words(case: Case) -> None:
    assert "value of reason must be one of: " + ", ".join(record.REASONS) in case.run(reason="boredom")["msg"]
    assert set(detail.BY) == set(record.REASONS)
    specs = yaml.safe_load((ROOT / "roles/sglang_benchmark/meta/argument_specs.yml").read_text("utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert options["sglang_benchmark_reason"]["choices"] == list(record.REASONS)


def test_without_a_baseline_that_is_what_is_recorded(case: Case) -> None:
    done = case.run(against="before")
    assert done["benchmark"]["verdict"]["result"] == "no baseline" and done["benchmark"]["baseline"] == ""
    assert "no baseline: nothing of its kind was measured here before" in benchmark_verdict(done)


def test_a_named_baseline_has_to_be_there(case: Case) -> None:
    done = case.run(against="nobody")
    assert done["failed"] and "there is no benchmark nobody in the record" in done["msg"]


def test_an_inert_change_is_called_so(case: Case) -> None:
    case.before(*FAST, id="then", state="s0")
    data = yaml.safe_load((ROOT / "roles/sglang_benchmark/files/paths.yml").read_text("utf-8"))
    done = case.run(against="then", paths=data, change={"patch_sets": ["sm120"]})
    assert done["benchmark"]["verdict"]["result"] == "inert"
    assert "the patch alone does nothing" in done["benchmark"]["verdict"]["reason"]


def test_a_win_by_taking_a_path_out_is_a_win(case: Case) -> None:
    case.before(*SLOW, id="then", state="s0")
    data = yaml.safe_load((ROOT / "roles/sglang_benchmark/files/paths.yml").read_text("utf-8"))
    done = case.run(against="then", paths=data, change={"arguments": {"enable-torch-symm-mem": None}})
    assert done["benchmark"]["paths"][0]["active"] is False
    assert done["benchmark"]["verdict"]["result"] == "better"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runs": 2, "cold": 2}, "of 2 runs 2 cannot be cold"),
        ({"shapes": [{**SHAPE, "requests": 3}]}, "32 at a time would never be reached"),
        ({"shapes": []}, "has no 'benchmark'"),
        ({"service": "sglang-other"}, "sglang-other is inactive"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(case: Case, changes: dict[str, Any], words: str) -> None:
    done = case.run(**changes)
    assert done["failed"] and words in done["msg"] and case.serving.asked == []


def test_it_ends_when_nobody_waits_for_the_answer(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(benchmark, "STANDARD_OUTPUT", writer)
    assert "failed" not in case.run()
    os.close(reader)
    done = case.run()
    os.close(writer)
    assert done["failed"] and "the run that asked for the benchmark has gone" in done["msg"]
    assert len(case.serving.asked) == 6 and len(kept(case.place)) == 1


def test_who_fell_out_of_a_run_stands_below_its_table(case: Case) -> None:
    hostvars: dict[str, dict[str, Any]] = {
        "h1": {"sglang_measured": {"benchmarks": [case.run()["benchmark"]], "problems": []}},
        "h2": {},
        "h3": {"sglang_benchmark_result": {"benchmark": {"id": "b"}}},
    }
    told = benchmark_table(["h1"], hostvars, list(hostvars)).splitlines()
    assert "h2: it was lost, or failed (see above), and this run recorded nothing there." in told
    assert "h3: it was measured and that was recorded, but its record could not be read at the end." in told
    assert "h2" not in benchmark_table(["h1"], hostvars)


@pytest.mark.parametrize(("number", "words"), [(3, "nothing more was measured"), (6, "the figures were thrown away")])
def test_it_ends_when_another_run_takes_over_the_host(
    case: Case, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    """Also during its last run: what is recorded was measured by one at a time."""
    path = case.serving.state / "lock.json"
    mine = lock.Lock("a1", "alice@ops1", "measures sglang-qwen", "c1", 100, "5@boot")
    lock.take(path, mine, 60, 0.0)

    def taken_over(*given: Any) -> Run:
        if len(case.serving.asked) == number - 1:
            other = replace(mine, run="b1", owner="bob@ops2")
            assert lock.take(path, other, 60, 1.0, broken="a1").held
        return Serving.measure(case.serving, *given)

    monkeypatch.setattr(benchmark, "Machine", lambda **given: case.serving.machine(**given, measure=taken_over))
    done = case.run()
    assert done["failed"] and f"{words}, for another run holds the host's lock now (bob@ops2" in done["msg"]
    assert len(case.serving.asked) == number and not case.place.exists()


def test_the_values_of_variables_on_trial_are_recorded_as_the_process_has_them(case: Case) -> None:
    done = case.run(change={"environment": {"NCCL_P2P_LEVEL": "PHB", "MY_API_TOKEN": "hunter2", "X": None}})
    tried = {"NCCL_P2P_LEVEL": "another value", "MY_API_TOKEN": "as asked", "X": "as asked"}
    assert done["benchmark"]["tried"] == tried and kept(case.place)[0].tried == tried
    assert "hunter2" not in case.place.read_text()
