# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial came to is recorded and told: both figures, three facts apart, and what serves now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge, paths, record
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import recap
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import conclude, gate
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial.conclude import Outcome
from ansible_collections.llmfleet.sglang.plugins.modules import benchmark_info, trial_record

from tests.unit.benchmark.case import FAST, PATHS, RELEASE, SHAPE, SLOW, TOPOLOGY, made, release

CHANGE: dict[str, Any] = {
    "patch_sets": ["sm120_fusion"],
    "arguments": {"flashinfer-allreduce-fusion-backend": "trtllm", "chunked_prefill_size": 8192},
    "environment": {"NCCL_P2P_LEVEL": "PHB", "HUB_TOKEN": "hunter2"},
}
WENT_BACK = Outcome("The benchmark says worse.", True, False, True, "0.5.23-candidate", True)
PATCHES = [{"patch_set": "sm120_fusion", "id": "fusion_gate", "state": "present", "file": "a.py", "digest": "5f0c"}]


def candidate(*figures: float, log: tuple[str, ...] = ()) -> Benchmark:
    """The change's benchmark, judged against the baseline."""
    seen = paths.Seen(
        patch_sets=["sm120", "sm120_fusion"],
        arguments={"flashinfer-allreduce-fusion-backend": "trtllm"},
        environment={"NCCL_P2P_LEVEL": "PHB"},
        tensor_parallel=8,
        log=log,
        info=None,
    )
    found = made(
        *figures,
        id="after",
        state="new",
        resolved={"chunked-prefill-size": 4096},
        environment={"NCCL_P2P_LEVEL": "PHB"},
        tried={"NCCL_P2P_LEVEL": "as asked", "HUB_TOKEN": "another value"},
        paths=tuple(one.as_dict() for one in paths.taken(PATHS, seen)),
    )
    concerned = [one.id for one in PATHS if paths.concern(one, CHANGE)]
    judged = judge.with_paths(judge.verdict(found, made(*FAST)), concerned, found.paths)
    return replace(found, baseline="b-old", verdict=judge.as_dict(judged))


def line(after: Benchmark | None, outcome: Outcome = WENT_BACK) -> dict[str, Any]:
    """The trial's line."""
    return conclude.conclude("2026-11-30T11:00:00+00:00", CHANGE, made(*FAST), after, PATCHES, outcome)


def facts(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The facts by what they are of."""
    return {one["what"]: one for one in told["facts"]}


def test_3740_that_became_236_is_worse_undone_and_told_with_both_figures() -> None:
    told = line(candidate(*SLOW, log=("FlashInfer AllReduce Fusion enabled and workspace initialized: x",)))
    assert told["result"] == "worse" and told["restored"] is True and told["kept"] is False
    assert told["baseline_figures"] == {SHAPE.name: 3740.0} and told["candidate_figures"] == {SHAPE.name: 236.0}
    text = conclude.summary(told)
    assert "worse: 3740 became 236 (-93.7%)" in text
    assert f"{SHAPE.name}: 3740 tokens a second before, 236 tokens a second with the change" in text
    # The arithmetic is of the verdict, and stands below it.
    rows = text.splitlines()
    assert rows.index(f"  {told['verdict']['arithmetic'][0]}") < rows.index("patch set sm120_fusion:")
    assert f"The host serves the baseline again (release {RELEASE})." in text


def test_patched_active_and_faster_are_three_facts() -> None:
    told = facts(line(candidate(*SLOW, log=("FlashInfer AllReduce Fusion enabled and workspace initialized: x",))))
    fusion = told["patch set sm120_fusion"]
    assert fusion["patched"] == ["fusion_gate: present in a.py, SHA-256 5f0c"]
    assert fusion["active"].startswith("yes: FlashInfer AllReduce Fusion enabled")
    assert fusion["faster"].startswith("worse: 3740 became 236")
    assert told["--flashinfer-allreduce-fusion-backend trtllm"]["active"].startswith("yes: ")
    assert told["--chunked-prefill-size 8192"]["active"] == "no: /server_info says 4096"
    assert told["NCCL_P2P_LEVEL=PHB"]["active"] == "yes: the process has it"
    assert told["HUB_TOKEN=***"]["active"] == "no: the process has another value"


def test_what_was_taken_out_is_told_as_that() -> None:
    """Not as a path that was wanted and is left out."""
    change = {"arguments": {"enable-torch-symm-mem": None, "sleep-on-idle": False}}
    after = replace(candidate(*FAST), arguments={"sleep-on-idle": True})
    told = conclude.facts(change, after, PATCHES, "better: x")
    assert [(one["what"], one["active"]) for one in told] == [
        ("--enable-torch-symm-mem taken out", "yes: the process has it no more"),
        ("--sleep-on-idle taken out", "no: the process has it still"),
    ]
    [never, _other] = conclude.facts(change, None, PATCHES, "failed start: x")
    assert never["active"] == "unknown: it never served"


@pytest.mark.parametrize(
    ("value", "how", "what", "active"),
    [
        ("1", "as asked", "X=1", "yes: the process has it"),
        ("1", "absent", "X=1", "no: the process has it not"),
        ("1", "another value", "X=1", "no: the process has another value"),
        (None, "as asked", "X taken out", "yes: the process has it no more"),
        (None, "another value", "X taken out", "no: the process has it still"),
    ],
)
def test_a_variable_is_active_with_its_value(value: Any, how: str, what: str, active: str) -> None:
    after = made(*FAST, tried={"X": how}, environment={"X": "1"})
    [one] = conclude.facts({"environment": {"X": value}}, after, (), "same: x")
    assert (one["what"], one["active"]) == (what, active)
    # As it was recorded before values were compared.
    [old] = conclude.facts({"environment": {"X": value}}, made(*FAST, environment={"X": "1"}), (), "same: x")
    assert old["active"] == "unknown: nothing tells"


def test_a_variable_that_switches_a_path_says_whether_the_path_is_taken() -> None:
    name = "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE"
    [path] = [one for one in PATHS if name in one.environment]
    by = {"patch_sets": (), "arguments": (), "environment": (name,)}
    taken = {"id": path.id, "asked": True, "active": False, "evidence": "left off", "source": "", "by": by}
    for how, active in (("as asked", "no: left off"), ("absent", "no: the process has it not")):
        after = made(*FAST, tried={name: how}, paths=(taken,))
        assert conclude.facts({"environment": {name: "1"}}, after, (), "x")[0]["active"] == active


def test_a_path_that_was_skipped_is_inert() -> None:
    told = line(candidate(*FAST, log=("x: Skipping allreduce fusion.",)))
    assert told["result"] == "inert"
    assert facts(told)["patch set sm120_fusion"]["active"] == "no: x: Skipping allreduce fusion."


def test_a_further_gate_that_raises_is_a_failed_start_with_its_diagnosis() -> None:
    cause = "FlashInfer's all-reduce fusion is switched on, and this FlashInfer has no kernels.\nFrom its journal:\n  x"
    told = line(None, replace(WENT_BACK, cause=cause, measured=False))
    assert told["result"] == "failed start" and told["candidate"] == "" and told["verdict"] is None
    assert told["reason"] == cause
    text = conclude.summary(told)
    assert "3740 tokens a second before, not measured with the change" in text
    assert "active: unknown: it never served" in text and "serves the baseline again" in text
    assert not gate.won([told], "0.5.23", 8, TOPOLOGY)


def test_a_measurement_that_failed_is_no_failed_start() -> None:
    assert line(None, replace(WENT_BACK, cause="The benchmark failed"))["result"] == "not measured"


def test_a_win_is_kept_recorded_and_opens_the_gate_for_its_like() -> None:
    told = line(candidate(*(1.3 * one for one in FAST)), Outcome("", True, True, False, "0.5.23-candidate", True))
    assert told["result"] == "better" and told["kept"] is True and told["restored"] is None
    assert "The host serves the change now (release 0.5.23-candidate)" in conclude.summary(told)
    assert gate.won([told], "0.5.23", 8, TOPOLOGY)


def test_what_was_better_and_did_not_stay_is_no_win_and_its_cause_is_told() -> None:
    cause = "The record cannot be written: No space left on device.\nSee what fills /var."
    told = line(candidate(*(1.3 * one for one in FAST)), replace(WENT_BACK, cause=cause))
    assert told["verdict"]["result"] == "better" and told["result"] == "failed start"
    assert told["reason"].startswith("It was better (") and told["reason"].endswith(f"and did not stay: {cause}")
    assert facts(told)["patch set sm120_fusion"]["faster"].startswith("better: ")
    text = conclude.summary(told)
    assert cause in text and "The host serves the baseline again" in text
    assert not gate.won([told], "0.5.23", 8, TOPOLOGY)
    variables = {
        "sglang_verdict": {"serves": False, "restored": True, "message": cause},
        "sglang_trial_result": {"trial": told},
    }
    assert recap.fate("h", variables, alive=True).failed
    same = {**variables, "sglang_trial_result": {"trial": {"result": "same"}}}
    assert not recap.fate("h", same, alive=True).failed


@pytest.mark.parametrize(
    ("same", "kept", "result"),
    [("keep", False, "failed start"), ("keep", True, "same"), ("back", False, "same")],
)
def test_the_same_that_was_to_be_kept_and_did_not_stay_is_said_so(same: str, kept: bool, result: str) -> None:
    cause = "The record cannot be written: No space left on device."
    told = line(candidate(*FAST), replace(WENT_BACK, cause=cause, kept=kept, fails_on=conclude.fails_on(same)))
    assert told["verdict"]["result"] == "same" and told["result"] == result
    text = conclude.summary(told)
    if result == "failed start":
        assert told["reason"].startswith("It was same (") and told["reason"].endswith(f"and did not stay: {cause}")
        assert cause in text and "The host serves the baseline again" in text
    variables = {"sglang_verdict": {"serves": False, "restored": True}, "sglang_trial_result": {"trial": told}}
    assert recap.fate("h", variables, alive=True).failed is (result == "failed start")


def test_a_baseline_that_did_not_come_back_is_said_so() -> None:
    told = line(candidate(*SLOW), replace(WENT_BACK, restored=False))
    text = conclude.summary(told)
    assert "does not serve the baseline again" in text
    # It is the last line of what is printed, and what serves is said by what the run fails with.
    assert "above" not in text and "The message with which the run ends says what it serves" in text


def test_a_recorded_baseline_is_told() -> None:
    after = candidate(*SLOW)
    assert "recorded" not in conclude.summary(line(after))
    told = line(replace(after, verdict={**(after.verdict or {}), "recorded": True}))
    assert "The baseline is a recorded benchmark, and was not measured in this trial." in conclude.summary(told)


def test_the_verdict_of_a_trial_is_a_sentence_and_a_journal_is_left_alone() -> None:
    assert "beyond the threshold of 10.0%.\n" in conclude.summary(line(candidate(*SLOW)))
    cause = "It ended.\nFrom its journal:\n  x"
    assert f"failed start: {cause}\n" in conclude.summary(line(None, replace(WENT_BACK, cause=cause, measured=False)))


def test_no_secret_is_in_it() -> None:
    told = line(candidate(*SLOW))
    assert "hunter2" not in json.dumps(told) and "hunter2" not in conclude.summary(told)


def test_what_goes_back_is_the_operators_choice_where_nothing_changed() -> None:
    assert "same" in conclude.fails_on("back") and "same" not in conclude.fails_on("keep")
    for one in ("worse", "no verdict", "inert", "no baseline"):
        assert one in conclude.fails_on("keep")
    assert "better" not in conclude.fails_on("back")


def run(module: Any, given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run a module."""
    with patch_module_args(given), pytest.raises(SystemExit):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize("check", [False, True])
def test_the_module_adds_a_line_that_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    place = tmp_path / "state" / "qwen"
    for one in (made(*FAST), candidate(*SLOW)):
        record.append(place / record.NAME, one)
    built = tmp_path / "root" / "releases" / RELEASE
    built.mkdir(parents=True)
    (built / "release.json").write_text(json.dumps(release(["sm120", "sm120_fusion"])))
    asked = {
        "instance": "qwen",
        "state_folder": str(tmp_path / "state"),
        "root": str(tmp_path / "root"),
        "change": CHANGE,
        "baseline": "b-old",
        "candidate": "after",
        "release": RELEASE,
        "measured": True,
        "restored": True,
        "gate": True,
        "fails_on": ["worse"],
    }
    done = run(trial_record, {**asked, "_ansible_check_mode": check}, capsys)
    assert done["changed"] is True and done["trial"]["result"] == "worse"
    assert "fusion: present in sglang/x.py, SHA-256 5f0c" in done["summary"]
    info = {"instance": "qwen", "state_folder": str(tmp_path / "state")}
    told = run(benchmark_info, info, capsys)
    assert [one["result"] for one in told["trials"]] == ([] if check else ["worse"])
    assert [one["id"] for one in told["benchmarks"]] == ["b-old", "after"] and told["problems"] == []
    to_stay = run(trial_record, {**asked, "fails_on": [], "cause": "No space.", "_ansible_check_mode": True}, capsys)
    assert to_stay["trial"]["result"] == "failed start" and "did not stay: No space." in to_stay["trial"]["reason"]
    lost = run(trial_record, {**asked, "candidate": "nobody"}, capsys)
    assert lost["failed"] and "There is no benchmark nobody" in lost["msg"]
