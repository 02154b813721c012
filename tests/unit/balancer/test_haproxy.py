# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of a real HAProxy, out and back in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer import haproxy
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Done, Record
from ansible_collections.llmfleet.sglang.tests.unit.balancer import programs
from ansible_collections.llmfleet.sglang.tests.unit.balancer.programs import Balancer, ask, until, who_answers


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balancer]:
    with programs.haproxy(tmp_path_factory.mktemp("haproxy")) as one:
        yield one


@pytest.fixture
def balancer(running: Balancer) -> Iterator[Balancer]:
    yield running
    tell = haproxy.asker(str(running.folder / "admin.sock"))
    for name in running.workers:
        tell(f"set server sglang/{name} state ready")
    until(lambda: who_answers(running.port) == {"a", "b"})


def place(balancer: Balancer, record: Path, server: str = "a", timeout: float = 20) -> haproxy.Place:
    return haproxy.Place(
        haproxy.asker(str(balancer.folder / "admin.sock")), Record(record / "r.json"), "sglang", server, timeout
    )


def test_a_drained_server_gets_no_requests_and_a_ready_one_does(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path)
    done = haproxy.drain(one)
    assert done.changed and done.ours
    assert who_answers(balancer.port) == {"b"}
    assert haproxy.drain(one) == Done(False, True, done.message)
    assert haproxy.ready(one).changed
    assert who_answers(balancer.port) == {"a", "b"}
    assert not haproxy.ready(one).changed
    assert one.record.read() == {}


def test_draining_waits_for_the_requests_under_way_and_loses_none(balancer: Balancer, tmp_path: Path) -> None:
    slow, answers = balancer.workers["a"], []
    slow.go.clear()
    slow.asked.clear()
    haproxy.drain(place(balancer, tmp_path, "b"))  # so that the slow one is asked
    asking = threading.Thread(target=lambda: answers.append(ask(balancer.port, "wait")))
    asking.start()
    assert slow.asked.wait(20)
    haproxy.ready(place(balancer, tmp_path, "b"))
    with pytest.raises(BalancerError, match=r"sglang/a still has requests under way after 0\.3 s: it is DRAIN"):
        haproxy.drain(place(balancer, tmp_path, timeout=0.3))
    draining = threading.Thread(target=haproxy.drain, args=(place(balancer, tmp_path),))
    draining.start()
    assert who_answers(balancer.port) == {"b"}
    assert draining.is_alive()
    slow.go.set()
    draining.join(20)
    asking.join(20)
    assert answers == ["a"]


@pytest.mark.parametrize("state", ["drain", "maint"])
def test_what_others_have_taken_out_stays_out(balancer: Balancer, tmp_path: Path, state: str) -> None:
    one = place(balancer, tmp_path)
    one.set(state)
    done = haproxy.drain(one)
    assert not done.changed and not done.ours and "by somebody else's doing" in done.message
    assert not haproxy.ready(one).changed
    assert who_answers(balancer.port) == {"b"}


def test_what_others_put_into_maintenance_while_it_was_drained_stays_there(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path)
    haproxy.drain(one)
    one.set("maint")
    assert not haproxy.ready(one, check=True).changed
    assert one.name in one.record.read()  # a check run forgets nothing
    assert not haproxy.ready(one).changed
    assert one.record.read() == {}
    assert who_answers(balancer.port) == {"b"}


def test_a_request_that_is_queued_is_waited_for_too() -> None:
    said = {
        "show stat": "# pxname,svname,qcur,scur,status\nsglang,a,2,1,DRAIN\nsglang,b,,,UP\n",
        "show servers state sglang": "1\n# srv_name srv_admin_state\na 8\nb 0\n",
    }
    assert haproxy.look(said.__getitem__, "sglang", "a").sessions == 3
    assert haproxy.look(said.__getitem__, "sglang", "b").sessions == 0


def test_one_who_died_before_he_was_heard_is_known_to_have_begun(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path)
    one.record.note(one.name, {})
    one.set("drain")
    assert haproxy.drain(one).ours
    assert haproxy.ready(one).changed
    assert who_answers(balancer.port) == {"a", "b"}


def test_a_server_that_is_down_is_not_said_to_be_back(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path, timeout=0.5)
    haproxy.drain(one)
    one.ask("set server sglang/a addr 127.0.0.1 port 1")
    try:
        until(lambda: one.look().status.startswith("DOWN"))
        with pytest.raises(BalancerError, match=r"sglang/a gets no requests yet after 0\.5 s"):
            haproxy.ready(one)
        assert one.name in one.record.read()
    finally:
        one.ask(f"set server sglang/a addr 127.0.0.1 port {balancer.workers['a'].port}")


def test_check_mode_says_it_and_does_nothing(balancer: Balancer, tmp_path: Path) -> None:
    one = place(balancer, tmp_path)
    assert haproxy.drain(one, check=True).changed
    assert one.record.read() == {} and who_answers(balancer.port) == {"a", "b"}
    haproxy.drain(one)
    assert haproxy.ready(one, check=True).changed
    assert who_answers(balancer.port) == {"b"}
    haproxy.ready(one)


def test_the_socket_may_be_one_of_tcp(balancer: Balancer) -> None:
    assert haproxy.look(haproxy.asker(f"127.0.0.1:{balancer.admin}"), "sglang", "a").up


@pytest.mark.parametrize(
    ("where", "server", "words"),
    [
        ("/nowhere/admin.sock", "a", "HAProxy does not answer at /nowhere/admin.sock"),
        ("", "c", "HAProxy has no server sglang/c. It has sglang/a, sglang/b"),
    ],
)
def test_what_is_not_there_is_named(balancer: Balancer, where: str, server: str, words: str) -> None:
    with pytest.raises(BalancerError) as error:
        haproxy.look(haproxy.asker(where or str(balancer.folder / "admin.sock")), "sglang", server)
    assert words in str(error.value)
