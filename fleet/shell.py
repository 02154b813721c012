# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands, bounded waits, processes and progress lines."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

STARTED = time.monotonic()


class FleetError(Exception):
    """Something that the person at the keyboard should read; the message says what to do."""


def say(text: str) -> None:
    """Print one progress line with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:7.1f} s] {text}", flush=True)


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Say when a step starts, that it still runs (each 10 s) and how long it took."""
    say(f"{name} ...")
    begun = time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(10):
            say(f"{name}: still at it, {time.monotonic() - begun:.0f} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        say(f"{name}: failed after {time.monotonic() - begun:.1f} s")
        raise
    finally:
        done.set()
        thread.join()
    say(f"{name}: done in {time.monotonic() - begun:.1f} s")


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    timeout: float = 900,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
) -> str:
    """Run a command and return what it printed (stdout and stderr together).

    Raises FleetError with the command and its last lines if it fails or runs past `timeout` seconds.
    With `log` the output goes there, so that a person can follow it.
    """
    words = [str(word) for word in argv]
    shown = shlex.join(words) if len(words) < 30 else shlex.join(words[:30]) + " ..."
    sink = log.open("ab") if log else None
    try:
        done = subprocess.run(
            words,
            check=False,
            input=None if stdin is None else stdin.encode(),
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=sink or subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            env=env,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise FleetError(f"{words[0]} is not installed (or not found): {error}") from error
    except subprocess.TimeoutExpired as error:
        raise FleetError(f"still running after {timeout:.0f} s, ended: {shown}") from error
    finally:
        if sink:
            sink.close()
    text = log.read_text(errors="replace") if log else done.stdout.decode(errors="replace")
    if done.returncode:
        tail = "\n    ".join(text.strip().splitlines()[-25:])
        where = f" (all of it: {log})" if log else ""
        raise FleetError(f"exit status {done.returncode}: {shown}{where}\n    {tail}")
    return text


def contained(argv: Sequence[str | Path]) -> list[str]:
    """Wrap a build command so that it, all that it starts and all that it mounts end with this process."""
    return [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL"),
        *("--mount-proc", "--"),
        *(str(word) for word in argv),
    ]


def wait_for(what: str, probe: Callable[[], object], timeout: float, interval: float = 0.25) -> None:
    """Wait until `probe` returns something true; FleetError after `timeout` seconds.

    A probe that raises FleetError ends the wait at once: it saw that waiting is no use.
    """
    limit = time.monotonic() + timeout
    while not probe():
        if time.monotonic() > limit:
            raise FleetError(f"waited {timeout:.0f} s for {what}")
        time.sleep(interval)


def find_processes(*words: str) -> list[int]:
    """Process ids of those (but this one) whose command line holds every one of `words` as an argument."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if all(word in arguments for word in words):
                found.append(int(entry.name))
    return sorted(found)


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end(pids: Sequence[int], sig: signal.Signals = signal.SIGKILL, timeout: float = 20) -> None:
    """Send `sig` to the processes and wait until they are gone; SIGKILL for what is left halfway."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
    limit = time.monotonic() + timeout
    while left := [pid for pid in pids if alive(pid)]:
        if time.monotonic() > limit:
            raise FleetError(f"processes {left} do not end; look at them with: ps -fp {left[0]}")
        if time.monotonic() > limit - timeout / 2:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.05)


@contextlib.contextmanager
def exclusive(path: Path, wait: float = 0) -> Iterator[None]:
    """Hold a lock file; FleetError if another process holds it for longer than `wait` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as handle:
        limit = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= limit:
                    handle.seek(0)
                    raise FleetError(
                        f"another fleet command is at work ({handle.read().strip()}); wait for it to end"
                    ) from None
                time.sleep(0.2)
        handle.truncate(0)
        handle.write(f"pid {os.getpid()}: {' '.join(sys.argv[1:])}")
        handle.flush()
        yield
