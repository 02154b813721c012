# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and folders of the fleet, in this one place."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

FILES = Path(__file__).parent / "files"
PROJECT = Path(__file__).parent.parent
RUNTIME = Path("/var/lib/llmfleet-fleet")
LOCK = Path("/run/lock/llmfleet-fleet.lock")

BRIDGE = "llmfleet0"
HOST = "10.77.0.1"
PREFIX = 24
FIRST_NODE = 11
MAX_NODES = 20

STATIC_PORT = 8081
HUB_PORT = 8082
CDN_PORT = 8083
DEPOT_URL = f"http://{HOST}:{STATIC_PORT}/depot/"
INDEX_URL = f"http://{HOST}:{STATIC_PORT}/simple/"
GIT_URL = f"http://{HOST}:{STATIC_PORT}/git/sglang.git"
HUB_URL = f"http://{HOST}:{HUB_PORT}"
CDN_URL = f"http://{HOST}:{CDN_PORT}"

SSH_USER = "ops"
BUILD_USER = "sglang-build"
UV_CACHE = "/var/cache/llmfleet/uv"

ENGINE_VERSION = "0.5.23"
REPOSITORY = "nvidia/Qwen3.5-397B-A17B-NVFP4"
OTHER_REPOSITORIES = ("moonshotai/Kimi-K2.5", "nvidia/GLM-5-NVFP4")
OLD_SERVICE = "sglang-kimi"
OLD_MODEL = "kimi-k2.5"
API_PORT = 30000


@dataclass(frozen=True)
class Node:
    """One node: its name, address and the folders and devices that belong to it."""

    name: str
    number: int

    @property
    def address(self) -> str:
        """IPv4 address on the bridge."""
        return f"{HOST.rsplit('.', 1)[0]}.{FIRST_NODE - 1 + self.number}"

    @property
    def netns(self) -> str:
        """Name of its network namespace."""
        return f"llmfleet-{self.name}"

    @property
    def veth(self) -> str:
        """Name of the host's end of its link (at most 15 characters)."""
        return f"llmfleet-n{self.number}"

    @property
    def folder(self) -> Path:
        """Folder with its upper layer, mount point, log and pidfile."""
        return RUNTIME / "nodes" / self.name


def nodes(count: int) -> list[Node]:
    """The first `count` nodes."""
    if not 1 <= count <= MAX_NODES:
        raise ValueError(f"--nodes must be between 1 and {MAX_NODES}, not {count}")
    return [Node(f"node{number}", number) for number in range(1, count + 1)]


def cache_folder() -> Path:
    """$LLMFLEET_CACHE, or .cache/llmfleet in the home of the user who invoked (through sudo or not)."""
    chosen = os.environ.get("LLMFLEET_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(owner().pw_dir) / ".cache" / "llmfleet"


def owner() -> pwd.struct_passwd:
    """The user who invoked: sudo's SUDO_USER, else the one who runs."""
    name = os.environ.get("SUDO_USER")
    if name:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return pwd.getpwuid(os.getuid())
