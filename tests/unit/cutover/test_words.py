# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role sglang_rollback says at its end, put together by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
[ROLE] = yaml.safe_load((ROOT / "roles/sglang_rollback/tasks/main.yml").read_text())
AIM = {"served": ["sglang-kimi"], "words": ["sglang-kimi"]}
CAUSE = "The engine died.\nAll of it: journalctl --unit=sglang-qwen --lines=500 --no-pager"


def said(folder: Path, task: dict[str, Any], check: bool = False, **variables: Any) -> str:
    """The message of the verdict that a task concludes."""
    told = {"ansible.builtin.copy": {"content": "{{ sglang_rollback_verdict.message }}", "dest": str(folder / "said")}}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task, {**told, "check_mode": False}]}
    book, given = folder / "book.yml", folder / "given.json"
    book.write_text(yaml.safe_dump([play]))
    fixed = {"ansible_python_interpreter": sys.executable, "sglang_rollback_needed": True, "sglang_rollback_aim": AIM}
    given.write_text(json.dumps({**fixed, **variables}))
    words = ["ansible-playbook", "-i", "localhost,", "-c", "local", "-e", f"@{given}", str(book)]
    done = subprocess.run(
        [str(Path(sys.executable).parent / words[0]), *words[1:], *(["--check"] if check else [])],
        cwd=folder,
        env={**os.environ, "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "said").read_text()


def test_a_check_run_says_what_would_serve(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"sglang_rollback_cause": "It was asked for.", "sglang_rollback_rejects": False}
    task = ROLE["block"][-1]
    assert said(tmp_path, task, check=True, **asked) == "It was asked for. The host would serve sglang-kimi."


def test_a_rollback_that_fails_begins_a_line_of_its_own_and_ends_each_sentence_once(tmp_path: Path) -> None:
    failed: dict[str, Any] = {
        "sglang_rollback_cause": CAUSE,
        "sglang_rollback_rejects": True,
        "sglang_rollback_failed": 'at "Start": Unit sglang-kimi.service not found.',
        "sglang_rollback_state": {"condition": ["sglang-kimi does not run."]},
        "sglang_rollback_path": "/var/lib/llmfleet/qwen/snapshot.json",
    }
    assert said(tmp_path, ROLE["rescue"][-1], **failed).splitlines() == [
        *CAUSE.splitlines(),
        'Going back failed too, at "Start": Unit sglang-kimi.service not found.',
        "The state of the host now:",
        "sglang-kimi does not run.",
        "What served before is kept in /var/lib/llmfleet/qwen/snapshot.json; llmfleet.sglang.rollback tries again.",
    ]
