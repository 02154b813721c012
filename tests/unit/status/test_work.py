# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who works on a host, in the table and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.filter.status import status_report, status_table
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._status import work

ALICE = lock.Lock("a1", "alice@ops1", "deploys sglang-qwen", "c1", 100, "5@boot")
HOURS = 3600


def test_a_free_host_has_nobody(tmp_path: Path) -> None:
    assert work.under_way(tmp_path, 0.0) == {"lock": None, "drained": False, "drained_instances": []}


def test_a_lock_says_who_and_since_when_by_the_hosts_own_clock(tmp_path: Path) -> None:
    # The host's clock is an hour ahead of the controller's, or whatever else: it wrote, and it reads.
    lock.take(tmp_path / "lock.json", ALICE, 6 * HOURS, 5000.0 + HOURS)
    (tmp_path / "qwen").mkdir()
    (tmp_path / "qwen" / "drained.json").write_text("{}")
    found = work.under_way(tmp_path, 5000.0 + HOURS + 720)
    assert found["drained"]
    assert (found["lock"]["owner"], found["lock"]["held_seconds"]) == ("alice@ops1", 720)
    assert found["lock"]["text"] == (
        "alice@ops1 works on it since 12 min (deploys sglang-qwen); the lock expires in 5 h 48 min."
    )
    variables = {"h1": {"sglang_status": {"instances": [], "gpus": {}, **found}}, "h2": {}}
    text = status_table(["h1", "h2"], variables)
    assert "h1: alice@ops1 works on it since 12 min" in text in text
    # That the load balancer was reached is more than the mark says.
    assert "h1: qwen is marked as drained: a run began to take it out of the load balancer" in text
    report = status_report(["h1", "h2"], variables)
    assert report["h1"]["lock"]["run"] == "a1" and report["h1"]["drained"]
    assert report["h2"] == {"asked": False, "instances": [], "gpus": {}, "lock": None, "drained": False}


def test_an_expired_lock_and_one_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    lock.take(path, ALICE, 60, 0.0)
    assert work.under_way(tmp_path, 61.0)["lock"]["text"].endswith("the lock has expired.")
    path.write_text("{")
    assert "look who works on this host" in work.under_way(tmp_path, 0.0)["lock"]["text"]
    path.write_text('{"schema": 1}')
    assert f"the lock {path} cannot be read" in work.under_way(tmp_path, 0.0)["lock"]["text"]


def test_an_instance_of_a_machine_is_told_of_at_one_of_its_hosts(tmp_path: Path) -> None:
    told = {
        "instances": [{"name": name} for name in ("qwen", "qwen-b", "old")],
        "gpus": {},
        "drained": True,
        "drained_instances": ["qwen-b"],
    }
    variables: dict[str, dict[str, Any]] = {
        "a": {"ansible_host": "1.1.1.1", "sglang_status": told},
        "b": {"ansible_host": "1.1.1.1", "sglang_instance": "qwen-b", "sglang_status": told},
        "c": {"ansible_host": "1.1.1.2", "sglang_instance": "qwen-b", "sglang_status": told},
        "d": {"ansible_host": "1.1.1.2", "sglang_instance": "qwen-c", "sglang_status": {}},
        "e": {"sglang_status": told},
    }
    report = status_report(list(variables), variables)
    assert {host: [one["name"] for one in each["instances"]] for host, each in report.items()} == {
        "a": ["qwen", "old"],
        "b": ["qwen-b"],
        "c": ["qwen", "qwen-b", "old"],
        "d": [],
        "e": ["qwen", "qwen-b", "old"],
    }
    assert {host for host, each in report.items() if each["drained"]} == {"b", "c", "e"}
    assert not report["d"]["asked"]
