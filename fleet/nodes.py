# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: systemd-nspawn on an overlay over the image's layers, in a network namespace of their own.

The overlay is mounted in a mount namespace that only the node's processes are in: when they are gone, so
is the mount, however they ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from . import network, ssh
from .cache import remove
from .config import Node
from .shell import FleetError, alive, end, find_processes, run, wait_for

# Hierarchies that a node's systemd keeps its units in: cgroup 2 alone, or beside cgroup 1.
CGROUPS = tuple(Path(path) for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"))

# 133 is how nspawn (with --keep-unit) says that the node asked for a reboot. Without a control group of its
# own a node would share its units' groups with the other nodes, and systemd could not kill what is in them.
BOOT = """
set -e
mount -t overlay overlay -o "lowerdir=$LAYERS,upperdir=$FOLDER/upper,workdir=$FOLDER/work" "$FOLDER/root"
status=133
while [ "$status" -eq 133 ]; do
    status=0
    sh -c 'for group in $GROUPS; do mkdir -p "$group"; echo $$ > "$group/cgroup.procs"; done; exec "$@"' enter \\
        systemd-nspawn --directory="$FOLDER/root" --boot --register=no --keep-unit --machine="$NAME" \\
        --network-namespace-path="/run/netns/$NETNS" --resolv-conf=off --timezone=off || status=$?
done
exit "$status"
"""


def supervisors(node: Node) -> list[int]:
    """Process ids of everything on the host that keeps a node running (boot script and nspawn)."""
    return sorted({*find_processes(f"--directory={node.folder}/root"), *find_processes(f"llmfleet-{node.name}-boot")})


def leader(node: Node) -> int | None:
    """Process id (on the host) of the node's PID 1."""
    for group in control_groups(node):
        with contextlib.suppress(OSError, ValueError):
            for word in (group / "payload/init.scope/cgroup.procs").read_text().split():
                if alive(int(word)):
                    return int(word)
    return None


def has_supervisor(node: Node) -> bool:
    """Whether the boot script that the pidfile names is alive (a search could miss it while it execs)."""
    try:
        pid = int((node.folder / "pid").read_text())
    except (OSError, ValueError):
        return False
    return alive(pid)


def is_running(node: Node) -> bool:
    """Whether the node has a PID 1 and something that watches over it."""
    if not has_supervisor(node):
        return False
    pid = leader(node)
    return pid is not None and alive(pid)


def control_groups(node: Node) -> list[Path]:
    """The node's own control group in each hierarchy that this machine has."""
    return [tree / f"llmfleet-{node.name}" for tree in CGROUPS if (tree / "cgroup.procs").exists()]


def layers_of(node: Node) -> list[str]:
    """The lower layers that a node's upper layer was made on; empty if there is none."""
    path = node.folder / "layers"
    return path.read_text().split() if path.exists() else []


def create(cache: Path, node: Node, layers: list[Path]) -> None:
    """Make the node's folder, with what is its own: name and host key."""
    remove(node.folder)
    for name in ("upper/etc/ssh", "work", "root"):
        (node.folder / name).mkdir(parents=True)
    (node.folder / "upper").chmod(0o755)
    (node.folder / "upper/etc/hostname").write_text(f"{node.name}\n")
    key = ssh.host_key(cache, node)
    for source, mode in ((key, 0o600), (key.with_suffix(".pub"), 0o644)):
        name = "ssh_host_ed25519_key" + source.suffix
        target = node.folder / "upper/etc/ssh" / name
        shutil.copyfile(source, target)
        target.chmod(mode)
    # Written last: a folder without it is not a whole one.
    (node.folder / "layers").write_text("".join(f"{layer}\n" for layer in layers))


def boot(node: Node, layers: list[Path]) -> None:
    """Start a node; returns at once."""
    network.node_up(node)
    environment = {
        "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin",
        "LAYERS": ":".join(str(layer) for layer in layers),
        "FOLDER": str(node.folder),
        "NAME": node.name,
        "NETNS": node.netns,
        "GROUPS": " ".join(str(group) for group in control_groups(node)),
    }
    argv = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", BOOT, f"llmfleet-{node.name}-boot"]
    with (node.folder / "console.log").open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    (node.folder / "pid").write_text(f"{process.pid}\n")


def wait_ready(cache: Path, node: Node, timeout: float = 90) -> None:
    """Wait until the node answers over SSH and has finished booting."""

    def ready() -> bool:
        if not has_supervisor(node):
            raise FleetError(f"{node.name} did not start or has ended; its console:\n{console(node)}")
        state = ssh.answer(cache, node, ["systemctl is-system-running || true"], timeout=10)
        return (state or "").strip() in ("running", "degraded")

    try:
        wait_for(f"{node.name} to answer over SSH", ready, timeout)
    except FleetError as error:
        raise FleetError(f"{error}\n{journal(node)}") from error


def stop(node: Node) -> None:
    """End a node at once, whatever state it is in: its PID 1 takes every process in it along."""
    # The boot script and nspawn go first, so that nothing is started again. A node can outlive them.
    end(supervisors(node))
    end_group(node)
    for group in control_groups(node):
        remove_group(group)
    network.node_down(node)


def power_off(node: Node) -> None:
    """Cut a node's power (simulated: its link goes, then every process is killed); its disk stays as it is.

    Without the link first, the kernel would still close the connections of the processes that die. What a disk loses
    with its power, data that was not synced, is not simulated.
    """
    network.node_down(node)
    stop(node)


def power_on(cache: Path, node: Node) -> None:
    """Boot a node from the disk that it has, and wait until it answers; one that runs is left alone."""
    if is_running(node):
        return
    layers = layers_of(node)
    if not layers:
        raise FleetError(f"{node.name} has no disk; `python3 -m fleet up` makes one")
    stop(node)
    boot(node, [Path(layer) for layer in layers])
    wait_ready(cache, node)


def members(node: Node) -> list[int]:
    """Process ids of everything in the node's control groups."""
    found: set[int] = set()
    for group in control_groups(node):
        for procs in group.rglob("cgroup.procs") if group.is_dir() else []:
            with contextlib.suppress(OSError):
                # 0 stands for a process of another process namespace: none of ours.
                found.update(int(word) for word in procs.read_text().split() if word != "0")
    return sorted(found)


def end_group(node: Node) -> None:
    """Kill everything in the node's control groups until nothing is in them."""

    def ended() -> bool:
        pids = [pid for pid in members(node) if alive(pid)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    wait_for(f"the processes of {node.name} to end", ended, 20, interval=0.05)


def remove_group(group: Path, timeout: float = 10) -> None:
    """Remove a control group and those below it, once the last process has left them."""

    def removed() -> bool:
        below = sorted(group.rglob("*"), reverse=True) if group.is_dir() else []
        with contextlib.suppress(OSError):
            for folder in [path for path in below if path.is_dir()]:
                folder.rmdir()
            if group.is_dir():
                group.rmdir()
        return not group.exists()

    wait_for(f"the control group {group} to be empty", removed, timeout, interval=0.05)


def unmount(path: Path) -> None:
    """Take a mount away, however busy it is."""
    run(["umount", "--lazy", path])


def journal(node: Node, unit: str | None = None, lines: int = 60) -> str:
    """The end of a node's journal (or of one unit's), read from outside, or its console if it does not run."""
    pid = leader(node)
    if pid is None:
        return console(node)
    inside = ["nsenter", "--target", str(pid), "--mount", "--pid", "--uts", "--ipc", "--"]
    try:
        return run(
            [*inside, "journalctl", "--no-pager", f"--lines={lines}", *([f"--unit={unit}"] if unit else [])], timeout=30
        )
    except FleetError as error:
        return f"(no journal: {error})\n{console(node)}"


def console(node: Node, lines: int = 40) -> str:
    """The end of what the node printed on its console."""
    log = node.folder / "console.log"
    if not log.exists():
        return "(nothing)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
