# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how a checkpoint reaches a fleet.

    python3 benchmarks/checkpoint.py fanout [--nodes 2,4,8] [--alone]     root, a fleet that is up with so many nodes

One host downloads and gives to the others, over links that tc shapes: the Hub's is as wide as `--wide` for all hosts
together, each host's own towards the others ten times that. The time is the whole playbook's, in units of the same
playbook for one host. The wide link's bytes are counted by tc, with all headers. --alone: the same with every host
downloading for itself. A Hub of this script's own serves random weights; the hosts keep them in /srv, and it is all
removed in the end.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from fleet import config, hub  # noqa: E402 (the checkout is on the path only now)
from fleet.web import Server, Settings  # noqa: E402

PLACE = "/srv/llmfleet-benchmark"
HUB_PORT, CDN_PORT, PEER_PORT = 8092, 8093, 8730
SHARDS = 16
FAST = 10


@dataclass(frozen=True)
class Figure:
    """What one run took: seconds, and bytes over the wide link."""

    seconds: float
    wide: int


def tc(words: str, namespace: str | None = None) -> str:
    """Run tc here or in a node's network namespace."""
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    return subprocess.run([*inside, "tc", *words.split()], check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def shaped(device: str, port: int, megabits: int, namespace: str | None = None) -> Iterator[None]:
    """Limit what leaves a device from a port; nothing else of it is touched."""
    tc(f"qdisc add dev {device} root handle 1: htb default 0", namespace)
    try:
        tc(f"class add dev {device} parent 1: classid 1:1 htb rate {megabits}mbit quantum 60000", namespace)
        match = f"u32 match ip sport {port} 0xffff flowid 1:1"
        tc(f"filter add dev {device} parent 1: protocol ip prio 1 {match}", namespace)
        yield
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):  # a node that was reset has lost it already
            tc(f"qdisc del dev {device} root", namespace)


def wide_bytes() -> int:
    """Bytes that have left over the wide link."""
    [sent] = re.findall(r"Sent (\d+) bytes", tc(f"-s class show dev {config.BRIDGE}"))
    return int(sent)


def weights(folder: Path, size: int) -> None:
    """A checkpoint of `size` random bytes in sound safetensors files."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"], "dtype": "bfloat16"}\n')
    part = size // SHARDS
    header = json.dumps({"w": {"dtype": "U8", "shape": [part], "data_offsets": [0, part]}}).encode()
    for number in range(SHARDS):
        content = len(header).to_bytes(8, "little") + header + os.urandom(part)
        (folder / f"model-{number:05d}.safetensors").write_bytes(content)


@contextlib.contextmanager
def own_hub(folder: Path) -> Iterator[str]:
    """Serve a folder as the profile's repository; returns the revision."""
    revision = hashlib.sha1(os.urandom(20), usedforsecurity=False).hexdigest()
    with tempfile.TemporaryDirectory() as temporary:
        settings = Settings(Path(temporary) / "services.json")
        settings.models = {config.REPOSITORY: {"folder": str(folder), "revision": revision, "modified": "now"}}
        settings.save()
        vars(hub)["CDN_URL"] = f"http://{config.HOST}:{CDN_PORT}"  # where large files are redirected to
        kinds: list[tuple[int, type[hub.HubHandler]]] = [(HUB_PORT, hub.HubHandler), (CDN_PORT, hub.CdnHandler)]
        servers = []
        for port, kind in kinds:
            quiet = type(kind.__name__, (kind,), {"log_message": lambda *_words: None})
            server = Server((config.HOST, port), quiet, settings)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            servers.append(server)
        for name in hub.files_of(folder):
            hub.tree_entry(folder, name)  # its digest is cached, and no part of what is measured
        try:
            yield revision
        finally:
            for server in servers:
                server.shutdown()
                server.server_close()


class Fleet:
    """Nodes of the fleet, and playbooks on them."""

    def __init__(self, names: list[str], folder: Path, revision: str) -> None:
        known = {node.name: node for node in config.nodes(config.MAX_NODES)}
        self.nodes = [known[name] for name in names]
        self.revision = revision
        self.inventory = folder / "inventory"
        shutil.copytree(PROJECT / "inventories" / "demo", self.inventory)
        plain = (self.inventory / "hosts.yml").read_text()
        head, rest = plain.partition("  hosts:\n")[0], plain.partition("  vars:\n")[2]
        rows = "".join(f"    {node.name}:\n      ansible_host: {node.address}\n" for node in self.nodes)
        (self.inventory / "hosts.yml").write_text(f"{head}  hosts:\n{rows}  vars:\n{rest}")

    def everywhere(self, script: str) -> None:
        """Run a script as root on every node."""
        words = ["ansible", "sglang", "-i", str(self.inventory), "--become", "-m", "ansible.builtin.command"]
        subprocess.run([*words, "-a", script], cwd=PROJECT, check=True, capture_output=True, timeout=300)

    def clean(self) -> None:
        """Remove what this script made, from every node that can be reached."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.everywhere(f"rm -rf {PLACE}")

    def bring(self, count: int, **variables: object) -> float:
        """Bring the checkpoint to the first `count` nodes; returns the playbook's seconds."""
        given = {
            "sglang_profile": "qwen3_5_397b_nvfp4",
            "sglang_models": f"{PLACE}/models",
            "sglang_root": f"{PLACE}/root",
            **variables,
        }
        limit = ",".join(node.name for node in self.nodes[:count])
        words = ["ansible-playbook", "tests/faults/checkpoint.yml", "-i", str(self.inventory), f"--limit={limit}"]
        began = time.monotonic()
        done = subprocess.run(
            [*words, "-e", json.dumps(given)], cwd=PROJECT, check=False, capture_output=True, text=True, timeout=3600
        )
        if done.returncode:
            raise SystemExit(done.stdout[-4000:])
        return time.monotonic() - began

    def measure(self, count: int, driver: str) -> Figure:
        """One run on nodes that have nothing but `hf`."""
        self.everywhere(f"rm -rf {PLACE}/models")
        before = wide_bytes()
        seconds = self.bring(
            count,
            sglang_checkpoint_revision=self.revision,
            sglang_hub_endpoint=f"http://{config.HOST}:{HUB_PORT}",
            sglang_checkpoint_driver=driver,
        )
        return Figure(seconds, wide_bytes() - before)


def fanout(arguments: argparse.Namespace) -> None:
    """Measure and print the fan-out."""
    counts = [int(word) for word in arguments.nodes.split(",")]
    names = (arguments.names.split(",") if arguments.names else [f"node{n}" for n in range(1, 21)])[: max(counts)]
    size = arguments.megabytes * 10**6
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        weights(folder / "weights", size)
        fleet = Fleet(names, folder, stack.enter_context(own_hub(folder / "weights")))
        stack.callback(fleet.clean)
        fleet.bring(len(names), sglang_checkpoint_driver="hub")  # installs hf, from the demo's small checkpoint
        stack.enter_context(shaped(config.BRIDGE, CDN_PORT, arguments.wide * 8))
        for node in fleet.nodes:
            stack.enter_context(shaped("eth0", PEER_PORT, arguments.wide * FAST * 8, node.netns))
        one = fleet.measure(1, "hub")
        print(f"{size / 1e6:.0f} MB, wide link {arguments.wide} MB/s, fast links {arguments.wide * FAST} MB/s")
        print(f"one download: {one.seconds:.1f} s, {one.wide / size:.3f} x the checkpoint over the wide link")
        print(f"{'hosts':<8}{'driver':<10}{'seconds':>9}{'over one':>10}{'wide bytes':>12}")
        for driver in ["rsync", *(["hub"] if arguments.alone else [])]:
            for count in counts:
                figure = fleet.measure(count, driver)
                row = f"{count:<8}{driver:<10}{figure.seconds:>9.1f}{figure.seconds / one.seconds:>10.2f}"
                print(f"{row}{figure.wide / size:>12.3f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="how a checkpoint reaches a fleet")
    parser.add_argument("what", choices=["fanout"])
    parser.add_argument("--nodes", default="2,4,8", help="how many hosts, a list (default 2,4,8)")
    parser.add_argument("--names", help="which nodes, in order (default node1, node2 …)")
    parser.add_argument("--megabytes", type=int, default=240, help="the checkpoint's size (default 240)")
    parser.add_argument("--wide", type=int, default=4, help="MB/s of the wide link (default 4)")
    parser.add_argument("--alone", action="store_true", help="also with every host downloading for itself")
    fanout(parser.parse_args())


if __name__ == "__main__":
    main()
