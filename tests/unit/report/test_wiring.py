# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""deploy.yml writes a report on the controller and names it in the recap; a check run says where it would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import HOSTS, Stage

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
    run = stage.deploy({"h02": {"fails_in": "verify"}}, sglang_without_trial=True, sglang_api_key="sk-made-up-0001")
    assert run.rc == 2
    page, _latest = [name for name in reports(stage) if name.startswith("inventory-qwen-deployment-")]
    assert f"Report: {stage.folder}/reports/{page}" in run.output
    report = latest(stage)
    assert {one["host"]: one["state"] for one in report["hosts"]} == {"h01": "new", "h02": "went back"} == run.states
    assert report["by"] and report["run"] and report["version"]
    assert "sglang_without_trial" in report["warnings"][0]
    texts = [path.read_text("utf-8") for path in (stage.folder / "reports").iterdir()]
    assert len(texts) == 4 and not [text for text in texts if "sk-made-up-0001" in text]
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
