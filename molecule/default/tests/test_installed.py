# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copy of the collection runs: the installed one where nothing else is, and in a checkout always the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from testinfra.host import Host

from fleet.config import cache_folder
from tests.fleet.control import copy_of_checkout, installed, playbook
from tests.fleet.hosts import limit, serving

_TASK_PATH = re.compile(r"^task path: (\S+):\d+$", re.MULTILINE)
ROLE = "roles/sglang_preflight/tasks/main.yml"


def put_first(collection: Path, task: dict[str, object]) -> None:
    """Make `task` the first one of the first role that a deployment runs."""
    file = collection / ROLE
    file.write_text(yaml.safe_dump([task, *yaml.safe_load(file.read_text())]))


def test_a_deployment_runs_from_the_installed_collection(node: Host, tmp_path: Path) -> None:
    collection = installed(tmp_path / "collections")
    (tmp_path / "empty").mkdir()
    before = serving(node)
    run = playbook(
        "llmfleet.sglang.deploy_qwen",
        limit([node]),
        "--check",
        "-vv",
        cwd=tmp_path / "empty",
        env={"ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections")},
    ).must_pass()
    places = {path for path in _TASK_PATH.findall(run.output) if "/" in path}
    assert {path for path in places if not path.startswith(f"{collection}/")} == set()
    for role in ("preflight", "checkpoint", "build", "service", "stop", "verify"):
        assert f"{collection}/roles/sglang_{role}/tasks/main.yml" in places
    assert set(run.changed.values()) == {0}, run.output
    assert serving(node) == before


def test_in_a_checkout_the_checkout_runs_and_no_installed_copy(node: Host, tmp_path: Path) -> None:
    home = tmp_path / "home"
    older = installed(home / ".ansible" / "collections")
    put_first(older, {"name": "Fail", "ansible.builtin.fail": {"msg": "THE OLDER, INSTALLED COPY RAN"}})
    # The inventory finds the fleet's SSH key below the home folder.
    (home / ".cache").mkdir()
    (home / ".cache" / "llmfleet").symlink_to(cache_folder())
    checkout = copy_of_checkout(tmp_path / "checkout")
    put_first(checkout, {"name": "Say", "ansible.builtin.debug": {"msg": "THE EDITED CHECKOUT RAN"}})
    env = {"HOME": str(home)}

    # The older copy is one that Ansible would find: without a checkout it is what runs.
    (tmp_path / "empty").mkdir()
    run = playbook("llmfleet.sglang.deploy_qwen", limit([node]), "--check", cwd=tmp_path / "empty", env=env)
    assert (run.rc, run.errors[:1]) == (2, ["Task failed: Action failed: THE OLDER, INSTALLED COPY RAN"]), run.output

    run = playbook("playbooks/deploy_qwen.yml", limit([node]), "--check", cwd=checkout, env=env).must_pass()
    assert "THE EDITED CHECKOUT RAN" in run.output
