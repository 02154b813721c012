# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command without ever waiting longer than allowed. PRIVATE to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    `rc` is None when the command did not end by itself; `problem` then says why: C(missing), C(hung), or the
    text of the operating system's error. An ended command has an empty `problem`, whatever its `rc`.
    """

    argv: tuple[str, ...]
    rc: int | None
    stdout: str = ""
    stderr: str = ""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def describe(self) -> str:
        """One line that says what went wrong, for messages."""
        name = self.argv[0]
        if self.problem == "missing":
            return f"the command {name} is not there"
        # The values of options are long and say nothing of what went wrong.
        short = " ".join(self.argv[:2]).partition("=")[0]
        if self.problem == "hung":
            return f"{short} did not end in time and was given up"
        if self.problem:
            return f"{name}: {self.problem}"
        text = " ".join((self.stderr.strip() or self.stdout.strip()).split())
        return f"{short} ended with {self.rc}: {text[:400] or 'no output'}"


Runner = Callable[[Sequence[str], float], Outcome]


def run(argv: Sequence[str], timeout: float) -> Outcome:
    """Run `argv` (no shell, C locale, no input) for at most `timeout` seconds.

    A command that cannot even be killed (a driver call that never returns) is left behind, not waited for.
    """
    key = tuple(argv)
    env = {**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "") + ":" + SEARCH_PATH}
    try:
        child = subprocess.Popen(
            key,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=env,
        )
    except FileNotFoundError:
        return Outcome(key, None, problem="missing")
    except OSError as error:
        return Outcome(key, None, problem=str(error))
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(child)
        return Outcome(key, None, problem="hung")
    return Outcome(key, child.returncode, _text(out), _text(err))


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        child.kill()
    try:
        child.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
