# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print how far a long task is while it runs. Private to the collection.

Ansible prints nothing between a task's start and its result. An action plugin made from `ProgressAction` runs the
module of its name as Ansible would, so that check mode, become, no_log, pipelining and async keep their meaning.
Meanwhile a thread with a connection of its own reads the small file that the module writes, and prints what it says:

      [node1] installing packages: 83 of 176, 12 s (last time 65 s)

Whatever goes wrong there is silent: a task never fails for it. Lines come through Ansible's own display, so that
ansible-playbook, AWX and a CI log show them alike.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable

from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader
from ansible.utils.display import Display
from ansible.utils.vars import merge_hash
from ansible_collections.llmfleet.sglang.plugins.module_utils._words.amounts import duration, size

# Nothing is said of a task that ends sooner (seconds).
SILENCE = 10.0
SHORTEST_PAUSE, LONGEST_PAUSE = 5.0, 60.0
LONGEST_DETAIL = 100

display = Display()


def pause_after(elapsed: float) -> float:
    """Return the seconds until the next line: a fifth of what has passed, so that hours do not fill a log."""
    return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, elapsed / 5))


def parse(answer: str) -> tuple[dict[str, Any], float]:
    """Read what the host said: the file, and after it the host's own time. Raises ValueError."""
    text, _newline, now = answer.strip().rpartition("\n")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("the progress file holds no map")
    return content, float(now)


def describe(content: Mapping[str, Any], now: float) -> str:
    """Say in words what a progress file holds. Raises ValueError, KeyError or TypeError for what is none.

    now: epoch seconds on the host that wrote it. The checkpoint's file counts bytes, under names that say so.
    """
    words = str(content["phase"])
    if not words:
        raise ValueError("there is no phase yet")
    counted = _counted(content)
    seconds = now - float(content["started_at"]) if "started_at" in content else content.get("seconds")
    if seconds is not None:
        counted.append(duration(max(0.0, float(seconds))))
    line = f"{words}: {', '.join(counted)}" if counted else words
    last, detail = content.get("last_seconds"), content.get("detail")
    line += f" (last time {duration(float(last))})" if last is not None else ""
    line += f": {str(detail)[:LONGEST_DETAIL]}" if detail else ""
    # What a host says must not steer the terminal.
    return "".join(character for character in line if character.isprintable())


def _counted(content: Mapping[str, Any]) -> list[str]:
    """Done, total and, for bytes, how fast."""
    bytes_counted = "bytes_done" in content
    shown: Callable[[float], str] = size if bytes_counted else str
    prefix = "bytes_" if bytes_counted else ""
    done, total = int(content.get(f"{prefix}done") or 0), int(content.get(f"{prefix}total") or 0)
    if not done and not total:
        return []
    parts = [f"{shown(done)} of {shown(total)}" if total else f"{shown(done)} {content.get('unit') or ''}".strip()]
    if content.get("bytes_per_second"):
        parts.append(f"{size(float(content['bytes_per_second']))}/s")
    if content.get("seconds_left") is not None:
        parts.append(f"{duration(float(content['seconds_left']))} left")
    return parts


class Watcher:
    """Reads a progress file on a host every so often, and says what it holds until it is stopped.

    read: returns the text that `parse` reads, or raises; say: prints a line; name: what stands in its brackets; task:
    what is said when the host tells nothing.
    """

    def __init__(self, read: Callable[[], str], say: Callable[[str], None], name: str, task: str) -> None:
        self._read, self._say = read, say
        self._name, self._task = name, task
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="llmfleet-progress")

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        # A read that hangs is left behind: the thread is a daemon.
        self._thread.join(timeout=0.5)

    def _work(self) -> None:
        began = time.monotonic()
        wait = SILENCE
        while not self._stopped.wait(wait):
            elapsed = time.monotonic() - began
            line = self._line(elapsed)
            if self._stopped.is_set():
                return
            try:
                self._say(f"  [{self._name}] {line}")
            except Exception:
                return
            wait = pause_after(elapsed)

    def _line(self, elapsed: float) -> str:
        try:
            return describe(*parse(self._read()))
        except Exception:  # whatever a connection raises
            return f"{self._task}: {duration(elapsed)}"


class ProgressAction(ActionBase):  # type: ignore[misc]
    """Run the module of the action's name, and print how far it is."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module as Ansible's own action does; see there."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        in_background = bool(self._task.async_val) and not self._connection.has_native_async
        quiet = in_background or self._task.check_mode or self._task.no_log
        arguments = dict(self._task.args)
        watcher = None if quiet else self._watcher(arguments, task_vars or {})
        options = {"module_args": arguments, "task_vars": task_vars, "wrap_async": in_background}
        if watcher:
            with watcher:
                result = merge_hash(result, self._execute_module(**options))
        else:
            result = merge_hash(result, self._execute_module(**options))
        if not in_background:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _watcher(self, arguments: dict[str, Any], task_vars: Mapping[str, Any]) -> Watcher | None:
        """Make a watcher, and name the file that it reads in the module's arguments; None when that cannot be."""
        try:
            connection = self._own_connection()
        except Exception as error:
            display.vvv(f"no progress is shown: {error}")
            return None
        # Nobody can guess the name, so nobody lies in wait there.
        path = arguments.setdefault("progress_file", f"/tmp/llmfleet-{secrets.token_hex(16)}.json")
        command = f"cat {shlex.quote(str(path))} && echo && date +%s"

        def read() -> str:
            status, output, _errors = connection.exec_command(command, in_data=None, sudoable=False)
            if status:
                raise OSError(f"{path} cannot be read")
            return bytes(output).decode("utf-8", errors="replace")

        host = str(task_vars.get("inventory_hostname", "host"))
        name = f"{host} on {self._task.delegate_to}" if self._task.delegate_to else host
        return Watcher(read, display.display, name, str(self._task.get_name(include_role_fqcn=False)))

    def _own_connection(self) -> Any:
        """Return another connection to the same host with the same options, without become."""
        context = self._play_context.copy()
        context.become = False
        mine = self._connection
        other = connection_loader.get(
            mine._load_name, context, None, task_uuid=self._task._uuid, ansible_playbook_pid=str(os.getppid())
        )
        if other is None:
            raise ValueError(f"there is no second connection of kind {mine._load_name}")
        other.set_options(direct=mine.get_options())
        other._shell = mine._shell
        return other
