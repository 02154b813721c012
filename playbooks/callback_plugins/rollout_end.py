# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback: tell the end of a run where Ansible ended it before the play that tells it.

It lies beside the playbooks, whence Ansible loads it with them and with nothing else, and without being configured.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import begin, ended

DOCUMENTATION = """
  name: rollout_end
  type: aggregate
  short_description: Tell what became of each host where a run ended before it could
  description:
    - It says nothing of a run that told its end itself.
"""

# Their tasks of this action tell the end.
MEASURES = "benchmark.yml"
TELLING = ("report.yml", "trial.yml", MEASURES)
LOCK, TELL = "llmfleet.sglang.host_lock", "ansible.builtin.debug"


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Watches a run, and tells its end where nobody else did."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "rollout_end"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run = ended.Run()
        self._ends_with_recap = False
        self._play: Any = None
        self._process = os.getpid()
        # An Ansible that is too old hands results over in another way; the first play says that it is.
        self.disabled = bool(begin.too_old(__version__))
        if not self.disabled:
            atexit.register(self._tell)  # Ctrl-C, and a file that does not parse

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Begin anew with each playbook of a command."""
        telling = [name for name in map(_ours, playbook.get_plays()) if name]
        self._run = ended.Run(measures=telling == [MEASURES])
        self._ends_with_recap = bool(telling)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Keep what knows the variables."""
        self._play = play

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """See the first lock being taken: no host was touched before."""
        if task.action == LOCK and self._ends_with_recap:
            self._run.begun = True

    def v2_runner_on_ok(self, result: Any) -> None:
        """See the locks, and the end being told."""
        if result.task.action == LOCK and not context.CLIARGS.get("check"):
            self._run.locks(result.host.name, result.result)
        elif result.task.action == TELL and _ours(result.task):
            self._run.told = True

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """See the locks that somebody else holds now."""
        if result.task.action == LOCK and "held" in result.result:
            self._run.locks(result.host.name, result.result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """See which host is lost."""
        if not result.task.ignore_unreachable:
            self._run.lost.add(result.host.name)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Tell the end after Ansible's own recap."""
        self._tell()

    def _tell(self) -> None:
        if os.getpid() != self._process or not self._run.untold():
            return
        self._run.told = True
        variables = self._play.get_variable_manager().get_vars(play=self._play)
        hosts, hostvars = variables["groups"]["all"], variables["hostvars"]
        part = [host for host in hosts if "sglang_deployment" in hostvars[host]]
        self._display.display("\n" + ended.words(self._run, part, hostvars))


def _ours(thing: Any) -> str:
    """Return the name of the playbook of ours that this play or task is in, if that tells a run's end; else ""."""
    path = Path((thing.get_path() or "").rpartition(":")[0])
    ours = path.name in TELLING and path.resolve().parent == Path(__file__).resolve().parents[1]
    return path.name if ours else ""
