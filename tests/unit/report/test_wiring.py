# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""deploy.yml writes a report on the controller and names it in the recap; a check run says where it would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import record
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Stage

from tests.unit.benchmark.case import FAST, SLOW, made

TWO = HOSTS[:2]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, TWO)


def reports(stage: Stage) -> list[str]:
    folder = stage.folder / "reports"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def latest(stage: Stage) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((stage.folder / "reports" / "latest.json").read_text("utf-8"))
    return content


def test_a_rollout_that_failed_has_a_report_without_a_secret(stage: Stage) -> None:
    said: dict[str, Any] = {"sglang_without_trial": "on", "sglang_accepted_rules": ["fusion_without_win"]}
    keys: dict[str, Any] = {"sglang_api_key": "sk-made-up-0001", "sglang_smg_api_key": "smg-made-up-0002"}
    role = stage.folder / "ansible_collections/llmfleet/sglang/roles/sglang_verify/tasks/main.yml"
    quotes = {"msg": "The gateway {{ sglang_smg_api_key }} refuses {{ sglang_api_key }}."}
    role.write_text(json.dumps([{"ansible.builtin.fail": quotes, "when": "inventory_hostname == 'h02'"}]))
    run = stage.deploy(**said, **keys)
    assert run.rc == 2
    page, _latest = [name for name in reports(stage) if name.startswith("inventory-qwen-deployment-")]
    assert f"Report: {stage.folder}/reports/{page}" in run.output
    report = latest(stage)
    assert {one["host"]: one["state"] for one in report["hosts"]} == {"h01": "new", "h02": "went back"} == run.states
    assert report["by"] and report["run"] and report["version"]
    assert [one.partition(":")[0] for one in report["warnings"]] == [
        "sglang_without_trial is set",
        "sglang_accepted_rules has fusion_without_win",
    ]
    assert [one for one in report["warnings"] if one not in run.output] == []
    texts = [path.read_text("utf-8") for path in (stage.folder / "reports").iterdir()]
    assert len(texts) == 4 and not [text for text in texts for key in keys.values() if key in text]
    assert "The gateway *** refuses ***." in report["hosts"][1]["message"]
    assert "TASK [Write the report on the controller]" in run.output
    assert "ok: [h01]" in run.output.rpartition("TASK [Write the report on the controller]")[2].splitlines()[1]


def test_a_check_run_writes_none(stage: Stage) -> None:
    run = stage.deploy(check=True)
    assert run.rc == 0 and f"The report would be written to {stage.folder}/reports." in run.output
    assert reports(stage) == []


def test_a_folder_that_cannot_be_is_refused_before_any_host_is_touched(stage: Stage) -> None:
    (stage.folder / "file").write_text("")
    run = stage.deploy(sglang_report_to=str(stage.folder / "file" / "x"))
    assert run.rc == 2 and "sglang_report_to has to be a folder" in run.output
    assert run.came_to("preflight") == []


def test_a_benchmark_reports_what_it_measured_and_no_earlier_one(stage: Stage) -> None:
    """All hosts have the same record; one is measured now, one only compared, and one cannot be measured."""
    stage.hosts = HOSTS[:3]
    for host in stage.hosts:
        place = stage.folder / "state" / host / "qwen"
        place.mkdir(parents=True)
        for name, figures in (("b1", FAST), ("b2", SLOW)):
            record.append(place / record.NAME, made(*figures, id=name, state=name))
    role = stage.folder / "ansible_collections/llmfleet/sglang/roles/sglang_benchmark/tasks/main.yml"
    told = {"name": "Measure", "ansible.builtin.set_fact": {"sglang_benchmark_result": {"benchmark": {"id": "b2"}}}}
    fails = {"name": "Fail", "ansible.builtin.fail": {"msg": "The engine died."}, "when": "fails | default(false)"}
    role.write_text(json.dumps([fails, told]))
    stage.play("benchmark", {"h01": {"sglang_benchmark_measure": False}, "h03": {"fails": True}})
    report = latest(stage)
    found = {one["host"]: (one["state"], (one["benchmark"] or {}).get("id"), one["failed"]) for one in report["hosts"]}
    assert found == {
        "h01": ("compared", None, False),
        "h02": ("measured", "b2", False),
        "h03": ("not measured", None, True),
    }
    assert "The engine died." in report["hosts"][2]["message"]
    assert [(one["last_measured"] or {}).get("id") for one in report["hosts"]] == ["b2", None, "b2"]
