# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes, sockets and commands, as the kernel and real programs have them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import proc
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import run
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.sockets import (
    Listener,
    bind_problem,
    conflicts,
    parse_listeners,
    read_listeners,
    with_owners,
)
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost, kernel_address


def test_this_very_process() -> None:
    mine = proc.read_process(os.getpid())
    assert mine and (mine.pid, mine.ppid, mine.state) == (os.getpid(), os.getppid(), "R")
    assert "python" in mine.command or "pytest" in mine.command
    assert mine.start == proc.read_processes()[os.getpid()].start


def test_a_name_with_blanks_and_parentheses(host: FakeHost) -> None:
    host.add_process(7, "a b", ppid=3, start=77, unit="x.service")
    found = proc.read_process(7, host.proc)
    assert found == proc.Process(7, 3, 77, "S", "a b", "x.service")


def test_a_process_that_is_not_there(host: FakeHost) -> None:
    assert proc.read_process(7, host.proc) is None


def test_descendants_do_not_take_in_others(host: FakeHost) -> None:
    for pid, ppid in ((1, 0), (2, 1), (3, 2), (4, 3), (5, 1)):
        host.add_process(pid, ppid=ppid)
    assert proc.descendants([2, 900], proc.read_processes(host.proc)) == {2, 3, 4}


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("0::/system.slice/sglang-kimi.service\n", "sglang-kimi.service"),
        ("9:name=systemd:/\n0::/system.slice/a.service/payload\n", "a.service"),
        ("8:pids:/other.service\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/sglang-kimi.service\n", "user@1000.service"),
        ("0::/system.slice/system-a.slice/a@1.service\n", "a@1.service"),
        ("0::/machine.slice/machine-n.scope/payload/system.slice/a.service\n", "machine-n.scope"),
        ("0::/system.slice/_cpu.service\n", "cpu.service"),
        ("0::/\n", ""),
        ("", ""),
    ],
)
def test_the_unit_of_a_control_group(text: str, unit: str) -> None:
    assert proc.unit_of_cgroup(text) == unit


@pytest.mark.parametrize("address", ["0.0.0.0", "10.77.0.11", "127.0.0.1", "::", "::1", "2001:db8::2"])
def test_addresses_as_the_kernel_prints_them(address: str) -> None:
    text = f"head\n 0: {kernel_address(address)}:7530 0:0 0A 0:0 00:0 0 0 0 4711 1\n"
    assert parse_listeners(text) == [Listener(address, 30000, 4711)]


def test_only_listening_sockets_count_and_mapped_addresses_are_plain_ones() -> None:
    mapped = kernel_address("::ffff:10.0.0.1")
    rows = f"head\n 0: {mapped}:0050 0:0 0A 0:0 00:0 0 0 0 1 1\n 1: {mapped}:0051 0:0 01 0:0 00:0 0 0 0 2 1\n"
    assert parse_listeners(rows) == [Listener("10.0.0.1", 80, 1)]


@pytest.mark.parametrize(
    ("held", "wanted", "collide"),
    [
        ("0.0.0.0", "10.77.0.11", True),
        ("::", "10.77.0.11", True),
        ("10.77.0.11", "10.77.0.11", True),
        ("10.77.0.11", "0.0.0.0", True),
        ("127.0.0.1", "10.77.0.11", False),
        ("0.0.0.0", "::1", False),
        ("10.77.0.11", "::", True),
        ("127.0.0.1", "", True),
        ("127.0.0.1", "node1", True),
    ],
)
def test_which_listeners_collide(held: str, wanted: str, collide: bool) -> None:
    assert conflicts(Listener(held, 1, 1), wanted) is collide


@pytest.mark.parametrize("held", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("wanted", ["127.0.0.1", "127.0.0.2", "0.0.0.0"])
def test_collisions_are_the_kernels(held: str, wanted: str) -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind((held, 0))
        first.listen()
        port = first.getsockname()[1]
        try:
            second.bind((wanted, port))
            refused = False
        except OSError:
            refused = True
        assert conflicts(Listener(held, port, 1), wanted) is refused


def test_a_real_listener_is_found_with_its_owner() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        (found,) = with_owners(read_listeners({port}), proc.read_processes())
        assert (found.address, found.port, found.pid) == ("127.0.0.1", port, os.getpid())
    assert read_listeners({port}) == []


def test_an_owner_that_cannot_be_seen_is_still_a_listener(host: FakeHost) -> None:
    host.add_process(5, listens=[("0.0.0.0", 80)])
    (found,) = with_owners(read_listeners({80}, host.proc), {}, host.proc)
    assert found.pid == 0 and "could not be seen" in found.describe()


def test_addresses_of_other_hosts_cannot_be_listened_on() -> None:
    assert bind_problem("127.0.0.1") == "" and bind_problem("0.0.0.0") == ""
    assert "assign" in bind_problem("192.0.2.1").lower()


def test_a_command_that_hangs_is_given_up_with_all_its_children() -> None:
    began = time.monotonic()
    outcome = run([sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '331'])"], 0.5)
    assert time.monotonic() - began < 5
    assert (outcome.rc, outcome.problem, outcome.ok) == (None, "hung", False)
    assert subprocess.run(["pgrep", "-f", "sleep 331"], check=False, stdout=subprocess.DEVNULL).returncode == 1


def test_what_becomes_of_commands() -> None:
    assert run(["/no/such/command"], 1).describe() == "the command /no/such/command is not there"
    done = run([sys.executable, "-c", "print('out'); import sys; sys.exit('bad\\nluck')"], 20)
    assert (done.rc, done.stdout) == (1, "out\n")
    assert done.describe().endswith("ended with 1: bad luck")
    assert run(["/"], 1).problem.endswith("Permission denied: '/'")
