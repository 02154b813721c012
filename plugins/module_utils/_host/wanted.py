# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a deployment wants of its host, as preflight sees it. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field

from .facts import Question
from .systemd import unit_name

DEFAULT_COMMANDS = ("git", "rsync", "systemctl")


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
    gpu_count: int = 0
    compute_capability: str = ""
    gpu_memory_mib: int = 0
    root_bytes: int = 0
    models_bytes: int = 0
    commit: str = ""
    checkpoint: dict[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = DEFAULT_COMMANDS

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
            timeout=timeout,
        )
