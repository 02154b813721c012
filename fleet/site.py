# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image's top layer: small files that make it a host of this fleet, with an old service on it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import ssh
from .cache import artefact
from .config import FILES, HOST, MAX_NODES, OLD_SERVICE, SSH_USER, nodes

SSH_UID = 1000  # the first user that customise.sh makes
SUDO_RULE = "# The simulated nvidia-smi reads the environments of all users' processes.\n"
SUDO_RULE += "ALL ALL=(root) NOPASSWD: /usr/bin/nvidia-smi\nDefaults!/usr/bin/nvidia-smi !syslog\n"


def layer(cache: Path, checkpoint: Path) -> Path:
    """Folder of the layer's files."""
    public = ssh.folder(cache) / "id_ed25519.pub"
    names = ("nvidia-smi", "run.sh", f"{OLD_SERVICE}.service")
    inputs = {
        "files": {name: (FILES / name).read_text() for name in names},
        "key": public.read_text(),
        "hosts": hosts(),
        "sudo": SUDO_RULE,
        "checkpoint": checkpoint.parent.name,
    }

    def build(target: Path) -> None:
        target.chmod(0o755)
        _put(target / "etc/hosts", hosts(), 0o644)
        _put(target / "etc/sudoers.d/nvidia-smi", SUDO_RULE, 0o440)
        _put(target / "usr/bin/nvidia-smi", (FILES / "nvidia-smi").read_text(), 0o755)
        _put(target / "opt/kimi/run.sh", (FILES / "run.sh").read_text(), 0o755)
        units = target / "etc/systemd/system"
        _put(units / f"{OLD_SERVICE}.service", (FILES / f"{OLD_SERVICE}.service").read_text(), 0o644)
        (units / "multi-user.target.wants").mkdir()
        (units / f"multi-user.target.wants/{OLD_SERVICE}.service").symlink_to(
            f"/etc/systemd/system/{OLD_SERVICE}.service"
        )
        shutil.copytree(checkpoint, target / "opt/kimi/model")
        home = target / "home" / SSH_USER
        _put(home / ".ssh/authorized_keys", public.read_text(), 0o600)
        (home / ".ssh").chmod(0o700)
        for path in (home, home / ".ssh", home / ".ssh/authorized_keys"):
            os.chown(path, SSH_UID, SSH_UID)

    return artefact(cache, "site", inputs, build)


def hosts() -> str:
    """The nodes' /etc/hosts."""
    lines = ["127.0.0.1 localhost", f"{HOST} fleet"]
    lines += [f"{node.address} {node.name}" for node in nodes(MAX_NODES)]
    return "\n".join(lines) + "\n"


def _put(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
