# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet tells: status, addresses and pins, answers of its nodes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from . import checkpoint, config, network, services, source, ssh
from . import nodes as machines
from .config import API_PORT, OLD_MODEL, OLD_SERVICE, REPOSITORY, RUNTIME, Node

# The fleet is on this machine: no proxy stands between.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
RECORD = RUNTIME / "fleet.json"


def record() -> dict[str, object]:
    """What the last `up` wrote down, or nothing."""
    try:
        data = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def known_nodes() -> list[Node]:
    """Every node that there is anything of: a folder, a namespace or a process."""
    return [
        node
        for node in config.nodes(config.MAX_NODES)
        if node.folder.exists()
        or node.netns in network.namespaces()
        or any(group.exists() for group in machines.control_groups(node))
        or machines.supervisors(node)
    ]


def ask(node: Node, question: str, model: str, timeout: float = 20) -> str | None:
    """What a node's API answers in a chat, or None."""
    messages = [{"role": "user", "content": question}]
    body = json.dumps({"model": model, "messages": messages, "temperature": 0, "max_tokens": 16}).encode()
    url = f"http://{node.address}:{API_PORT}/v1/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with DIRECT.open(request, timeout=timeout) as reply:
            return str(json.load(reply)["choices"][0]["message"]["content"])
    except (OSError, ValueError, KeyError, IndexError):
        return None


def status(cache: Path) -> int:
    """Print what runs; 0 if all of it does."""
    wanted = [str(name) for name in _names(record())]
    rows = []
    for node in known_nodes():
        units = "systemctl list-units --type=service --all --no-legend --plain 'sglang-*' | awk '{print $1\"=\"$3}'"
        answer = ssh.answer(cache, node, [f"{units}; systemctl is-system-running || true"], timeout=15)
        words = (answer or "does not answer over SSH").split()
        rows.append((node, machines.is_running(node), " ".join(words) if answer else "no SSH"))
    for node, running, text in rows:
        print(f"{node.name}  {node.address}  {'running' if running else 'stopped'}  {text}")
    served = services.running()
    print(f"services  {config.HOST}  {'answering' if served else 'not answering'}")
    whole = wanted and served and {row[0].name for row in rows if row[1]} >= set(wanted)
    return 0 if whole else 1


def _names(data: dict[str, object]) -> list[object]:
    names = data.get("nodes", [])
    return names if isinstance(names, list) else []


def info(cache: Path, count: int) -> dict[str, object]:
    """Everything a person or an inventory wants to know; the commit is null until it has been made once."""
    keys = ssh.folder(cache)
    made = sorted(cache.glob("git-*/commit"), key=lambda path: path.stat().st_mtime)
    commit = made[-1].read_text().strip() if made else None
    return {
        "nodes": {node.name: node.address for node in config.nodes(count)},
        "ssh": {"user": config.SSH_USER, "key": str(keys / "id_ed25519"), "known_hosts": str(keys / "known_hosts")},
        "index_url": config.INDEX_URL,
        "depot_url": config.DEPOT_URL,
        "git_url": config.GIT_URL,
        "git_tag": source.TAG,
        "commit": commit,
        "hub_url": config.HUB_URL,
        "cdn_url": config.CDN_URL,
        "repository": REPOSITORY,
        "revision": checkpoint.revision(),
        "engine_version": config.ENGINE_VERSION,
        "old_service": OLD_SERVICE,
        "old_model": OLD_MODEL,
        "api_port": API_PORT,
        "build_user": config.BUILD_USER,
        "uv_cache": config.UV_CACHE,
        "facts": checkpoint.facts(),
        "cache": str(cache),
        "runtime": str(RUNTIME),
    }
