# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: python3 -m fleet up|down|status|reset|power|ssh|info|fault|gpu|clean-cache."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import config, faults, fleet, machine, report, ssh
from .config import LOCK
from .shell import FleetError, exclusive


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python3 -m fleet", description="the llmfleet.sglang test fleet")
    commands = top.add_subparsers(dest="command", required=True)
    for name, about in (
        ("up", "bring the fleet up (what runs is left alone)"),
        ("check", "say whether this machine has the memory and the disk for a fleet"),
        ("info", "print addresses, urls, commit, revision and key paths"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("--nodes", type=int, default=3, metavar="N", help="how many nodes (default 3)")
        if name == "info":
            command.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("down", help="remove nodes, networks, services and their files; the cache stays")
    commands.add_parser("status", help="show what runs")
    commands.add_parser("clean-cache", help="empty the cache")
    reset = commands.add_parser("reset", help="put nodes back to their state after `up`")
    reset.add_argument("node", nargs="*", help="their names (default: all)")
    power = commands.add_parser("power", help="cut a node's power (simulated), or give it back; its disk stays")
    power.add_argument("node")
    power.add_argument("state", choices=["off", "on"])
    shell = commands.add_parser("ssh", help="run a command on a node, or a shell")
    shell.add_argument("node")
    shell.add_argument("words", nargs=argparse.REMAINDER)
    fault = commands.add_parser("fault", help="switch faults of the simulated Hub on or off")
    fault.add_argument("name", choices=[*faults.NAMES, "clear", "show"])
    fault.add_argument("path", nargs="*", help="ORG/REPO/FILE each")
    gpu = commands.add_parser("gpu", help="change what a node's simulated nvidia-smi does")
    gpu.add_argument("node")
    gpu.add_argument("setting", nargs="*", help="hold_seconds=20 hidden=3,4 hang_seconds=60; none: as normal")
    return top


def main() -> int:
    """Run one command; its exit status."""
    os.umask(0o022)
    options = parser().parse_args()
    cache = config.cache_folder()
    try:
        return dispatch(options, cache)
    except FleetError as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fleet: interrupted; run it again to go on, or `python3 -m fleet down`", file=sys.stderr)
        return 130


def dispatch(options: argparse.Namespace, cache: Path) -> int:
    """Do what the command line asks."""
    if options.command == "info":
        data = report.info(cache, options.nodes)
        print(json.dumps(data, indent=2) if options.json else "\n".join(f"{key}: {data[key]}" for key in data))
        return 0
    if options.command == "check":
        if not any(config.RUNTIME.glob("nodes/*")):
            machine.check_room(cache, options.nodes)
        return 0
    if options.command == "ssh":
        os.execvp("ssh", ssh.command(cache, node_named(options.node), options.words))
    fleet.require_root()
    if options.command == "status":
        return report.status(cache)
    if options.command == "fault":
        print(faults.switch(options.name, options.path))
        return 0
    if options.command == "gpu":
        print(faults.gpu(cache, node_named(options.node), options.setting))
        return 0
    if options.command == "power":
        with exclusive(LOCK, wait=300):
            faults.power(cache, node_named(options.node), options.state)
        return 0
    with exclusive(LOCK):
        if options.command == "up":
            fleet.up(cache, options.nodes)
        elif options.command == "down":
            fleet.down()
        elif options.command == "reset":
            fleet.reset(cache, options.node)
        else:
            fleet.clean_cache(cache)
    return 0


def node_named(name: str) -> config.Node:
    """A node by its name."""
    for node in config.nodes(config.MAX_NODES):
        if node.name == name:
            return node
    raise FleetError(f"no node is called {name}; they are called node1, node2, ...")


if __name__ == "__main__":
    sys.exit(main())
