# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One operator at a time on a host."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.lock import Lock, LockError

ALICE = Lock("a1", "alice@ops1", "deploys sglang-qwen", "c1", 100, "5@boot")
BOB = Lock("b1", "bob@ops2", "deploys sglang-kimi", "c2", 200, "6@boot")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record" / "lock.json"


def test_a_free_host_is_locked_and_the_lock_says_who_why_and_how_long(path: Path) -> None:
    assert lock.take(path, ALICE, 60, 1000.0).held
    found = lock.read(path)
    assert found is not None
    assert (found.owner, found.reason, found.taken_at, found.expires_at) == (ALICE.owner, ALICE.reason, 1000.0, 1060.0)


def test_the_second_is_refused_and_told_who_and_since_when(path: Path) -> None:
    lock.take(path, ALICE, 3600, 1000.0)
    outcome = lock.take(path, BOB, 3600, 1720.0)
    assert not outcome.held and outcome.other is not None
    assert lock.read(path) == outcome.other
    assert lock.refusal(outcome.other, 1720.0) == (
        "alice@ops1 works on this host since 12 min (deploys sglang-qwen). The lock expires in 48 min. "
        "If that run is dead, -e sglang_lock_broken=a1 takes it over."
    )


def test_the_same_run_renews_and_keeps_since_when(path: Path) -> None:
    lock.take(path, ALICE, 60, 1000.0)
    assert lock.take(path, ALICE, 60, 1050.0).held
    found = lock.read(path)
    assert found is not None and (found.taken_at, found.expires_at) == (1000.0, 1110.0)


def test_an_expired_lock_and_a_broken_one_are_taken_over_and_it_is_said(path: Path) -> None:
    lock.take(path, ALICE, 60, 1000.0)
    over = lock.take(path, BOB, 60, 1060.0)
    assert (over.held, over.why) == (True, "it has expired")
    assert over.other is not None and over.other.owner == "alice@ops1"
    again = lock.take(path, ALICE, 60, 1061.0, broken="b1")
    assert (again.held, again.why) == (True, "its run has died")
    assert not lock.take(path, BOB, 60, 1062.0, broken="someone else").held


def test_only_its_own_lock_is_given_back(path: Path) -> None:
    assert not lock.release(path, "a1")
    lock.take(path, ALICE, 60, 1000.0)
    assert not lock.release(path, "b1")
    assert lock.read(path) is not None
    assert lock.release(path, "a1")
    assert lock.read(path) is None


def test_check_mode_decides_alike_and_writes_nothing(path: Path) -> None:
    assert lock.take(path, ALICE, 60, 1000.0, check=True).held
    assert not path.parent.exists()
    lock.take(path, ALICE, 60, 1000.0)
    before = path.read_bytes()
    assert not lock.take(path, BOB, 60, 1001.0, check=True).held
    assert lock.release(path, "a1", check=True)
    assert path.read_bytes() == before


FULL = {"schema": 1, **asdict(replace(ALICE, expires_at=1060.0))}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 99}',
        '{"schema": 1}',
        json.dumps({**FULL, "expires_at": "soon"}),
        json.dumps({**FULL, "taken_at": None}),
        json.dumps({**FULL, "pid": True}),
        json.dumps({**FULL, "run": 7}),
        json.dumps({**FULL, "address": 7}),
    ],
)
def test_a_lock_that_cannot_be_read_is_nobodys_to_take(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(LockError, match=f"the lock {path} .*: look who works on this host, and remove that file"):
        lock.take(path, ALICE, 60, 1000.0)
    with pytest.raises(LockError):
        lock.release(path, ALICE.run)
    assert path.read_text() == text


def test_a_lock_from_before_it_said_an_address_is_read(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps({name: each for name, each in FULL.items() if name != "address"}))
    assert lock.take(path, replace(ALICE, address="10.0.0.1:22"), 60, 1000.0).held


def test_what_is_renewed_is_the_runs_own(path: Path) -> None:
    gone = lock.take(path, ALICE, 60, 1000.0, renew=True)
    assert not gone.held and not path.exists()
    assert "This run has lost its lock" in lock.refused(gone, 1000.0)
    lock.take(path, ALICE, 60, 1000.0)
    assert lock.take(path, ALICE, 60, 2000.0, renew=True).held  # it had expired, and nobody came
    lock.take(path, BOB, 60, 3000.0)
    taken = lock.take(path, ALICE, 60, 3001.0, broken="b1", renew=True)
    assert not taken.held and "bob@ops2 works on this host" in lock.refused(taken, 3001.0)
    over = lock.take(path, ALICE, 60, 4000.0, renew=True)
    assert not over.held and "bob@ops2 (deploys sglang-kimi) may have worked on" in lock.refused(over, 4000.0)
    assert lock.read(path) == taken.other
    # In check mode nothing was taken that could be renewed.
    assert lock.take(path, ALICE, 60, 4000.0, renew=True, check=True).held


def test_one_machine_by_two_addresses_is_refused_at_the_second(path: Path) -> None:
    one, other = replace(ALICE, address="10.77.0.16:22"), replace(ALICE, address="10.77.16:22")
    assert lock.take(path, one, 60, 1000.0).held
    assert lock.take(path, one, 60, 1001.0).held  # another instance of the machine
    for renew in (False, True):
        outcome = lock.take(path, other, 60, 1002.0, renew=renew)
        assert not outcome.held
        assert "10.77.0.16:22 and 10.77.16:22 are one machine" in lock.refused(outcome, 1002.0)
    assert not lock.release(path, other.run, address=other.address)
    assert lock.release(path, one.run, address=one.address)


def test_a_lock_of_a_later_version_with_more_fields_is_read(path: Path) -> None:
    lock.take(path, ALICE, 60, 1000.0)
    path.write_text(json.dumps({**json.loads(path.read_text()), "mood": "good"}))
    assert lock.read(path) is not None


def test_a_lock_that_came_and_went_leaves_no_trace_of_when(path: Path) -> None:
    lock.take(path, ALICE, 60, 1000.0)
    lock.release(path, "a1")
    before = {one.name: one.stat().st_mtime_ns for one in path.parent.iterdir()}
    os.utime(path.with_suffix(".guard"), ns=(1, 1))
    before[path.with_suffix(".guard").name] = 1
    lock.take(path, ALICE, 60, 1001.0)
    lock.release(path, "a1")
    assert {one.name: one.stat().st_mtime_ns for one in path.parent.iterdir()} == before


def test_the_host_record_can_be_read_by_a_service_whatever_the_umask(path: Path) -> None:
    before = os.umask(0o077)
    try:
        lock.take(path, ALICE, 60, 1000.0)
    finally:
        os.umask(before)
    assert path.parent.stat().st_mode & 0o777 == 0o755


def attempt(path: Path, number: int, start: object, won: object) -> None:
    start.wait(10)  # type: ignore[attr-defined]
    mine = Lock(f"run{number}", f"user{number}@x", "", "c", number, "")
    if lock.take(path, mine, 60, 1000.0).held:
        won.put(number)  # type: ignore[attr-defined]


def test_of_many_at_once_one_gets_it(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, won = context.Event(), context.Queue()
    many = [context.Process(target=attempt, args=(path, number, start, won)) for number in range(12)]
    for one in many:
        one.start()
    start.set()
    for one in many:
        one.join(20)
    winner = won.get(timeout=5)
    assert won.empty()
    found = lock.read(path)
    assert found is not None and found.run == f"run{winner}"


@pytest.mark.parametrize("apart", [-3600.0, 3600.0])
def test_a_clock_that_is_set_by_an_hour_gives_nobody_the_lock_and_loses_nobody_his(path: Path, apart: float) -> None:
    # Controllers' clocks take no part. A host's own may be set in between: six hours of validity outlast an hour.
    lock.take(path, ALICE, 6 * 3600, 100_000.0)
    refused = lock.take(path, BOB, 6 * 3600, 100_000.0 + apart)
    assert not refused.held and refused.other is not None
    assert "since -" not in lock.refusal(refused.other, 100_000.0 + apart)
    assert lock.take(path, ALICE, 6 * 3600, 100_000.0 + apart).held
    assert lock.release(path, ALICE.run)
