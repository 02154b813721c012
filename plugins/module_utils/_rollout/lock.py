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
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import kept
from ansible_collections.llmfleet.sglang.plugins.module_utils._words import amounts

SCHEMA = 1


@dataclass(frozen=True)
class Lock:
    """A lock. run: names the run that took it; taken_at, expires_at: seconds since 1970 by the host's clock.

    controller, pid, process_start: where that run is, by which the same controller sees that it has died. address: how
    the inventory reaches the host; "" where the lock does not say.
    """

    run: str
    owner: str
    reason: str
    controller: str
    pid: int
    process_start: str
    taken_at: float = 0.0
    expires_at: float = 0.0
    address: str = ""

    def expired(self, now: float) -> bool:
        """Tell whether its time is over."""
        return now >= self.expires_at

    def elsewhere(self, address: str) -> bool:
        """Tell whether it was taken by a host of the inventory that another address leads to, so for another host."""
        return bool(self.address and address) and self.address != address


@dataclass(frozen=True)
class Outcome:
    """held: whether the lock is the asker's now; other: the lock that was in the way, taken over if held.

    why: why it could be taken over; or, in a sentence, why it is refused, where that is not that another run holds it.
    """

    held: bool
    lock: Lock | None
    other: Lock | None = None
    why: str = ""


class LockError(Exception):
    """The lock cannot be read; the message says what to do."""


# What each field of the file has to be, as JSON has it.
_KINDS = {"pid": int, "taken_at": (int, float), "expires_at": (int, float)}
_OPTIONAL = ("address",)


def read(path: Path) -> Lock | None:
    """Return the lock; None when there is none. Raises LockError."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _unreadable(path, f"cannot be read ({error})") from None
    if not isinstance(value, dict):
        raise _unreadable(path, "cannot be read (it is no mapping)")
    if value.get("schema") != SCHEMA:
        raise _unreadable(path, "was written by another version")
    names = [field.name for field in fields(Lock) if field.name in value or field.name not in _OPTIONAL]
    wrong = [name for name in names if not _is(value.get(name), _KINDS.get(name, str))]
    if wrong:
        raise _unreadable(path, f"cannot be read (without a right {', '.join(wrong)})")
    return Lock(**{name: value[name] for name in names})


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _unreadable(path: Path, what: str) -> LockError:
    return LockError(f"the lock {path} {what}: look who works on this host, and remove that file")


def judge(found: Lock | None, wanted: Lock, now: float, broken: str) -> Outcome:
    """Say whether `wanted` may be taken. broken: the run whose lock may be taken over, whatever it says."""
    if found is None:
        return Outcome(True, wanted)
    if found.run == wanted.run and found.elsewhere(wanted.address):
        return Outcome(False, found, found, _two_addresses(found.address, wanted.address))
    if found.run == wanted.run:
        return Outcome(True, replace(wanted, taken_at=found.taken_at))
    if broken == found.run:
        return Outcome(True, wanted, found, "its run has died")
    if found.expired(now):
        return Outcome(True, wanted, found, "it has expired")
    return Outcome(False, found, found)


def _two_addresses(one: str, other: str) -> str:
    return (
        f"{one} and {other} are one machine, on which this run works already: give its hosts the same ansible_host and "
        "ansible_port, so that they take turns."
    )


def judge_renewal(found: Lock | None, wanted: Lock, now: float) -> Outcome:
    """Say whether the run has had the lock all the while, so that nobody else can have worked on the host."""
    if found is not None and found.run == wanted.run:
        return judge(found, wanted, now, "")
    if found is not None and not found.expired(now):
        return Outcome(False, found, found)
    who = f"{found.owner} ({found.reason})" if found else "somebody else"
    why = f"This run has lost its lock of this host, which {who} may have worked on since: run the same command again."
    return Outcome(False, found, found, why)


def take(
    path: Path,
    wanted: Lock,
    seconds: float,
    now: float,
    *,
    broken: str = "",
    renew: bool = False,
    check: bool = False,
) -> Outcome:
    """Take the lock for `seconds`, or keep it for as long again. Raises LockError and OSError.

    renew: keep it only, and refuse where it is not this run's any more. check: only say what would come of it; nothing
    was taken then that could be renewed.
    """
    asked = replace(wanted, taken_at=now, expires_at=now + seconds)
    if check:
        return judge(read(path), asked, now, broken)
    with kept.guarded(path):
        found = read(path)
        outcome = judge_renewal(found, asked, now) if renew else judge(found, asked, now, broken)
        if outcome.held and outcome.lock is not None:
            kept.write(path, {"schema": SCHEMA, **asdict(outcome.lock)})
        return outcome


def release(path: Path, run: str, *, address: str = "", check: bool = False) -> bool:
    """Give the lock back, if it is this run's; tell whether it was. Raises LockError and OSError.

    address: how the inventory reaches the host; what the run holds for another address is left.
    """
    if check or not path.exists():
        return _may_release(read(path), run, address)
    with kept.guarded(path):
        if not _may_release(read(path), run, address):
            return False
        path.unlink()
        return True


def _may_release(found: Lock | None, run: str, address: str) -> bool:
    return found is not None and found.run == run and not found.elsewhere(address)


def refused(outcome: Outcome, now: float) -> str:
    """Say why the lock of an outcome could not be had, and what to do."""
    return outcome.why if outcome.why or outcome.other is None else refusal(outcome.other, now)


def refusal(lock: Lock, now: float) -> str:
    """Say who holds the lock, since when and for what, and what to do if that run is dead."""
    return (
        f"{lock.owner} works on this host since {amounts.duration(now - lock.taken_at)} ({lock.reason}). "
        f"The lock expires in {amounts.duration(lock.expires_at - now)}. "
        f"If that run is dead, -e sglang_lock_broken={lock.run} takes it over."
    )
