# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new service that cannot come up: the host serves again what it served before, and the run says why."""

from __future__ import annotations

import yaml
from testinfra.host import Host

from tests.fleet.control import INVENTORY, playbook
from tests.fleet.hosts import SERVICE, limit, name, serving, show


def test_the_host_serves_again_what_it_served_before(node: Host) -> None:
    before = serving(node)
    arguments = yaml.safe_load((INVENTORY / "group_vars/sglang/cpu.yml").read_text())["sglang_arguments"]
    # The engine's parser takes it; the engine refuses it when it has read the model's 2,048 positions.
    bad = {"sglang_arguments": {**arguments, "context-length": 1_000_000}}
    run = playbook("playbooks/deploy_qwen.yml", limit([node]), variables=bad)
    assert run.rc != 0, run.output
    assert f"The host serves again what it served before: {SERVICE}." in run.errors[-1], run.output
    assert "context_length (1000000) is greater than the derived context_length (2048)" in run.errors[-1]

    after = serving(node)
    assert after.unit == before.unit
    assert after.pid != before.pid
    wanted = {"ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": "no", "NRestarts": "0"}
    assert show(node, SERVICE, *wanted) == wanted

    # A deployment of what is wanted finds it running, and nothing to do.
    again = playbook("playbooks/deploy_qwen.yml", limit([node])).must_pass()
    assert again.changed[name(node)] == 0, again.output
    assert serving(node) == after
