# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task of the role sglang_service that prepares an API key, or sees to it that none is prepared, run by Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ROLE = yaml.safe_load((ROOT / "roles/sglang_service/tasks/main.yml").read_text())
# What a host has of systemd: it knows no unit, and takes each.
SYSTEMD = {"systemctl": "echo not-found", "systemd-analyze": "exit 0"}


@pytest.fixture
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collections path with this collection's plugins in it."""
    path = tmp_path_factory.mktemp("collections")
    sglang = path / "ansible_collections" / "llmfleet" / "sglang"
    sglang.mkdir(parents=True)
    for name in ("plugins", "meta", "galaxy.yml"):
        (sglang / name).symlink_to(ROOT / name)
    return path


def test_a_key_is_prepared_for_root_alone_and_goes_when_it_is_taken_out_of_the_inventory(
    tmp_path: Path, collections: Path
) -> None:
    place, book = tmp_path / "next" / "sglang.yaml", tmp_path / "book.yml"
    tasks = [task for task in ROLE if "llmfleet.sglang.service_prepare" in task]
    look = [
        {"ansible.builtin.stat": {"path": str(place)}, "register": "found"},
        {"ansible.builtin.debug": {"msg": "MODE {{ found.stat.mode | default('gone') }}"}},
    ]
    play = {"hosts": "localhost", "gather_facts": False}
    plays = [
        {**play, "vars": {"sglang_service_api_key": key}, "tasks": [*tasks, *look]} for key in ("quite-secret", "", "")
    ]
    book.write_text(yaml.safe_dump(plays))
    given = {
        "ansible_python_interpreter": str(python(tmp_path / "bin")),
        "ansible_become": False,
        "sglang_service_deployment": {"service": "sglang-of-a-test", "replaces": [], "adopt": False},
        "sglang_service_unit": "[Service]\n",
        "sglang_service_next": str(place.with_name("sglang-of-a-test.service")),
        "sglang_service_next_credential": str(place),
        "sglang_service_files": {},
    }
    words = [str(Path(sys.executable).with_name("ansible-playbook"))]
    done = subprocess.run(
        [*words, "-i", "localhost,", "-c", "local", "--diff", "-vvvv", "-e", json.dumps(given), str(book)],
        cwd=tmp_path,
        env={
            **os.environ,
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.partition("MODE ")[2].strip('"') for line in done.stdout.splitlines() if "MODE " in line]
    assert said == ["0600", "gone", "gone"]
    assert "changed=2" in done.stdout and "quite-secret" not in done.stdout
    assert [path.name for path in place.parent.iterdir()] == ["sglang-of-a-test.service"]  # no backup


def python(folder: Path) -> Path:
    """A host's Python, which finds these programs of systemd first."""
    folder.mkdir()
    words = {**SYSTEMD, "python": f'PATH="{folder}:$PATH" exec {sys.executable} "$@"'}
    for name, line in words.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder / "python"
