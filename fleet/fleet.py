# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole fleet: up, down, reset, status, info."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import checkpoint, config, depot, engine, image, network, services, site, source, ssh
from . import nodes as machines
from .cache import mount_points, prune, remove
from .config import API_KEY, API_PORT, OLD_MODEL, OLD_SERVICE, REPOSITORY, RUNTIME, Node
from .shell import FleetError, say, step, wait_for

RECORD = RUNTIME / "fleet.json"
PROGRAMS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "rsync": "rsync",
    "ip": "iproute2",
    "git": "git",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
GIB = 1 << 30
NODE_MEMORY = int(2.5 * GIB)
BUILD_MEMORY = 3 * GIB
CACHE_DISK = 16 * GIB
NODE_DISK = 2 * GIB


@dataclass(frozen=True)
class Artefacts:
    """Everything that is made once and cached."""

    base: Path
    depot: Path
    repository: Path
    engine: Path
    checkpoint: Path
    site: Path

    @property
    def layers(self) -> list[Path]:
        """The nodes' lower layers, top first."""
        return [self.site, self.engine, self.base]

    @property
    def folders(self) -> list[Path]:
        """Their folders in the cache."""
        layer_parents = [self.engine.parent, self.checkpoint.parent]
        return [self.base, self.depot, self.repository, self.site, *layer_parents]


def check_machine(cache: Path, count: int) -> None:
    """Say what is missing (programs, memory, disk) before anything is done."""
    lacking = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    if lacking:
        raise FleetError(f"please install first: apt-get install {' '.join(lacking)}")
    wanted = BUILD_MEMORY + count * NODE_MEMORY
    free = available_memory()
    if free < wanted:
        raise FleetError(
            f"{count} nodes need {wanted / GIB:.1f} GiB of memory ({NODE_MEMORY / GIB:.1f} GiB each and "
            f"{BUILD_MEMORY / GIB:.1f} GiB to build); {free / GIB:.1f} GiB are available"
        )
    cached = any(cache.glob("engine-*"))
    needs = {cache: 1 * GIB if cached else CACHE_DISK}
    place = existing(RUNTIME)
    needs[place] = needs.get(place, 0) + count * NODE_DISK
    by_device: dict[int, int] = {}
    for folder, size in needs.items():
        by_device[existing(folder).stat().st_dev] = by_device.get(existing(folder).stat().st_dev, 0) + size
    for folder in needs:
        wanted = by_device[existing(folder).stat().st_dev]
        free = shutil.disk_usage(existing(folder)).free
        if free < wanted:
            raise FleetError(
                f"the fleet needs {wanted / GIB:.1f} GiB of disk at {folder}; {free / GIB:.1f} GiB are free"
            )
    disk = shutil.disk_usage(place).free
    say(f"memory: {available_memory() / GIB:.1f} GiB available; disk: {disk / GIB:.0f} GiB free")


def available_memory() -> int:
    """Bytes of memory that can be had without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise FleetError("/proc/meminfo does not tell the available memory")


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    while not path.exists():
        path = path.parent
    return path


def record() -> dict[str, object]:
    """What the last `up` wrote down, or nothing."""
    try:
        data = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def prepare(cache: Path, wanted: list[Node]) -> Artefacts:
    """Make everything that is cached, what can be in parallel; start the services on the way."""
    network.bridge_up()
    ssh.prepare(cache, wanted)
    with ThreadPoolExecutor(2) as pool:
        image_made = pool.submit(image.base, cache)
        depot_made = depot.depot(cache)
        repository = source.repository(cache)
        base = image_made.result()
    settings = services.settings().load()
    settings.static = {
        "/depot/": str(depot_made / "depot"),
        "/simple/": str(depot_made / "simple"),
        "/git/": str(repository),
    }
    settings.save()
    services.start()
    engine_layer = engine.layer(cache, base, depot_made, repository)
    model = checkpoint.checkpoint(cache, base, engine_layer)
    about = {"folder": str(model), "revision": checkpoint.revision(), "modified": checkpoint.MODIFIED}
    settings.models = {REPOSITORY: about}
    settings.save()
    return Artefacts(base, depot_made, repository, engine_layer, model, site.layer(cache, model))


def up(cache: Path, count: int) -> None:
    """Bring the fleet up; what runs already is left as it is."""
    wanted = config.nodes(count)
    if not record() and debris():
        say("what a killed run left is cleaned first")
        down()
    running = [node for node in wanted if is_well(cache, node)]
    check_machine(cache, count - len(running))
    cache.mkdir(parents=True, exist_ok=True)
    RUNTIME.mkdir(parents=True, exist_ok=True)
    made = prepare(cache, wanted)
    layers = [str(layer) for layer in made.layers]
    older = [node.name for node in running if machines.layers_of(node) != layers]
    if older:
        say(f"{', '.join(older)} stand on an older image; `python3 -m fleet reset` renews them")
    missing = [node for node in wanted if node not in running]
    fresh = [node for node in missing if machines.layers_of(node) != layers]
    start(cache, missing, fresh, made.layers)
    RECORD.write_text(json.dumps({"nodes": [node.name for node in wanted], "layers": layers}, indent=1))
    prune(cache, made.folders)
    say(f"the fleet is up: {', '.join(f'{node.name} {node.address}' for node in wanted)}")


def is_well(cache: Path, node: Node) -> bool:
    """Whether a node runs and answers, or does so within half a minute."""
    if not machines.is_running(node):
        return False
    try:
        machines.wait_ready(cache, node, timeout=30)
    except FleetError:
        say(f"{node.name} runs but does not answer, or is going down: it is started again with its disk as it is")
        return False
    return True


def start(cache: Path, missing: list[Node], fresh: list[Node], layers: list[Path]) -> None:
    """Boot nodes together, `fresh` ones from nothing, and wait until they answer."""
    if not missing:
        return
    with step(f"boot {', '.join(node.name for node in missing)}"):
        for node in missing:
            machines.stop(node)
            if node in fresh:
                machines.create(cache, node, layers)
            machines.boot(node, layers)
        each([(node, partial(machines.wait_ready, cache, node)) for node in missing])
    if fresh:
        with step(f"wait for the old service ({OLD_SERVICE}) on {', '.join(node.name for node in fresh)}"):
            each([(node, partial(wait_old_service, cache, node)) for node in fresh])


def each(calls: list[tuple[Node, Callable[[], None]]]) -> None:
    """Call functions for several nodes at once; FleetError with every node's trouble."""
    troubles = []
    with ThreadPoolExecutor(max(len(calls), 1)) as pool:
        futures = [(node, pool.submit(call)) for node, call in calls]
        for node, future in futures:
            try:
                future.result()
            except FleetError as error:
                troubles.append(f"{node.name}: {error}")
    if troubles:
        raise FleetError("\n".join(troubles))


def wait_old_service(cache: Path, node: Node, timeout: float = 420) -> None:
    """Wait until the node's old service answers a completion rightly."""
    begun = time.monotonic()
    question, expected = next(iter(checkpoint.facts().items()))

    def ready() -> bool:
        if not machines.is_running(node):
            raise FleetError(f"{node.name} has ended:\n{machines.console(node)}")
        return (ask(node, question, OLD_MODEL) or "").strip() == expected

    try:
        wait_for(f"{OLD_SERVICE} on {node.name} to answer {expected!r}", ready, timeout, interval=2)
    except FleetError as error:
        raise FleetError(f"{error}\n{machines.journal(node, OLD_SERVICE)}") from error
    say(f"{node.name}: {OLD_SERVICE} answers after {time.monotonic() - begun:.0f} s")


def ask(node: Node, question: str, model: str, timeout: float = 20) -> str | None:
    """What a node's API answers in a chat, or None."""
    messages = [{"role": "user", "content": question}]
    body = json.dumps({"model": model, "messages": messages, "temperature": 0, "max_tokens": 16}).encode()
    try:
        return str(api(node, "/v1/chat/completions", body, timeout)["choices"][0]["message"]["content"])
    except (OSError, ValueError, KeyError, IndexError):
        return None


def api(node: Node, path: str, body: bytes | None = None, timeout: float = 20) -> Any:
    """A node's API's answer, as JSON. Raises OSError or ValueError."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {API_KEY}"}
    request = urllib.request.Request(f"http://{node.address}:{API_PORT}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        return json.load(reply)


def ask_all(question: str | None) -> int:
    """Send each node a chat prompt and print node, model and answer; 0 if all answer (rightly, if we know how)."""
    facts = checkpoint.facts()
    prompt = question or next(iter(facts))
    print(f"{prompt}")
    good = bool(known_nodes())
    for node in known_nodes():
        try:
            model = str(api(node, "/v1/models")["data"][0]["id"])
            answer = ask(node, prompt, model)
        except (OSError, ValueError, KeyError, IndexError) as error:
            model, answer = f"no answer: {error}", None
        print(f"  {node.name}  {model}  {(answer or '-').strip()}")
        good = good and answer is not None and answer.strip() == facts.get(prompt, answer.strip())
    return 0 if good else 1


def known_nodes() -> list[Node]:
    """Every node that there is anything of: a folder, a namespace or a process."""
    return [
        node
        for node in config.nodes(config.MAX_NODES)
        if node.folder.exists() or node.netns in network.namespaces() or machines.supervisors(node)
    ]


def debris() -> list[str]:
    """What there is of a fleet on this machine."""
    found = [node.name for node in known_nodes()]
    found += [f"mount {path}" for path in mount_points() if path.startswith(f"{RUNTIME}/")]
    found += [f"process {pid}" for pid in services.processes()]
    found += [name for name in network.links() if name == config.BRIDGE or name.startswith("llmfleet-n")]
    return found


def down() -> None:
    """Remove everything of the fleet but its cache, whatever state it is in."""
    RECORD.unlink(missing_ok=True)
    with step("stop the nodes and services"):
        services.stop()
        each([(node, partial(machines.stop, node)) for node in known_nodes()])
        for path in sorted(mount_points(), reverse=True):
            if path.startswith(f"{RUNTIME}/"):
                machines.unmount(Path(path))
        network.all_down()
    with step("remove their files"):
        for path in RUNTIME.iterdir() if RUNTIME.is_dir() else []:
            remove(path)
        # It stays if somebody mounted a disk there for the fleet.
        with contextlib.suppress(OSError):
            RUNTIME.rmdir()
    left = debris()
    if left:
        raise FleetError(f"still there: {', '.join(left)}")


def reset(cache: Path, names: list[str]) -> None:
    """Give nodes back the state they had after `up`: new upper layers and a boot."""
    chosen = [node for node in known_nodes() if not names or node.name in names]
    unknown = set(names) - {node.name for node in chosen}
    if unknown or not chosen:
        raise FleetError(f"no such nodes here: {', '.join(sorted(unknown)) or 'none is up'}")
    made = prepare(cache, chosen)
    start(cache, chosen, chosen, made.layers)


def status(cache: Path) -> int:
    """Print what runs; 0 if all of it does."""
    wanted = [str(name) for name in _names(record())]
    rows = []
    for node in known_nodes():
        units = "systemctl list-units --type=service --all --no-legend --plain 'sglang-*' | awk '{print $1\"=\"$3}'"
        answer = ssh.answer(cache, node, [f"{units}; systemctl is-system-running"], timeout=15)
        words = (answer or "does not answer over SSH").split()
        rows.append((node, machines.is_running(node), " ".join(words) if answer else "no SSH"))
    for node, running, text in rows:
        print(f"{node.name}  {node.address}  {'running' if running else 'stopped'}  {text}")
    served = services.answering()
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


def clean_cache(cache: Path) -> None:
    """Empty the cache (but not the SSH keys of a fleet that is up)."""
    if debris():
        raise FleetError("a fleet stands on this cache; `python3 -m fleet down` first")
    with step(f"empty {cache}"):
        for path in cache.iterdir() if cache.is_dir() else []:
            remove(path)


def require_root() -> None:
    """FleetError unless this process is root."""
    if os.geteuid() != 0:
        raise FleetError("the fleet needs root (mounts, network namespaces): sudo python3 -m fleet ...")
