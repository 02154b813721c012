# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet's preflight as data and as a table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.preflight import (
    preflight_blocked,
    preflight_launch,
    preflight_report,
    preflight_table,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import accept
from ansible_collections.llmfleet.sglang.tests.unit.host.good import GOOD, WANTED

ROOT = Path(__file__).resolve().parents[3]
DEPLOYMENT: dict[str, Any] = {
    "build": {"version": "0.5.23"},
    "gpus": {"compute_capability": "12.0"},
    "checkpoint": {"repository": "nvidia/Qwen3.5-397B-A17B-NVFP4"},
    "patch_sets": [],
    "launch": {
        "arguments": {
            "tp-size": 8,
            "attention-backend": "auto",
            "moe-runner-backend": "flashinfer_cutlass",
            "kv-cache-dtype": "fp8_e4m3",
        },
        "environment": {},
    },
}


def result(accepted: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """What the module returns for the good host with these facts changed."""
    found = accept(check(replace(GOOD, **changes), WANTED), accepted)
    return {"changed": False, "findings": [one.as_dict() for one in found]}


HOSTS: dict[str, dict[str, Any]] = {
    "n1": {"sglang_preflight_result": result()},
    "n2": {"sglang_preflight_result": result(architecture="aarch64", clock_synchronised=False)},
    "n3": {"sglang_preflight_result": result(("architecture",), architecture="aarch64", clock_synchronised=False)},
    "n4": {"sglang_preflight_result": {"unreachable": True, "msg": "No route to host"}},
    "n5": {"sglang_preflight_result": {"failed": True, "msg": "no finding named x"}},
    "n6": {},
}


def test_a_fleet_as_a_table() -> None:
    lines = preflight_table(preflight_report(list(HOSTS), HOSTS)).splitlines()
    assert [line.split()[:2] for line in lines[:7]] == [
        ["HOST", "STATE"],
        ["n1", "ready"],
        ["n2", "blocked"],
        ["n3", "ready"],
        ["n4", "unreachable"],
        ["n5", "failed"],
        ["n6", "failed"],
    ]
    assert lines[2].split() == ["n2", "blocked", "1", "1"] and lines[3].split() == ["n3", "ready", "1", "1"]
    assert lines[8:11] == ["n4: No route to host", "n5: no finding named x", "n6: preflight did not run here"]
    assert [line.split("  ")[0] for line in lines[12:]] == ["SEVERITY", "blocks", "warns", "accepted"]
    assert "n2, n3" in lines[14] and "Run systemd-timesyncd or chrony." in lines[14]


def test_what_blocks_is_named_by_host() -> None:
    assert preflight_blocked(preflight_report(list(HOSTS), HOSTS)) == [
        "n2: architecture",
        "n4: No route to host. See that `ansible n4 -i INVENTORY -m ansible.builtin.ping` reaches it, and try again",
        "n5: no finding named x",
        "n6: preflight did not run here",
    ]


def test_a_good_fleet_is_a_table_without_findings() -> None:
    report = preflight_report(["n1"], HOSTS)
    assert preflight_blocked(report) == [] and len(preflight_table(report).splitlines()) == 2


def test_many_hosts_with_one_finding_share_a_line() -> None:
    hosts = {f"n{number}": HOSTS["n2"] for number in range(9)}
    text = preflight_table(preflight_report(list(hosts), hosts))
    assert text.count("all 9") == 2
    hosts["n9"] = HOSTS["n1"]
    assert "n0, n1, n2, n3 and 5 more" in preflight_table(preflight_report(list(hosts), hosts))


def test_rules_of_the_deployment_stand_beside_findings_of_the_host() -> None:
    host = {**HOSTS["n1"], "sglang_deployment": DEPLOYMENT}
    report = preflight_report(["n1"], {"n1": host})
    found = report["n1"]["findings"][0]
    assert (found["id"], found["kind"], found["severity"]) == ("attention_auto", "rule", "blocks")
    assert report["n1"]["state"] == "blocked" and "rule attention_auto" in preflight_table(report)
    host["sglang_accepted_rules"] = [one["id"] for one in report["n1"]["findings"]]
    assert preflight_report(["n1"], {"n1": host})["n1"]["state"] == "ready"


OPEN = {**DEPLOYMENT, "patch_sets": [{"name": "sm120_fusion"}]}
WIN = {"gate": True, "result": "better", "version": "0.5.23", "tensor_parallel": 8, "topology": "8 x X", "at": "2026"}


def gate_of(**more: Any) -> tuple[list[bool], str]:
    """Of each host with an open fusion gate, whether that is accepted, by the rule's findings; and the table."""
    tried = {"trials": [], "topology": "8 x X"}
    hosts = {name: {**HOSTS["n1"], "sglang_deployment": OPEN, "sglang_tried": tried, **more} for name in ("n1", "n2")}
    if "trials" in more:
        hosts["n2"]["sglang_tried"] = {**tried, "trials": more["trials"]}
    report = preflight_report(list(hosts), hosts)
    found = [one for told in report.values() for one in told["findings"] if one["id"] == "fusion_without_win"]
    return [one["accepted"] for one in found], preflight_table(report, hosts)


def test_an_open_fusion_gate_blocks_until_a_trial_on_one_of_the_hosts_has_won() -> None:
    assert gate_of()[0] == [False, False]
    assert gate_of(trials=[{**WIN, "result": "worse"}])[0] == [False, False]
    found, text = gate_of(trials=[WIN])
    assert found == [] and "fusion_without_win" not in text


def test_the_playbook_asks_for_the_trials_before_it_prints() -> None:
    [play] = [one for one in yaml.safe_load((ROOT / "playbooks" / "preflight.yml").read_text()) if "hosts" in one]
    reads, prints = play["tasks"][1:3]
    assert (reads["register"], reads["when"]) == ("sglang_tried", "sglang_deployment | llmfleet.sglang.fusion_open")
    assert reads["llmfleet.sglang.benchmark_info"]["topology"] is True
    assert "preflight_table(hostvars)" in prints["ansible.builtin.debug"]["msg"]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"sglang_without_trial": "on"}, "sglang_without_trial is set"),
        ({"sglang_accepted_rules": ["fusion_without_win"]}, "sglang_accepted_rules has fusion_without_win"),
    ],
)
def test_an_override_of_the_fusion_gate_blocks_nothing_and_is_said(way: dict[str, Any], words: str) -> None:
    found, text = gate_of(**way)
    assert found == [True, True]
    assert text.splitlines()[-1] == f"{words}: the fusion gate is open without a recorded win on n1, n2."
    assert "sglang_without_trial is set" not in gate_of(sglang_without_trial="false")[1]


def test_an_accepted_rule_that_there_is_not_is_refused() -> None:
    host = {**HOSTS["n1"], "sglang_deployment": DEPLOYMENT, "sglang_accepted_rules": ["nothing"]}
    with pytest.raises(AnsibleFilterError, match="no rule named nothing"):
        preflight_report(["n1"], {"n1": host})


def test_the_report_is_data() -> None:
    report = preflight_report(list(HOSTS), HOSTS)
    assert json.loads(json.dumps(report)) == report == yaml.safe_load(yaml.safe_dump(report))


def test_only_what_bears_on_the_host_is_handed_to_it() -> None:
    assert preflight_launch(DEPLOYMENT)["arguments"] == {"tp-size": 8, "kv-cache-dtype": "fp8_e4m3"}
