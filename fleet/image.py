# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base image: a small Debian with systemd and SSH, made once by debootstrap."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .cache import artefact
from .config import FILES
from .shell import contained, run

SUITE = "bookworm"
PACKAGES = (
    *("ca-certificates", "curl", "dbus", "git", "iproute2", "openssh-server", "procps", "python3"),
    *("python3-venv", "rsync", "sudo", "systemd", "systemd-sysv"),
)


def base(cache: Path) -> Path:
    """Folder with the base image's root file system."""
    script = (FILES / "customise.sh").read_text()
    inputs = {"suite": SUITE, "packages": PACKAGES, "script": script}
    return artefact(cache, "base", inputs, _bootstrap)


def _bootstrap(target: Path) -> None:
    target.chmod(0o755)
    log = target.with_name(target.name.removesuffix(".partial") + ".log")
    log.unlink(missing_ok=True)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(target)]
    run(contained([*command, *mirror()]), log=log, timeout=1200)
    shutil.copy(FILES / "customise.sh", target / "customise.sh")
    in_chroot(target, ["/bin/sh", "/customise.sh"], log=log)
    (target / "customise.sh").unlink()
    log.unlink()


def mirror() -> list[str]:
    """The mirror this machine's own apt uses for the suite, if it uses one; else debootstrap's default."""
    wanted = ["Created-By: Packages", f"Codename: {SUITE}", "Component: main"]
    addresses = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted]).split()
    return addresses[:1]


ENTER = """
set -e
root="$1"; shift
if [ -n "$LAYERS" ]; then
    mount -t overlay overlay -o "lowerdir=$LAYERS,upperdir=$UPPER,workdir=$WORK" "$root"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
if [ -n "$SHARED" ]; then
    mount --bind "$SHARED" "$root/mnt"
fi
exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 \\
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


def in_chroot(
    root: Path,
    argv: list[str],
    *,
    layers: list[Path] | None = None,
    upper: Path | None = None,
    shared: Path | None = None,
    log: Path | None = None,
    timeout: float = 900,
) -> str:
    """Run a command in a root file system, on the host's network.

    With `layers` the root is an overlay of them (top first), `upper` takes what is written, and `root` is an
    empty folder to mount it on. `shared` is seen as /mnt. All mounts end with the command.
    """
    environment = {
        "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin",
        "LAYERS": ":".join(str(layer) for layer in layers or []),
        "UPPER": str(upper or ""),
        "WORK": str(upper.with_name("work")) if upper else "",
        "SHARED": str(shared or ""),
    }
    return run(contained(["sh", "-c", ENTER, "enter", root, *argv]), env=environment, log=log, timeout=timeout)
