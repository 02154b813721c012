# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults to switch on: what the simulated Hub does wrong, what a node's simulated nvidia-smi does, a node's power."""

from __future__ import annotations

import json
from pathlib import Path

from . import nodes as machines
from . import services, ssh
from .config import Node
from .shell import FleetError

NAMES = ("wrong_bytes",)
GPU_SETTINGS = ("hold_seconds", "hang_seconds", "hidden", "waits_watts")


def switch(name: str, paths: list[str]) -> str:
    """Switch a fault on for paths (ORG/REPO/FILE); `clear` switches all off, `show` changes nothing."""
    settings = services.settings().load()
    faults = {} if name == "clear" else settings.faults()
    if name in NAMES:
        unknown = [path for path in paths if not _served(settings.models, path)]
        if unknown or not paths:
            raise FleetError(f"the Hub has no such file: {', '.join(unknown) or '(none named)'}")
        faults[name] = sorted({*faults.get(name, []), *paths})
    if name != "show":
        target = settings.faults_path
        temporary = target.with_suffix(".new")
        temporary.write_text(json.dumps(faults, indent=1))
        temporary.rename(target)
    return json.dumps(faults)


def _served(models: dict[str, dict[str, str]], path: str) -> bool:
    repository, name = "/".join(path.split("/")[:2]), "/".join(path.split("/")[2:])
    return repository in models and (Path(models[repository]["folder"]) / name).is_file()


def power(cache: Path, node: Node, state: str) -> None:
    """Cut a node's power (`off`, simulated) or boot it again from its disk (`on`)."""
    if not machines.layers_of(node):
        raise FleetError(f"{node.name} is not of this fleet")
    if state == "off":
        machines.power_off(node)
    else:
        machines.power_on(cache, node)


def gpu_settings(words: list[str]) -> dict[str, object]:
    """Settings of the simulated nvidia-smi from `name=value` words."""
    result: dict[str, object] = {}
    for word in words:
        name, _equals, value = word.partition("=")
        if name not in GPU_SETTINGS or not value:
            raise FleetError(f"not a setting: {word}; there are {', '.join(GPU_SETTINGS)}")
        try:
            result[name] = [int(card) for card in value.split(",")] if name == "hidden" else float(value)
        except ValueError as error:
            raise FleetError(f"not a number in {word}") from error
    return result


def gpu(cache: Path, node: Node, words: list[str]) -> str:
    """Write a node's settings, and let nvidia-smi look once, so that it knows what runs before it ends."""
    text = json.dumps(gpu_settings(words))
    look = "true" if "hang_seconds" in text else "nvidia-smi -L"
    command = f"echo '{text}' | sudo tee /run/nvidia-smi-sim.json && sudo {look} >/dev/null"
    answer = ssh.answer(cache, node, [command])
    if answer is None:
        raise FleetError(f"{node.name} does not answer over SSH")
    return answer.strip()
