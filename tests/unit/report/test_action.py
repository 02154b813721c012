# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin fleet_report: what it reads, when it writes, and that it never fails a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.action import fleet_report
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import files, override
from ansible_collections.llmfleet.sglang.tests.unit.report import fleet

from tests.unit.deployment.example import resolved
from tests.unit.trial.test_gate import OPEN


def act(
    facts: Mapping[str, Any], check: bool = False, sources: tuple[str, ...] = (), **arguments: Any
) -> dict[str, Any]:
    """Run the action as Ansible does."""
    task = SimpleNamespace(args=arguments, check_mode=check, async_val=0, _role=None, diff=False)
    shell = SimpleNamespace(tmpdir=None)
    connection = SimpleNamespace(_shell=shell, _remote_is_local=True)
    action = fleet_report.ActionModule(task, connection, SimpleNamespace(), None, SimpleNamespace(), None)
    known = {
        "hostvars": facts,
        "ansible_play_hosts_all": list(facts),
        "ansible_play_hosts": list(facts),
        "ansible_inventory_sources": list(sources),
    }
    result: dict[str, Any] = action.run(task_vars=known)
    return result


@pytest.fixture
def hosts() -> dict[str, dict[str, Any]]:
    return fleet.fleet(3)


@pytest.fixture(autouse=True)
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(fleet_report.display, "warning", said.append)
    return said


def test_it_writes_what_the_hosts_know(hosts: dict[str, Any], tmp_path: Path) -> None:
    hosts["gpu-01"]["sglang_preflight_result"] = {"findings": [{**fleet.FINDINGS[0]}]}
    result = act(hosts, folder=str(tmp_path), sources=("/x/inventories/lab",))
    assert result["changed"] is False and result["words"] == f"Report: {result['paths'][0]}"
    report = json.loads(Path(result["paths"][1]).read_text("utf-8"))
    assert (report["fleet"], report["kind"]) == ("lab", "deployment")
    assert [one["state"] for one in report["hosts"]] == ["new", "went back", "broken"]
    assert [one["id"] for one in report["hosts"][0]["findings"]] == ["iommu_acs"]


def test_a_check_run_says_where_and_writes_nothing(hosts: dict[str, Any], tmp_path: Path) -> None:
    result = act(hosts, check=True, folder=str(tmp_path / "reports"))
    assert result["words"] == f"The report would be written to {tmp_path / 'reports'}."
    assert len(result["paths"]) == 2 and list(tmp_path.iterdir()) == []


def test_by_default_it_goes_to_reports_where_one_stands(
    hosts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert act(hosts)["paths"][0].startswith(f"{tmp_path}/reports/")
    assert act(hosts, folder="")["paths"] == []


def test_an_inventorys_folder_is_refused_and_the_run_goes_on(
    hosts: dict[str, Any], tmp_path: Path, warnings: list[str]
) -> None:
    result = act(hosts, folder=str(tmp_path / "reports"), sources=(str(tmp_path),))
    assert (result["paths"], result["words"]) == ([], "") and not result.get("failed")
    assert "read the reports as inventories" in warnings[0] and "sglang_report_to" in warnings[0]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_warning(
    hosts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(files, "write", full)
    assert act(hosts, folder=str(tmp_path))["words"] == ""
    assert "no space left on device" in warnings[0]


def test_stopping_and_starting_have_no_report_of_their_own(hosts: dict[str, Any], tmp_path: Path) -> None:
    for one in hosts.values():
        one["sglang_verdict"] = {"asked": "stopped", "done": True, "message": "It is stopped."}
    assert act(hosts, folder=str(tmp_path))["paths"] == []
    assert len(act(hosts, folder=str(tmp_path), kind="rollback")["paths"]) == 2


class Vault(Mapping[str, Any]):
    """A host's variables, of which one cannot be opened."""

    def __init__(self, facts: dict[str, Any], closed: str) -> None:
        self._facts, self._closed = facts, closed

    def __getitem__(self, name: str) -> Any:
        if name == self._closed:
            raise ValueError("no vault password")
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


def test_a_secret_that_cannot_be_opened_is_no_hindrance(hosts: dict[str, Any], tmp_path: Path) -> None:
    closed = {name: Vault(one, "sglang_api_key") for name, one in hosts.items()}
    assert len(act(closed, folder=str(tmp_path))["paths"]) == 2


def test_its_version_is_the_collections() -> None:
    galaxy = Path(fleet_report.__file__).parents[2] / "galaxy.yml"
    assert f"\nversion: {fleet_report.version()}\n" in galaxy.read_text("utf-8")


def test_not_even_a_fault_of_the_report_itself_fails_a_run(
    hosts: dict[str, Any], tmp_path: Path, warnings: list[str]
) -> None:
    hosts["gpu-02"]["sglang_noted"]["times"] = {"steps": [{"step": "begin", "at": "torn"}]}
    result = act(hosts, folder=str(tmp_path))
    assert (result["paths"], result["words"]) == ([], "") and not result.get("failed")
    assert warnings[0].startswith("There is no report, for it could not be made: ")


TRIAL = {"arguments": {"chunked-prefill-size": 8192}}


def test_a_check_run_of_a_trial_says_what_it_would_try(hosts: dict[str, Any], tmp_path: Path) -> None:
    one = {"gpu-01": {**hosts["gpu-01"], "sglang_trial": TRIAL, "sglang_trial_base": {"name": "qwen"}}}
    del one["gpu-01"]["sglang_verdict"]
    words = act(one, check=True, folder=str(tmp_path))["words"].splitlines()
    assert words[0] == "It would try --chunked-prefill-size 8192." and words[1].startswith("The report would be")
    one["gpu-01"]["sglang_trial"] = {"arguments": {"admin-word": fleet.SECRET}}
    assert act(one, check=True, folder="")["words"] == "It would try --admin-word ***."
    one["gpu-01"]["sglang_prepared"] = {"done": False, "message": "No disk."}
    assert "It would try" not in act(one, check=True, folder=str(tmp_path))["words"]


@pytest.mark.parametrize("kind", ["trial", "benchmark", "deployment"])
def test_an_override_is_said_where_there_is_no_recap(hosts: dict[str, Any], tmp_path: Path, kind: str) -> None:
    hosts["gpu-01"]["sglang_without_trial"] = "on"
    if kind == "trial":
        hosts["gpu-01"]["sglang_trial_base"] = hosts["gpu-01"]["sglang_deployment"]
    told = ["sglang_without_trial is set: no gate is open."] if kind != "deployment" else []
    assert act(hosts, folder=str(tmp_path), kind=kind)["words"].splitlines()[:-1] == told
    assert act(hosts, folder="", kind=kind)["words"] == "".join(told)


@pytest.mark.parametrize("said", [None, "sglang_without_trial", "sglang_accepted_rules"])
@pytest.mark.parametrize("kind", ["trial", "deployment"])
def test_a_gate_that_is_open_without_a_win_is_a_finding_that_only_an_override_accepts(
    hosts: dict[str, Any], kind: str, said: str | None
) -> None:
    """What is on trial needs no win; where somebody says that it needs none, a trial too has to say so."""
    one = {**hosts["gpu-01"], "sglang_deployment": resolved(**OPEN), "sglang_tried": {"trials": [], "topology": "x"}}
    if said:
        one[said] = "on" if said == "sglang_without_trial" else [override.RULE]
    found = fleet_report.findings_of({"gpu-01": one}, kind)["gpu-01"]
    accepted = [each["accepted"] for each in found if each["id"] == override.RULE]
    assert accepted == ([True] if said else [] if kind == "trial" else [False])


def test_it_reads_what_this_run_measured(hosts: dict[str, Any], tmp_path: Path) -> None:
    fleet.measure(hosts["gpu-01"], fleet.measured(3700.0))
    hosts["gpu-02"]["sglang_noted"]["benchmarks"] = fleet.measured(236.0)
    report = json.loads(Path(act(hosts, folder=str(tmp_path))["paths"][1]).read_text("utf-8"))
    assert [(one["benchmark"] or {}).get("id") for one in report["hosts"]] == ["b2", None, None]
    assert [(one["last_measured"] or {}).get("id") for one in report["hosts"]] == [None, "b2", None]
