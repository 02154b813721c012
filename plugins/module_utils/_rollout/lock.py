# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One operator at a time on a host: a lock with owner, reason and expiry, kept on the host. Private to the collection.

Times are the host's own: it wrote them and it reads them, so that a controller's clock does not matter. A fleet is
locked by locking each of its hosts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import kept
from ansible_collections.llmfleet.sglang.plugins.module_utils._words import amounts

SCHEMA = 1


@dataclass(frozen=True)
class Lock:
    """A lock. run: names the run that took it; taken_at, expires_at: seconds since 1970 by the host's clock.

    controller, pid, process_start: where that run is, by which the same controller sees that it has died.
    """

    run: str
    owner: str
    reason: str
    controller: str
    pid: int
    process_start: str
    taken_at: float = 0.0
    expires_at: float = 0.0

    def expired(self, now: float) -> bool:
        """Tell whether its time is over."""
        return now >= self.expires_at


@dataclass(frozen=True)
class Outcome:
    """held: whether the lock is the asker's now; other: the lock that was in the way, taken over if held; why: how."""

    held: bool
    lock: Lock | None
    other: Lock | None = None
    why: str = ""


class LockError(Exception):
    """The lock cannot be read; the message says what to do."""


def read(path: Path) -> Lock | None:
    """Return the lock; None when there is none. Raises LockError."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LockError(
            f"the lock {path} cannot be read ({error}): look who works on this host, and remove it"
        ) from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise LockError(f"the lock {path} was written by another version: look who works on this host, and remove it")
    known = {field.name for field in fields(Lock)}
    return Lock(**{name: each for name, each in value.items() if name in known})


def judge(found: Lock | None, wanted: Lock, now: float, broken: str) -> Outcome:
    """Say whether `wanted` may be taken. broken: the run whose lock may be taken over, whatever it says."""
    if found is None:
        return Outcome(True, wanted)
    if found.run == wanted.run:
        return Outcome(True, replace(wanted, taken_at=found.taken_at))
    if broken == found.run:
        return Outcome(True, wanted, found, "its run has died")
    if found.expired(now):
        return Outcome(True, wanted, found, "it has expired")
    return Outcome(False, found, found)


def take(path: Path, wanted: Lock, seconds: float, now: float, *, broken: str = "", check: bool = False) -> Outcome:
    """Take or renew the lock for `seconds`; check: only say what would come of it. Raises LockError and OSError."""
    asked = replace(wanted, taken_at=now, expires_at=now + seconds)
    if check:
        return judge(read(path), asked, now, broken)
    with kept.guarded(path):
        outcome = judge(read(path), asked, now, broken)
        if outcome.held and outcome.lock is not None:
            kept.write(path, {"schema": SCHEMA, **asdict(outcome.lock)})
        return outcome


def release(path: Path, run: str, *, check: bool = False) -> bool:
    """Give the lock back, if it is this run's; tell whether it was. Raises LockError and OSError."""
    if check or not path.exists():
        found = read(path)
        return found is not None and found.run == run
    with kept.guarded(path):
        found = read(path)
        if found is None or found.run != run:
            return False
        path.unlink()
        return True


def refusal(lock: Lock, now: float) -> str:
    """Say who holds the lock, since when and for what, and what to do if that run is dead."""
    return (
        f"{lock.owner} works on this host since {amounts.duration(now - lock.taken_at)} ({lock.reason}). "
        f"The lock expires in {amounts.duration(lock.expires_at - now)}. "
        f"If that run is dead: -e sglang_lock_broken={lock.run}"
    )
