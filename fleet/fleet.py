# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole fleet: up, down, reset, and its cache."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import checkpoint, config, depot, engine, image, machine, network, services, site, source, ssh
from . import nodes as machines
from .cache import mount_points, prune, remove
from .config import OLD_MODEL, OLD_SERVICE, RUNTIME, Node
from .report import RECORD, ask, known_nodes, record
from .shell import FleetError, say, step, wait_for


@dataclass(frozen=True)
class Artefacts:
    """Everything that is made once and cached."""

    base: Path
    depot: Path
    repository: Path
    engine: Path
    checkpoint: Path
    stand_ins: Path
    site: Path

    @property
    def layers(self) -> list[Path]:
        """The nodes' lower layers, top first."""
        return [self.site, self.engine, self.base]

    @property
    def folders(self) -> list[Path]:
        """Their folders in the cache."""
        layer_parents = [self.engine.parent, self.checkpoint.parent]
        return [self.base, self.depot, self.repository, self.stand_ins, self.site, *layer_parents]


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
    stand_ins = checkpoint.stand_ins(cache, model)
    settings.models = checkpoint.models(model, stand_ins)
    settings.save()
    return Artefacts(base, depot_made, repository, engine_layer, model, stand_ins, site.layer(cache, model))


def up(cache: Path, count: int) -> None:
    """Bring the fleet up; what runs already is left as it is."""
    wanted = config.nodes(count)
    if not record() and debris():
        say("what a killed run left is cleaned first")
        down()
    running = [node for node in wanted if is_well(cache, node)]
    machine.check(cache, count - len(running))
    cache.mkdir(parents=True, exist_ok=True)
    RUNTIME.mkdir(parents=True, exist_ok=True)
    made = prepare(cache, wanted)
    layers = [str(layer) for layer in made.layers]
    older = [node.name for node in running if machines.layers_of(node) != layers]
    if older:
        say(f"{', '.join(older)} stand on an older image; `python3 -m fleet reset` renews them")
    missing = [node for node in wanted if node not in running]
    fresh = [node for node in missing if machines.layers_of(node) != layers]
    lost = [node.name for node in fresh if machines.layers_of(node)]
    if lost:
        say(f"{', '.join(lost)} stood on an older image and did not run: made anew")
    start(cache, missing, fresh, made.layers)
    RECORD.write_text(json.dumps({"nodes": [node.name for node in wanted], "layers": layers}, indent=1))
    prune(cache, made.folders)
    depot.forget_others(cache, [*depot.pins(), source.WHEEL])
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
        for entry in RUNTIME.iterdir() if RUNTIME.is_dir() else []:
            remove(entry)
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
