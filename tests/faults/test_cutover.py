# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong between the old service and the new one: a stolen port, what will not end, memory that stays held."""

from __future__ import annotations

import re

from testinfra.host import Host

from fleet.config import OLD_SERVICE
from tests.faults.breaking import (
    NODE,
    ORPHAN,
    SERVES_AGAIN,
    STUBBORN,
    THIEF,
    another,
    converges,
    deploy,
    deployment,
    gpus,
    one_engine,
    phase,
    refused,
    restored,
)
from tests.fleet.hosts import API_PORT, SERVICE, Serving, address, main_pid, root, serving, show, wait

# Listens on ADDRESS PORT as soon as the unit UNIT has a main process other than PID; with "while", only as long as
# that one lives.
STEAL = """
import os, socket, subprocess, sys, time
address, port, unit, before, how = sys.argv[1:]
def main_pid():
    show = ["systemctl", "show", "--property=MainPID", "--value", unit]
    return subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
while (pid := main_pid()) in ("0", before):
    time.sleep(0.05)
thief = socket.socket()
thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
thief.bind((address, int(port)))
thief.listen()
while how == "stays" or os.path.exists(f"/proc/{pid}"):
    time.sleep(0.05)
"""
IGNORE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
# Away from every unit, in each hierarchy that systemd keeps its units in.
ESCAPE = """
for tree in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    [ ! -e $tree/cgroup.procs ] || { mkdir -p $tree/llmfleet-test && echo %s > $tree/llmfleet-test/cgroup.procs; }
done
"""


def steal_port(host: Host, before: Serving, how: str) -> None:
    """Let somebody else take the engine's port once the new engine starts."""
    words = f"{address(host)} {API_PORT} {SERVICE} {before.pid} {how}"
    root(host, f"systemd-run --quiet --collect --unit={THIEF} /usr/bin/python3 -c %s {words}", STEAL)


def test_a_port_that_is_stolen_and_given_back(node: Host, deployed: Serving) -> None:
    wanted = another()
    steal_port(node, deployed, "while")
    message = refused(deploy(wanted))
    assert "The port belongs to somebody else: " in message and f"{THIEF}.service" in message
    assert "set another sglang_port" in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    converges(node, wanted)


def test_a_port_that_is_stolen_and_kept(node: Host, deployed: Serving) -> None:
    wanted = another()
    steal_port(node, deployed, "stays")
    thief = main_pid(node, THIEF)
    message = refused(deploy(wanted))
    assert "set another sglang_port" in message
    assert "Going back failed too" in message
    assert f"pid {thief} " in message.partition("Going back failed too")[2]
    assert show(node, SERVICE, "ActiveState")["ActiveState"] != "active"
    # The host is in the state that the message tells, and a rerun says who is in the way as well.
    told = refused(deploy(wanted))
    assert f"Somebody else holds port {API_PORT}" in told and f"pid {thief} " in told
    root(node, f"systemctl stop {THIEF}")
    converges(node, wanted)


def test_an_old_service_that_ignores_sigterm(node: Host, deployed: Serving) -> None:
    # It has no unit file that it could come back from, which is refused unless accepted.
    accepted = {"sglang_accepted_findings": ["no_unit_file"]}
    wanted = another(sglang_stop_timeout=6, sglang_replaces=[OLD_SERVICE, STUBBORN], **accepted)
    settings = "--property=TimeoutStopSec=infinity --setenv=LLMFLEET_SIM_GPU=2,5:4096"
    root(node, f"systemd-run --quiet --collect --unit={STUBBORN} {settings} /usr/bin/python3 -c %s", IGNORE)
    old = main_pid(node, STUBBORN)
    run = deploy(wanted).must_pass()
    assert f"{STUBBORN}.service had not stopped after 6 s and was killed" in " ".join(run.output.split())
    assert not node.file(f"/proc/{old}").exists
    assert one_engine(node) == serving(node).pid
    converges(node, wanted)


def orphan(host: Host) -> int:
    """Start a process of the service that has left its control group and holds memory of two cards."""
    invocation = show(host, SERVICE, "InvocationID")["InvocationID"]
    command = f"/usr/bin/env INVOCATION_ID={invocation} LLMFLEET_SIM_GPU=2,5:4096 /bin/sleep 3600"
    root(host, f"systemd-run --quiet --collect --unit={ORPHAN} {command}")
    wait("the orphan", lambda: "sleep" in root(host, f"cat /proc/{main_pid(host, ORPHAN)}/comm || true"), timeout=20)
    pid = main_pid(host, ORPHAN)
    root(host, ESCAPE, str(pid))
    return pid


def test_an_orphan_that_keeps_gpu_memory_before_the_deployment(node: Host, deployed: Serving) -> None:
    wanted = another()
    pid = orphan(node)
    message = refused(deploy(wanted))
    assert f"Somebody else uses the cards: pid {pid} " in message and "4096 MiB on GPUs 2, 5" in message
    assert serving(node) == deployed  # the same process: nothing was stopped
    root(node, f"kill {pid}")
    converges(node, wanted)


def test_an_orphan_that_keeps_gpu_memory_while_its_service_stops(node: Host, deployed: Serving) -> None:
    wanted = another(sglang_stop_timeout=15)
    with deployment(wanted) as run:
        run.until("Compare what runs with what is wanted] *")
        pid = orphan(node)
        message = refused(run.end())
    assert f"pid {pid} " in message and "still runs" in message
    assert "end them, or allow it (kill_leftovers: true)" in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    converges(node, {**wanted, "sglang_kill_leftovers": True})
    assert not node.file(f"/proc/{pid}").exists


def test_gpu_memory_that_stays_held_for_a_while(node: Host, deployed: Serving) -> None:
    wanted = another()
    gpus(hold_seconds=25)
    run = deploy(wanted).must_pass()
    assert re.search(r"\d+ MiB in use that no listed process accounts for", run.output), run.output
    assert phase(node) == "serving"
    converges(node, wanted)
    assert NODE in run.recap
