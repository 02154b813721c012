# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's SSH key, the nodes' host keys, and the known_hosts file: kept in the cache, so they stay."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .cache import hand_over
from .config import SSH_USER, Node
from .shell import run


def folder(cache: Path) -> Path:
    """Folder of the keys."""
    return cache / "ssh"


def prepare(cache: Path, nodes: list[Node]) -> None:
    """Make the user's key, each node's host key and known_hosts, whichever are missing."""
    keys = folder(cache)
    keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    _key(keys / "id_ed25519", "llmfleet test fleet")
    lines = []
    for node in nodes:
        _key(host_key(cache, node), f"{node.name} of the llmfleet test fleet")
        public = host_key(cache, node).with_suffix(".pub").read_text().split()
        lines.append(f"{node.address},{node.name} {public[0]} {public[1]}\n")
    known = keys / "known_hosts"
    old = known.read_text().splitlines(keepends=True) if known.exists() else []
    # Nodes beyond this count stay known: the file is for all fleets made from this cache.
    kept = [line for line in old if line.split(",")[0] not in {node.address for node in nodes}]
    temporary = keys / ".known_hosts.new"
    temporary.write_text("".join(kept + lines))
    temporary.rename(known)
    hand_over(keys)


def host_key(cache: Path, node: Node) -> Path:
    """Path of a node's private host key."""
    return folder(cache) / f"host_{node.name}_ed25519"


def _key(path: Path, comment: str) -> None:
    if path.exists() and path.with_suffix(".pub").exists():
        return
    path.unlink(missing_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])


def command(cache: Path, node: Node, words: list[str]) -> list[str]:
    """The ssh command line that runs `words` on a node (an interactive shell if there are none)."""
    keys = folder(cache)
    options = {
        "UserKnownHostsFile": str(keys / "known_hosts"),
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "ConnectTimeout": "5",
        "LogLevel": "ERROR",
    }
    flags = [flag for key, value in options.items() for flag in ("-o", f"{key}={value}")]
    return ["ssh", "-F", "/dev/null", "-i", str(keys / "id_ed25519"), *flags, f"{SSH_USER}@{node.address}", *words]


def answer(cache: Path, node: Node, words: list[str], timeout: float = 20) -> str | None:
    """What a command on a node prints, or None if it (or the connection) fails."""
    argv = command(cache, node, words)
    argv[1:1] = ["-o", "BatchMode=yes"]
    try:
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=dict(os.environ),
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None
