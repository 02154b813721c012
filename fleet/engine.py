# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image's second layer: uv's cache with the engine's packages, and the old engine in /opt/kimi."""

from __future__ import annotations

import zipfile
from pathlib import Path

from .cache import artefact
from .config import FILES, GIT_URL, INDEX_URL, UV_CACHE
from .depot import pins
from .image import in_chroot
from .shell import FleetError, run
from .wheels import Pin, sha256_of

# In the depot for the build and download tools, not for the engine.
TOOLS = (("uv", ""), ("huggingface-hub", "2."))


def is_tool(pin: Pin) -> bool:
    """Whether a wheel of the depot belongs to the tools' environment."""
    return any(pin.name == name and pin.version.startswith(version) for name, version in TOOLS)


def layer(cache: Path, base: Path, depot: Path, repository: Path) -> Path:
    """Folder of the layer's files. The depot and the git repository must be served while it is made."""
    script = (FILES / "engine.sh").read_text()
    inputs = {"base": base.name, "depot": depot.name, "git": repository.name, "script": script, "urls": [INDEX_URL]}
    return artefact(cache, "engine", inputs, lambda target: _build(target, base, depot, script)) / "layer"


def _build(target: Path, base: Path, depot: Path, script: str) -> None:
    folders = {name: target / name for name in ("layer", "work", "root", "shared")}
    for folder in folders.values():
        folder.mkdir()
        folder.chmod(0o755)
    shared = folders["shared"]
    stand_in = next((depot / "depot").glob("sglang_kernel-*.whl"))
    kernel = Pin("sglang-kernel", stand_in.name.split("-")[1], sha256_of(stand_in))
    every = pins()
    (shared / "engine.txt").write_text("".join(f"{pin}\n" for pin in [*every, kernel] if not is_tool(pin)))
    (shared / "tools.txt").write_text("".join(f"{pin}\n" for pin in every if is_tool(pin)))
    (shared / "engine.sh").write_text(script)
    extract_uv(depot, shared / "uv")
    log = target.with_name(target.name.strip(".").removesuffix(".partial") + ".log")
    log.unlink(missing_ok=True)
    command = ["/bin/sh", "/mnt/engine.sh", INDEX_URL, GIT_URL, UV_CACHE]
    in_chroot(folders["root"], command, layers=[base], upper=folders["layer"], shared=shared, log=log, timeout=1200)
    log.unlink()
    for name in ("work", "root", "shared"):
        run(["rm", "-rf", folders[name]])


def extract_uv(depot: Path, target: Path) -> None:
    """Take the program out of uv's wheel."""
    wheels = sorted((depot / "depot").glob("uv-*.whl"))
    if len(wheels) != 1:
        raise FleetError(f"the depot must hold one uv, not {[wheel.name for wheel in wheels]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".data/scripts/uv"))
        target.write_bytes(archive.read(name))
    target.chmod(0o755)
