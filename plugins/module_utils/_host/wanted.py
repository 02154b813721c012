# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a deployment wants of its host, as preflight sees it. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .facts import Question
from .systemd import unit_name

DEFAULT_COMMANDS = ("git", "rsync", "systemctl")
# What of a deployment's launch the checks look at. Others stay on the controller, for they may be secret.
ARGUMENTS = (
    "device",
    "tp-size",
    "pp-size",
    "dp-size",
    "ep-size",
    "enable-dp-attention",
    "mem-fraction-static",
    "max-total-tokens",
    "context-length",
    "kv-cache-dtype",
    "cpu-offload-gb",
    "hicache-size",
    "enable-torch-symm-mem",
    "enable-symm-mem",
    "enable-nccl-nvls",
    "enable-flashinfer-allreduce-fusion",
    "flashinfer-allreduce-fusion-backend",
)
ENVIRONMENT = ("NCCL_P2P_DISABLE", "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE")


@dataclass(frozen=True)
class Launch:
    """How the engine is to be started: launch arguments by canonical name, environment, patch sets by name.

    multimem: whether a patch set gives world sizes to multimem kernels.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    patch_sets: tuple[str, ...] = ()
    multimem: bool = False

    @property
    def on_cards(self) -> bool:
        """Whether an engine is started at all, and on cards."""
        return bool(self.arguments) and self.arguments.get("device", "cuda") == "cuda"

    @property
    def tensor(self) -> int:
        return int(self.arguments.get("tp-size") or 1)

    @property
    def data(self) -> int:
        return int(self.arguments.get("dp-size") or 1)

    @property
    def split(self) -> int:
        """Over how many cards the weights are split."""
        return self.tensor * int(self.arguments.get("pp-size") or 1)

    @property
    def ranks(self) -> int:
        """How many cards the engine takes. Data parallel attention shares those of the tensor parallel group."""
        return self.split * (1 if self.has("enable-dp-attention") else self.data)

    def number(self, name: str) -> float:
        """A numeric argument; 0 where it is not set."""
        return float(self.arguments.get(name) or 0)

    def has(self, name: str) -> bool:
        return self.arguments.get(name) not in (None, False, "")

    def switched_on(self, variable: str) -> bool:
        return str(self.environment.get(variable, "")).lower() in ("1", "true")


def launch_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """What of a resolved deployment's launch the checks look at, as the module preflight takes it."""
    launch, sets = deployment["launch"], deployment["patch_sets"]
    multimem = [edit["dict_entry"].get("value") for one in sets for edit in one["edits"] if _multimem(edit)]
    return {
        "arguments": {name: launch["arguments"][name] for name in ARGUMENTS if name in launch["arguments"]},
        "environment": {name: launch["environment"][name] for name in ENVIRONMENT if name in launch["environment"]},
        "patch_sets": [one["name"] for one in sets],
        "multimem": any(value not in (None, "", "[]") for value in multimem),
    }


def _multimem(edit: Mapping[str, Any]) -> bool:
    return edit.get("id") == "multimem_world_sizes" and "dict_entry" in edit


@dataclass(frozen=True)
class Wanted:
    """Sizes in bytes, GPU memory in MiB. `gpu_count` 0: no cards are needed, and none are looked at."""

    service: str
    address: str
    port: int
    paths: dict[str, str]
    python: str
    sglang_version: str
    replaces: tuple[str, ...] = ()
    adopt: bool = False
    gpu_count: int = 0
    compute_capability: str = ""
    gpu_memory_mib: int = 0
    visible_gpus: tuple[int, ...] = ()
    root_bytes: int = 0
    models_bytes: int = 0
    commit: str = ""
    checkpoint: dict[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = DEFAULT_COMMANDS
    launch: Launch = field(default_factory=Launch)

    @property
    def own_units(self) -> tuple[str, ...]:
        """The instance's own unit and those whose place it takes."""
        return tuple(unit_name(name) for name in (self.service, *self.replaces))

    def question(self, timeout: float) -> Question:
        """What has to be looked at to judge the host."""
        return Question(
            services=self.own_units,
            address=self.address,
            port=self.port,
            paths=self.paths,
            commands=self.commands,
            python=self.python,
            checkpoint_path=self.checkpoint.get("path", ""),
            checkpoint_repository=self.checkpoint.get("repository", ""),
            checkpoint_revision=self.checkpoint.get("revision", ""),
            gpus=self.gpu_count > 0,
            timeout=timeout,
            visible=self.visible_gpus,
        )
