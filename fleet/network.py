# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One bridge, and a network namespace with one link for each node. Nothing is routed or forwarded."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from .config import BRIDGE, HOST, PREFIX, Node
from .shell import FleetError, run


def links() -> dict[str, dict[str, object]]:
    """The host's network devices by name."""
    return {str(link["ifname"]): link for link in json.loads(run(["ip", "-json", "address"]))}


def namespaces() -> list[str]:
    """Names of the network namespaces that belong to fleets."""
    folder = Path("/run/netns")
    found = folder.glob("llmfleet-*") if folder.is_dir() else []
    return sorted(path.name for path in found)


def bridge_up() -> None:
    """Make the bridge with its address, with forwarding off on it."""
    present = links()
    taken = [name for name, link in present.items() if name != BRIDGE and HOST in json.dumps(link)]
    if taken:
        raise FleetError(f"{HOST} is already an address of {taken[0]}: the fleet needs 10.77.0.0/24 for itself")
    if BRIDGE not in present:
        # A fixed address: a bridge else takes one of its ports', and neighbours would ask for the old one.
        run(["ip", "link", "add", BRIDGE, "address", mac(1), "type", "bridge"])
    # No packet of a node may pass on to another network, whatever the host forwards otherwise.
    Path(f"/proc/sys/net/ipv4/conf/{BRIDGE}/forwarding").write_text("0")
    no_ipv6(BRIDGE)
    if HOST not in json.dumps(present.get(BRIDGE, {})):
        run(["ip", "address", "add", f"{HOST}/{PREFIX}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])


def mac(number: int | str) -> str:
    """A hardware address (locally administered) for the last part of an IPv4 address."""
    return f"02:6c:6c:66:6c:{int(number):02x}"


def no_ipv6(device: str) -> None:
    """Switch IPv6 off on a device of the host, if this kernel has it."""
    with contextlib.suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1")


def node_up(node: Node) -> None:
    """Make the node's namespace and link anew: address, no default route, no IPv6."""
    node_down(node)
    run(["ip", "netns", "add", node.netns])
    inside = ["ip", "-n", node.netns]
    # A fixed address here too: a node that is made anew must be found at once.
    peer = ["peer", "name", "eth0", "address", mac(node.address.rsplit(".", 1)[1]), "netns", node.netns]
    run(["ip", "link", "add", node.veth, "type", "veth", *peer])
    no_ipv6(node.veth)
    run(["ip", "link", "set", node.veth, "master", BRIDGE, "up"])
    script = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true"
    run(["ip", "netns", "exec", node.netns, "sh", "-c", script])
    run([*inside, "link", "set", "lo", "up"])
    run([*inside, "address", "add", f"{node.address}/{PREFIX}", "dev", "eth0"])
    run([*inside, "link", "set", "eth0", "up"])


def node_down(node: Node) -> None:
    """Remove the node's link and namespace, whichever of them are there."""
    if node.veth in links():
        run(["ip", "link", "delete", node.veth])
    if node.netns in namespaces():
        run(["ip", "netns", "delete", node.netns])


def all_down() -> list[str]:
    """Remove the bridge, every link and every namespace of a fleet; returns their names."""
    gone = []
    for name in links():
        if re.fullmatch(r"llmfleet-n\d+", name) or name == BRIDGE:
            run(["ip", "link", "delete", name])
            gone.append(name)
    for name in namespaces():
        run(["ip", "netns", "delete", name])
        gone.append(name)
    return gone
