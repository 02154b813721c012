# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs over what is deployed already: nothing changes, nothing is restarted, wherever the run comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from testinfra.host import Host

from tests.fleet.control import PROJECT, copy_of_checkout, playbook
from tests.fleet.hosts import limit, name, serving


@pytest.mark.parametrize("checkout", ["this one", "a second one"])
def test_a_second_run_changes_nothing(nodes: list[Host], checkout: str, tmp_path: Path) -> None:
    place = PROJECT if checkout == "this one" else copy_of_checkout(tmp_path / "second")
    before = [serving(host) for host in nodes]
    run = playbook("playbooks/deploy_qwen.yml", limit(nodes), cwd=place).must_pass()
    assert run.changed == {name(host): 0 for host in nodes}, run.output
    assert [serving(host) for host in nodes] == before


def test_a_check_run_changes_nothing_and_says_so(nodes: list[Host]) -> None:
    before = [serving(host) for host in nodes]
    run = playbook("playbooks/deploy_qwen.yml", limit(nodes), "--check", "--diff").must_pass()
    assert run.changed == {name(host): 0 for host in nodes}, run.output
    assert "--- before" not in run.output, run.output
    assert [serving(host) for host in nodes] == before
