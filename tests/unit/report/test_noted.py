# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host knows of its last cut-over: host_snapshot and service_start note it, cutover_info tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import noted
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.lock import Lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import unit as unit_of_systemd
from ansible_collections.llmfleet.sglang.plugins.modules import cutover_info, host_snapshot, service_start
from ansible_collections.llmfleet.sglang.tests.unit.cutover.host import Host, make

RUN = "a" * 12
OLD, NEW = "0.5.22-aaaaaaaaa-1111111111111111", "0.5.23-bbbbbbbbb-2222222222222222"
SERVICES = ["sglang-kimi", "sglang-qwen"]
RECORD = {"instance": "qwen", "service": "sglang-qwen", "release": NEW, "served_model_name": "qwen-model", "schema": 1}


def unit(release: str, fraction: str) -> bytes:
    lines = [
        "[Unit]",
        "X-Llmfleet=qwen",
        "[Service]",
        f"ExecStart=/opt/sglang/releases/{release}/venv/bin/python -m sglang.launch_server \\",
        f"    --mem-fraction-static {fraction} \\",
        "    --served-model-name qwen-model",
        "Environment=HF_TOKEN=hf_made_up",
    ]
    return "\n".join([*lines, ""]).encode()


class Case:
    """A host, and the modules as the roles call them."""

    def __init__(self, host: Host, capsys: pytest.CaptureFixture[str]) -> None:
        self.host, self.capsys = host, capsys
        self.folder = host.state / "qwen"
        self.folder.mkdir(parents=True)
        for release in (OLD, NEW):
            (host.releases / release).mkdir(parents=True)
            content = {
                "id": release,
                "inputs": {"commit": release[7:16]},
                "patched": [{"id": "one", "state": "present", "file": "sglang/x.py"}],
                "digests": {"src/python/sglang/x.py": "5f0c"},
                "packages": ["numpy==2.0" if release == OLD else "numpy==2.1"],
            }
            (host.releases / release / "release.json").write_text(json.dumps(content))
        mine = Lock(run=RUN, owner="ops", reason="deploys", controller="c", pid=1, process_start="1")
        lock.take(host.state / "lock.json", mine, 3600, 1000.0)

    def run(self, module: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Run a module, and return its answer."""
        with patch_module_args(given), pytest.raises(SystemExit):
            module.main()
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer

    def snapshot(self, state: str, check: bool = False, **more: Any) -> dict[str, Any]:
        """Run host_snapshot."""
        given = {"path": str(self.folder / "snapshot.json"), "instance": "qwen", "state": state, **more}
        return self.run(host_snapshot, {**given, "_ansible_check_mode": check})

    def steps(self) -> list[str]:
        """The steps that are noted."""
        return [one["step"] for one in times.read(self.folder / times.NAME).get("steps", [])]

    def look(self, run: str = RUN) -> dict[str, Any]:
        """Run cutover_info."""
        given = {"instance": "qwen", "state_folder": str(self.host.state), "releases": str(self.host.releases)}
        answer = self.run(cutover_info, {**given, "run": run, "asked_at": 1.0})
        assert answer["changed"] is False and answer["clock_ahead"] > 1e9
        return answer

    def deploy(self, release: str, fraction: str) -> None:
        """What the roles do from the snapshot to the start."""
        self.snapshot("taken", services=SERVICES)
        self.host.put("sglang-qwen", unit(release, fraction))
        self.host.serves("sglang-qwen")

    def conclude(self, release: str) -> None:
        """What the role does once it answers."""
        record = {**RECORD, "release": release}
        self.snapshot("concluded", record=record, verify={"model": "x"}, releases=str(self.host.releases))


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Case:
    """A host on which a foreign sglang-kimi serves."""
    return Case(make(tmp_path, monkeypatch), capsys)


def test_a_host_of_which_nothing_is_known(case: Case) -> None:
    answer = case.look()
    assert (answer["mine"], answer["times"], answer["phase"], answer["changes"]) == (False, {}, "", [])
    assert answer["problems"] == [] and answer["benchmarks"] == []


def test_the_mark_of_a_host_that_was_drained_is_told(case: Case) -> None:
    assert case.look()["drained"] == ""
    mark = case.folder / "drained.json"
    mark.write_text("{}")
    assert case.look()["drained"] == str(mark)


def test_from_a_foreign_service_to_ours(case: Case) -> None:
    case.deploy(OLD, "0.85")
    case.conclude(OLD)
    assert case.steps() == ["begin", "verdict"]
    answer = case.look()
    assert answer["mine"] and answer["phase"] == "serving" and answer["served"] == ["sglang-kimi"]
    assert (answer["release"], answer["model"], answer["commit"]) == (OLD, "qwen-model", "aaaaaaaaa")
    assert answer["patches"] == [{"id": "one", "state": "present", "file": "sglang/x.py", "digest": "5f0c"}]
    assert [one["what"] for one in answer["changes"]] == ["service"]
    assert answer["times"]["prepare"] == 1000.0
    assert case.look("b" * 12)["mine"] is False


def test_from_one_release_of_ours_to_the_next_and_no_secret_leaves_the_host(case: Case) -> None:
    case.deploy(OLD, "0.85")
    case.conclude(OLD)
    case.deploy(NEW, "0.9")
    case.conclude(NEW)
    answer = case.look()
    rows = {one["what"]: (one["before"], one["after"]) for one in answer["changes"]}
    assert rows == {
        "release": (OLD, NEW),
        "commit": ("aaaaaaaaa", "bbbbbbbbb"),
        "package numpy": ("2.0", "2.1"),
        "argument --mem-fraction-static": ("0.85", "0.9"),
    }
    assert "hf_made_up" not in json.dumps(answer)


def test_what_was_tried_is_told_where_the_host_went_back(case: Case) -> None:
    case.deploy(OLD, "0.85")
    case.conclude(OLD)
    case.deploy(NEW, "0.9")
    case.snapshot("switched_back")
    rejected = case.folder / "rejected" / "sglang-qwen.service"
    prepared = case.folder / "next" / "sglang-qwen.service"
    prepared.parent.mkdir()
    prepared.write_bytes(unit(NEW, "0.9"))
    case.snapshot("restored", prepared=str(prepared), rejected=str(rejected))
    assert case.steps()[-1] == "back"
    answer = case.look()
    assert answer["phase"] == "restored" and answer["release"] == NEW
    assert ("release", OLD, NEW) in [(one["what"], one["before"], one["after"]) for one in answer["changes"]]
    later = case.look("b" * 12)
    assert (later["mine"], later["release"], later["commit"]) == (False, OLD, "aaaaaaaaa")
    assert later["changes"] == []


def test_check_runs_and_runs_that_change_nothing_note_nothing(case: Case) -> None:
    case.snapshot("taken", check=True, services=SERVICES)
    assert case.steps() == []
    case.deploy(OLD, "0.85")
    case.conclude(OLD)
    before = (case.folder / times.NAME).read_bytes()
    case.conclude(OLD)
    case.snapshot("concluded", check=True, record=RECORD, releases=str(case.host.releases))
    assert (case.folder / times.NAME).read_bytes() == before


def test_a_start_is_noted_with_its_reason_before_it_is_made(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(service_start, "_start", lambda *_, **__: seen.append(case.steps()))
    monkeypatch.setattr(unit_of_systemd, "read", lambda _: unit_of_systemd.parse_show("LoadState=loaded"))
    given = {"name": "sglang-qwen", "state": "x", "times_file": str(case.folder / times.NAME)}
    case.run(service_start, {**given, "_ansible_check_mode": True})
    assert case.steps() == []
    case.run(service_start, given)
    assert seen == [["start"]]
    [step] = times.read(case.folder / times.NAME)["steps"]
    assert (step["service"], step["why"]) == ("sglang-qwen", "the unit is unknown")


def test_what_cannot_be_read_is_named_and_is_no_failure(case: Case) -> None:
    (case.folder / "snapshot.json").write_text("torn")
    (case.folder / "benchmarks.jsonl").write_text("torn\n")
    answer = case.look()
    assert len(answer["problems"]) == 2 and answer["benchmarks"] == []


def test_the_newest_benchmarks_come_with_their_baselines_and_with_fewer_samples(case: Case) -> None:
    cards = [
        {"uuid": f"GPU-{at}", "utilisation": 90.0 + at, "draw": 100.0, "limit": 600.0, "clock": None} for at in (0, 2)
    ]
    line = {
        "schema": 1,
        "id": "b0",
        "at": "2026-11-30T10:00:00+00:00",
        "seconds": 1.0,
        "instance": "qwen",
        "profile": "q",
        "release": OLD,
        "tensor_parallel": 8,
        "topology": "x",
        "shapes": [
            {
                "input_tokens": 1,
                "output_tokens": 1,
                "concurrency": 1,
                "requests": 1,
                "cold": 0,
                "runs": [{"output_tokens_per_second": 1.0, "total_tokens_per_second": 2.0, "seconds": 1.0}],
            }
        ],
        "samples": [{"second": float(at), "cards": cards} for at in range(120)],
    }
    lines = [{**line, "id": f"b{at}"} for at in range(10)]
    lines[-1] |= {"baseline": "b1", "verdict": {"result": "same"}}
    (case.folder / "benchmarks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    answer = case.look()
    assert [one["id"] for one in answer["benchmarks"]] == ["b1", "b5", "b6", "b7", "b8", "b9"]
    samples = answer["benchmarks"][-1]["samples"]
    assert len(samples) == noted.MOST_SAMPLES
    assert samples[0] == {"second": 0.0, "draw": 200.0, "limit": 1200.0, "utilisation": 91.0}
