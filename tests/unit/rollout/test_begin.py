# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that no host takes part in, or that an old Ansible is asked for, fails in one sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter import rollout
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import begin
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import ROOT, Stage

BOOKS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "playbooks").glob("*.yml")}
GROUPS = {"all": ["a", "b", "c"], "ungrouped": [], "sglang": ["a", "b"], "empty": [], "lb": ["c"]}
KNOWN: dict[str, Any] = {"groups": GROUPS, "ansible_inventory_sources": ["/inv/mine"]}


@pytest.mark.parametrize("pattern", ["", "a", "sglang:!a", "sglang,lb", "sglang:&all", "[ab]", "~[ab]", "localhost"])
def test_a_pattern_that_matches_hosts_is_taken_as_it_is(pattern: str) -> None:
    assert rollout.rollout_pattern(KNOWN, pattern) == (pattern or "sglang")


@pytest.mark.parametrize("pattern", ["empty", "nope", "sglang:&lb", "all:!all"])
def test_a_pattern_that_matches_none_is_refused(pattern: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"^No host matches '.*' in the inventory /inv/mine. Nothing was"):
        rollout.rollout_pattern(KNOWN, pattern)


def test_the_limit_counts() -> None:
    limited = {**KNOWN, "ansible_limit": "b,c", "ansible_play_hosts_all": ["b", "c"]}
    assert rollout.rollout_pattern(limited, "") == "sglang"
    with pytest.raises(AnsibleFilterError, match="No host matches 'a' within --limit b,c in the inventory"):
        rollout.rollout_pattern(limited, "a")


def test_where_no_inventory_is_known_nothing_is_refused() -> None:
    assert rollout.rollout_pattern({}, "") == "sglang"


def test_an_ansible_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [begin.too_old(version) for version in ("2.19.0", "2.21.0rc1", "3.0.0")] == ["", "", ""]
    monkeypatch.setattr(rollout, "__version__", "2.18.19")
    with pytest.raises(AnsibleFilterError, match=r"needs ansible-core 2.19 or later, and this is 2.18.19"):
        rollout.rollout_pattern(KNOWN, "")


def test_the_oldest_ansible_is_the_one_that_the_collection_says() -> None:
    required = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text("utf-8"))["requires_ansible"]
    assert required == f">={'.'.join(map(str, begin.OLDEST))}.0"


# report.yml is the end of a playbook that looked before.
@pytest.mark.parametrize("book", sorted(set(BOOKS) - {"report"}))
def test_every_playbook_looks_first_whether_a_host_takes_part(book: str) -> None:
    first = BOOKS[book][0]
    while "ansible.builtin.import_playbook" in first:
        first = BOOKS[Path(first["ansible.builtin.import_playbook"]).stem][0]
    assert first["hosts"] == "{{ sglang_hosts | default('') | llmfleet.sglang.rollout_pattern }}"


@pytest.mark.parametrize("book", ["deploy_qwen", "status"])
@pytest.mark.parametrize("extra", [{}, {"sglang_hosts": "h01,h09:&others"}])
def test_a_run_without_hosts_fails(tmp_path: Path, book: str, extra: dict[str, str]) -> None:
    stage = Stage(tmp_path, [])
    stage.extra = extra
    stage.dead = "lb1"  # a host of the inventory, and no target
    run = stage.play(book)
    assert run.rc not in (0, None)
    said = re.sub(r"\s+", " ", run.output)
    wanted = extra.get("sglang_hosts", "sglang")
    assert f"No host matches '{wanted}' in the inventory {tmp_path}/inventory. Nothing was done." in said
    assert "PLAY RECAP" not in run.output and "The run was cut short" not in run.output


def test_a_limit_that_leaves_none_fails_and_one_that_leaves_some_does_not(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ["h01", "h02"])
    stage.dead = "lb1"
    assert "No host matches 'sglang' within --limit lb1 in" in re.sub(
        r"\s+", " ", stage.play("status", limit="lb1").output
    )
    run = stage.play("status", limit="h02", check=True)
    assert run.rc == 0, run.output
    assert "localhost" not in run.output and "h01" not in run.output


def test_a_fleet_of_which_no_host_can_be_asked_is_no_success(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ["h01", "h02"])
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    assert stage.play("status", {"h01": away}).rc == 0
    run = stage.play("status", {"h01": away, "h02": away})
    assert run.rc == 2
    said = re.sub(r"\s+", " ", run.output)
    assert "h01: cannot be asked: " in said and "Connection refused" in said
    assert "None of the 2 hosts could be asked; the table says why." in said
