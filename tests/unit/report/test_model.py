# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as data: its schema, its hosts of every fate, what it warns of, and that no secret is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import model
from ansible_collections.llmfleet.sglang.tests.unit.report import fleet


def test_the_schema_is_what_others_read() -> None:
    """Fields may be added. One that goes, or changes its meaning, counts SCHEMA up."""
    report = fleet.made(fleet.fleet(3, benchmarks=True))
    assert report["schema"] == model.SCHEMA == 1
    assert set(report) >= {
        "schema",
        "kind",
        "fleet",
        "made_at",
        "run",
        "by",
        "version",
        "check",
        "instances",
        "models",
        "warnings",
        "summary",
        "hosts",
    }
    assert set(report["summary"]) >= {"hosts", "failed", "states", "down_longest_seconds", "down_still"}
    for host in report["hosts"]:
        assert set(host) >= {
            "host",
            "address",
            "instance",
            "service",
            "model",
            "state",
            "failed",
            "message",
            "release",
            "commit",
            "checkpoint",
            "serves",
            "served_before",
            "why",
            "changes",
            "patches",
            "without_trial",
            "timeline",
            "down_seconds",
            "down_since",
            "clock_ahead",
            "findings",
            "benchmark",
            "last_measured",
            "trial",
            "problems",
        }
    first = report["hosts"][0]
    assert set(first["timeline"]) >= {"segments", "down", "resumed"}
    assert set(first["timeline"]["segments"][0]) >= {"kind", "begin", "end", "seconds", "service", "failed"}
    assert set(first["changes"][0]) == {"what", "before", "after"}
    assert set(first["findings"][0]) == {"id", "kind", "severity", "message", "evidence", "advice", "accepted"}
    benchmark = first["benchmark"]
    assert set(benchmark) >= {"id", "at", "release", "verdict", "baseline", "shapes", "power", "baseline_power"}
    assert set(benchmark["shapes"][0]) >= {"name", "now", "before", "verdict"}
    assert json.loads(json.dumps(report)) == report


def test_a_fleet_of_every_fate() -> None:
    report = fleet.made(fleet.fleet(5))
    assert [host["state"] for host in report["hosts"]] == ["new", "went back", "broken", "new", "untouched"]
    assert report["summary"] == {
        "hosts": 5,
        "failed": 2,
        "states": {"new": 2, "went back": 1, "broken": 1, "untouched": 1},
        "down_longest_seconds": 144.0,
        "down_still": 1,
    }
    serves = [host["serves"] for host in report["hosts"]]
    assert serves == [fleet.NEW, "sglang-kimi", "see below", fleet.NEW, "as before"]
    untouched = report["hosts"][-1]
    # What an earlier run noted is no news of this one.
    assert (untouched["timeline"], untouched["changes"], untouched["down_seconds"]) == (None, [], None)
    assert "Nothing served for 65 s." in report["hosts"][0]["message"]


def test_no_host_took_part() -> None:
    report = fleet.made({})
    assert report["hosts"] == [] and report["summary"]["states"] == {}
    assert fleet.made({"h1": {"ansible_host": "10.0.0.1"}})["hosts"] == []


def test_a_lost_host_has_told_nothing() -> None:
    hosts = fleet.fleet(2)
    hosts["gpu-02"] = {**hosts["gpu-02"], "sglang_noted": {"unreachable": True, "msg": "No route to host"}}
    hosts["gpu-02"]["sglang_verdict"] = {"serves": False, "message": "The cut-over did not end."}
    lost = model.report(fleet.RUN, list(hosts), hosts, ["gpu-01"])["hosts"][1]
    assert (lost["state"], lost["release"], lost["timeline"], lost["benchmark"]) == ("lost", fleet.NEW, None, None)


def test_no_secret_is_in_it_wherever_it_stood() -> None:
    hosts = fleet.fleet(3)
    hosts["gpu-02"]["sglang_verdict"]["message"] = f"curl -H 'Authorization: Bearer {fleet.SECRET}' failed"
    hosts["gpu-03"]["sglang_hub_token"] = "hf_made_up"
    hosts["gpu-01"]["sglang_noted"]["changes"] = [{"what": "hf_made_up", "before": fleet.SECRET, "after": "x"}]
    findings = {"gpu-01": [{**fleet.FINDINGS[0], "evidence": "http://ops:pw-secret@proxy:3128"}]}
    text = json.dumps(model.report(fleet.RUN, list(hosts), hosts, list(hosts), findings))
    assert fleet.SECRET not in text and "hf_made_up" not in text and "pw-secret" not in text


def test_what_an_operator_overrode_is_warned_of() -> None:
    hosts = fleet.fleet(2)
    hosts["gpu-01"]["sglang_without_trial"] = "on"
    hosts["gpu-02"]["sglang_without_trial"] = "false"
    report = fleet.made(hosts)
    assert report["warnings"] == ["sglang_without_trial is set: no gate is open."]
    assert [one["without_trial"] for one in report["hosts"]] == [True, False]


def test_check_runs_and_wrong_clocks_are_warned_of() -> None:
    hosts = fleet.fleet(2)
    hosts["gpu-02"]["sglang_noted"]["clock_ahead"] = 3600.0
    report = fleet.made(hosts, replace(fleet.RUN, check=True))
    assert len(report["warnings"]) == 2
    assert "check run" in report["warnings"][0] and "gpu-02" in report["warnings"][1]
    # Both began their cut-over at 0 by their own clocks, and the second one is an hour ahead.
    began = [host["timeline"]["down"][0]["begin"] for host in report["hosts"]]
    assert 3400 < began[0] - began[1] < 3600


def test_requests_are_let_end_where_a_load_balancer_is_told() -> None:
    def kinds(**facts: Any) -> list[str]:
        line = fleet.made({"h1": {**fleet.host(1), **facts}})["hosts"][0]["timeline"]
        return [one["kind"] for one in line["segments"] if one["kind"] in ("drain", "ready")]

    assert kinds(sglang_drain_tasks="haproxy") == ["drain"]
    assert kinds() == ["ready"]


def test_what_kind_of_run_it_was() -> None:
    def kind(**facts: Any) -> str:
        return model.kind_of(["h1", "h2"], {"h1": {}, "h2": facts})

    assert kind() == "deployment"
    assert kind(sglang_trial_base={"name": "qwen"}) == "trial"
    # It stands in the inventory still, and this run was of another playbook.
    assert kind(sglang_trial={"arguments": {"tp-size": 4}}) == "deployment"
    assert kind(sglang_verdict={"asked": "went back"}) == "rollback"
    assert kind(sglang_verdict={"asked": "stopped"}) == "stop"


def test_a_benchmark_alone_changes_no_host() -> None:
    hosts = fleet.fleet(2, benchmarks=True)
    for one in hosts.values():
        one.pop("sglang_verdict", None)
    report = fleet.made(hosts, replace(fleet.RUN, kind="benchmark"))
    assert [(one["state"], one["failed"]) for one in report["hosts"]] == [("measured", False), ("not measured", True)]
    lost = model.report(replace(fleet.RUN, kind="benchmark"), list(hosts), hosts, [])["hosts"][0]
    assert lost["state"] == "not measured"


def test_the_newest_benchmark_stands_beside_its_baseline() -> None:
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], fleet.measured(236.0))
    found = fleet.made(hosts)["hosts"][0]["benchmark"]
    assert found["verdict"]["result"] == "worse" and found["baseline"]["id"] == "b1"
    assert [shape["verdict"]["result"] for shape in found["shapes"]] == ["worse"] * 3
    assert (found["shapes"][1]["before"]["median"], found["shapes"][1]["now"]["median"]) == (3740.0, 236.0)
    assert found["power"]["median"] < found["baseline_power"]["median"] < found["power"]["limit"] == 4800.0


def test_a_benchmark_that_was_judged_is_shown_as_it_was_judged() -> None:
    baseline, now = fleet.measured(3700.0)
    now = {**now, "baseline": "b1", "verdict": {"result": "inert", "reason": "It was skipped.", "change": None}}
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], [baseline, now])
    assert fleet.made(hosts)["hosts"][0]["benchmark"]["verdict"]["result"] == "inert"


def test_without_a_baseline_nothing_is_compared() -> None:
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], fleet.measured()[1:])
    found = fleet.made(hosts)["hosts"][0]["benchmark"]
    assert (found["verdict"]["result"], found["baseline"], found["baseline_power"]) == ("no baseline", None, None)


def trial_of(result: str, **more: Any) -> dict[str, dict[str, Any]]:
    """What Ansible knows of the host of a trial that went back."""
    hosts = {"gpu-01": fleet.host(1, "went back")}
    hosts["gpu-01"]["sglang_trial_result"] = {
        "trial": {"result": result, "reason": "It is so", "kept": False, "restored": True, **more}
    }
    return hosts


def test_what_earlier_runs_measured_is_none_of_this_ones() -> None:
    """A deployment that was not benchmarked, on a host where a trial had lost before."""
    hosts = fleet.fleet(1)
    hosts["gpu-01"]["sglang_noted"]["benchmarks"] = fleet.measured(236.0)
    found = fleet.made(hosts)["hosts"][0]
    assert found["benchmark"] is None and found["trial"] is None
    assert (found["last_measured"]["id"], found["last_measured"]["reason"]) == ("b2", "rollout")


def test_a_change_that_never_served_has_no_figures_though_its_baseline_has() -> None:
    hosts = trial_of("failed start")
    baseline = {**fleet.measured(236.0)[-1], "id": "b3", "reason": "baseline"}
    fleet.measure(hosts["gpu-01"], [*fleet.measured(236.0), baseline])
    found = fleet.made(hosts, replace(fleet.RUN, kind="trial"))["hosts"][0]
    assert found["benchmark"] is None and found["trial"]["result"] == "failed start"
    assert (found["last_measured"]["id"], found["last_measured"]["reason"]) == ("b3", "baseline")


def test_what_another_run_measured_meanwhile_is_not_taken_for_this_ones() -> None:
    hosts = fleet.fleet(1)
    lines = fleet.measured()
    fleet.measure(hosts["gpu-01"], [*lines, {**lines[-1], "id": "b3"}], {"benchmark": lines[-1]})
    assert fleet.made(hosts)["hosts"][0]["benchmark"]["id"] == "b2"


def test_a_benchmark_that_failed_is_not_the_one_before_it() -> None:
    hosts = fleet.fleet(1)
    del hosts["gpu-01"]["sglang_verdict"]
    fleet.measure(hosts["gpu-01"], fleet.measured(), {"failed": True, "msg": "The benchmark failed: no answer."})
    for prepared in ({"done": False, "message": "The benchmark failed: no answer."}, None):
        hosts["gpu-01"]["sglang_prepared"] = prepared
        found = fleet.made(hosts, replace(fleet.RUN, kind="benchmark"))["hosts"][0]
        assert (found["state"], found["failed"], found["benchmark"]) == ("not measured", True, None)
        assert found["message"] == "The benchmark failed: no answer."


def test_what_was_not_judged_stands_beside_the_last_one_that_did_not_lose() -> None:
    """Also beside the same deployment, measured again: the host may have changed."""
    first, second = fleet.measured(3700.0)
    lost = {**second, "id": "b3", "verdict": {"result": "worse", "reason": "r", "change": -0.5}}
    again = {**second, "id": "b4"}
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], [first, second, lost, again])
    found = fleet.made(hosts)["hosts"][0]["benchmark"]
    assert (found["id"], found["baseline"]["id"], found["verdict"]["result"]) == ("b4", "b2", "same")


def test_a_run_that_compares_alone_says_that_nothing_was_measured() -> None:
    hosts = fleet.fleet(1)
    del hosts["gpu-01"]["sglang_verdict"]
    hosts["gpu-01"]["sglang_noted"]["benchmarks"] = fleet.measured()
    hosts["gpu-01"]["sglang_benchmark_measure"] = "false"
    found = fleet.made(hosts, replace(fleet.RUN, kind="benchmark"))["hosts"][0]
    assert (found["state"], found["failed"], found["benchmark"]) == ("compared", False, None)
    assert found["last_measured"]["id"] == "b2"


def test_a_check_run_would_measure_or_try() -> None:
    hosts = fleet.fleet(1)
    del hosts["gpu-01"]["sglang_verdict"]
    fleet.measure(hosts["gpu-01"], [], {"skipped": True})
    found = fleet.made(hosts, replace(fleet.RUN, kind="benchmark", check=True))["hosts"][0]
    assert (found["state"], found["failed"]) == ("to measure", False)
    hosts["gpu-01"]["sglang_trial"] = {"patch_sets": ["sm120_fusion"], "arguments": {"tp-size": 8}}
    found = fleet.made(hosts, replace(fleet.RUN, kind="trial", check=True))["hosts"][0]
    assert (found["state"], found["failed"], found["trial"]) == ("to try", False, None)
    assert found["message"] == "A check run: it would try patch set sm120_fusion, --tp-size 8."


def test_where_nothing_was_tried_an_earlier_trial_is_not_shown() -> None:
    hosts = trial_of("inert")
    del hosts["gpu-01"]["sglang_trial_result"]
    assert fleet.made(hosts, replace(fleet.RUN, kind="trial"))["hosts"][0]["trial"] is None


@pytest.mark.parametrize(("result", "failed"), [("same", False), ("better", False), ("worse", True), ("inert", True)])
def test_a_trial_that_changed_nothing_is_no_failure(result: str, failed: bool) -> None:
    """As trial.yml itself ends."""
    report = fleet.made(trial_of(result), replace(fleet.RUN, kind="trial"))
    assert (report["hosts"][0]["state"], report["hosts"][0]["failed"]) == ("went back", failed)
    assert report["summary"]["failed"] == failed
