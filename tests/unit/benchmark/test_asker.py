# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody still reads what a module will answer, through a pipe, a socket or a terminal; whose the host is."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.asker import NOBODY_READS, Asker, Over
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout.lock import Lock


def pipe() -> tuple[int, int]:
    """Where one reads and another writes, as after a local connection's shell."""
    return os.pipe()


def sockets() -> tuple[int, int]:
    """The same as of an sshd."""
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


def terminal() -> tuple[int, int]:
    """The same without pipelining."""
    return pty.openpty()


@pytest.fixture(params=[pipe, sockets, terminal])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Descriptors of the one who reads and the one who writes."""
    make: Callable[[], tuple[int, int]] = request.param
    reader, writer = make()
    yield reader, writer
    for one in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(one)


def test_who_has_gone_is_noticed_without_a_word(ends: tuple[int, int]) -> None:
    reader, writer = ends
    awaited = Asker(writer, every=1000.0)
    assert awaited() and awaited()
    os.close(reader)
    assert not awaited() and not awaited()


def test_an_empty_line_now_and_then_reaches_who_does_not_look(ends: tuple[int, int]) -> None:
    reader, writer = ends
    seconds = [0.0]
    awaited = Asker(writer, every=5.0, clock=lambda: seconds[0])
    os.set_blocking(reader, False)
    for second, said in ((4.0, b""), (5.0, b"\n"), (9.0, b""), (10.0, b"\n")):
        seconds[0] = second
        assert awaited()
        try:
            assert os.read(reader, 10).replace(b"\r", b"") == said
        except BlockingIOError:
            assert said == b""


def test_a_line_that_finds_nobody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a system whose poll tells nothing of it."""
    reader, writer = os.pipe()
    os.close(reader)
    awaited = Asker(writer, every=0.0)
    monkeypatch.setattr(awaited, "_poll", type("Poll", (), {"poll": lambda self, timeout: []})())
    assert not awaited()
    os.close(writer)


def test_a_file_is_read_whenever_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    with open(path, "wb") as file:
        assert Asker(file.fileno(), every=0.0)()
    assert path.read_bytes() == b""


ALICE = Lock("a1", "alice@ops1", "measures sglang-qwen", "c1", 100, "5@boot")
BOB = Lock("b1", "bob@ops2", "deploys sglang-kimi", "c2", 200, "6@boot")


@pytest.mark.parametrize("before", [ALICE, None])
def test_another_run_that_takes_the_host_ends_it(tmp_path: Path, before: Lock | None) -> None:
    path = tmp_path / "lock.json"
    if before:
        lock.take(path, before, 60, 0.0)
    over = Over(lambda: True, path)
    assert over() == ""
    if before:
        assert lock.take(path, before, 60, 50.0, renew=True).held
        assert over() == ""
        lock.release(path, before.run)
        assert over() == ""
    assert lock.take(path, BOB, 60, 100.0).held
    assert over() == "another run holds the host's lock now (bob@ops2: deploys sglang-kimi)"
    path.write_text("{")
    assert over() == ""


def test_it_is_over_when_nobody_reads_whoever_has_the_host(tmp_path: Path) -> None:
    assert Over(lambda: False, tmp_path / "lock.json")() == NOBODY_READS
