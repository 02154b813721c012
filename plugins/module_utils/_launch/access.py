# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the service user may read, run and write what the engine will. Private to the collection.

A process of that user tries: modes, owners, ACLs, mounts and every folder on the way count as they count for the
engine. It writes nothing. It is a fork, since that user may not be able to run the Python that runs this.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import errno
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .probe import ProbeFailed, identity

SHOWN = 3
# How far below a folder that is written to others are looked at: the compilers' caches, and not all that is in them.
DEPTH = 4
RUN_TIMEOUT = 60
# Seconds for all of it: a file system that hangs ends the process that tries, and not the deployment.
TIMEOUT = 600


@dataclass(frozen=True)
class Wanted:
    """What the user has to have: an interpreter to run, a folder to read with all in it, folders to write to.

    An empty `python` or `checkpoint` is not looked at; of `writable`, what is not there yet is left out.
    """

    python: str = ""
    checkpoint: str = ""
    writable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Denied:
    """One thing that did not come off. kind: "read", "run" or "write"; at: what is in the way; denied: by rights."""

    kind: str
    path: str
    at: str
    folder: bool = False
    denied: bool = False
    why: str = ""


def problems(wanted: Wanted, user: str) -> list[str]:
    """Return what the user may not do, one line each, with the command that mends it. "": whoever runs this.

    Raises ProbeFailed when there is no such user, or nobody but root could ask.
    """
    who = identity(user)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            signal.alarm(TIMEOUT)
            if who:
                os.setgroups(who["extra_groups"])
                os.setgid(who["group"])
                os.setuid(who["user"])
            with os.fdopen(writing, "w") as answer:
                json.dump([asdict(one) for one in _try_all(wanted)], answer)
            status = 0
        finally:
            os._exit(status)  # nothing of the parent's may be run twice
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _pid, ended = os.waitpid(child, 0)
    if ended:
        raise ProbeFailed(f"what {user or 'the user'} may read and write could not be tried within {TIMEOUT} s")
    return words([Denied(**one) for one in json.loads(text)], user, wanted.checkpoint)


def _try_all(wanted: Wanted) -> list[Denied]:
    found = _run(wanted.python) if wanted.python else []
    found += _read(wanted.checkpoint) if wanted.checkpoint else []
    return found + [one for folder in wanted.writable for one in _write(folder)]


def _culprit(path: str) -> str:
    """The first folder on the way that this user may not pass, or else the path itself."""
    for way in (path, os.path.realpath(path)):
        at = "/"
        for part in way.split("/")[1:-1]:
            at = os.path.join(at, part)
            if os.path.isdir(at) and not os.access(at, os.X_OK):
                return os.path.realpath(at)
    return os.path.realpath(path)


def _denied(kind: str, path: str, error: OSError) -> Denied:
    denied = error.errno in (errno.EACCES, errno.EPERM)
    at = _culprit(path) if denied else path
    return Denied(kind, path, at, os.path.isdir(at), denied, error.strerror or str(error))


def _read(folder: str) -> list[Denied]:
    """Read the first byte of every file."""
    found: list[Denied] = []
    try:
        os.stat(folder)
    except OSError as error:
        return [_denied("read", folder, error)]

    def refused(error: OSError) -> None:
        found.append(_denied("read", str(error.filename), error))

    for where, _folders, files in os.walk(folder, onerror=refused, followlinks=True):
        for name in files:
            path = os.path.join(where, name)
            try:
                with open(path, "rb") as opened:
                    opened.read(1)
            except OSError as error:
                found.append(_denied("read", path, error))
    return found


def _run(python: str) -> list[Denied]:
    asked = [python, "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(
            asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_TIMEOUT, check=False, cwd="/"
        )
    except OSError as error:
        return [_denied("run", python, error)]
    except subprocess.TimeoutExpired:
        return [Denied("run", python, python, why=f"it did not end within {RUN_TIMEOUT} s")]
    if done.returncode == 0:
        return []
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
    return [Denied("run", python, python, why=said[0][:300])]


def _write(top: str) -> list[Denied]:
    """Look at a folder's own folders. systemd gives it to the user with all in it, unless it is the user's already."""
    try:
        if os.stat(top).st_uid != os.geteuid():
            return []
    except OSError:
        return []
    found = []
    for where, folders, _files in os.walk(top):
        if where != top and not os.access(where, os.W_OK | os.X_OK):
            found.append(Denied("write", where, where, folder=True, denied=True))
        if where[len(top) :].count("/") >= DEPTH:
            folders.clear()
    return found


def words(found: Sequence[Denied], user: str, checkpoint: str = "") -> list[str]:
    """The problems in words: those with one culprit once, and no more than a few of a kind."""
    lines = list(dict.fromkeys(_line(one, user or "this user") for one in found))
    if len(lines) <= SHOWN:
        return lines
    more = f"… and {len(lines) - SHOWN} more"
    reads = all(one.kind == "read" and one.denied for one in found)
    return [*lines[:SHOWN], f"{more}: chmod -R o+rX {shlex.quote(checkpoint)}/" if reads and checkpoint else more]


def _line(one: Denied, user: str) -> str:
    at = shlex.quote(one.at)
    if not one.denied:
        return f"{user} cannot {one.kind} {one.path}: {one.why}"
    if one.kind == "write":
        return f"{user} cannot write to {one.at}, though the folder above is its own: chown -R {user}: {at}"
    if one.folder:
        return f"{user} cannot {one.kind} what lies in {one.at}: chmod o+rx {at}"
    right = "rx" if one.kind == "run" else "r"
    return f"{user} cannot {one.kind} {one.at}: chmod o+{right} {at}"
