# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a verified checkpoint to the other hosts, for as long as it takes. PRIVATE to the collection: it can change
at any time.

An rsync daemon in a transient systemd unit: no account is opened for it and no key left on a host, as SSH would need,
and nothing is encrypted that every receiver compares with its digest anyway. It runs as a user that exists as long as
the unit does and can write nothing, listens on the one address of the fleet, knows the peers' addresses and asks for a
secret of this deployment. Configuration and secret are handed over as systemd credentials: they lie in memory that the
unit alone can read, and are gone with it, whether it is stopped, killed or at the end of its time.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import dataclasses
import os
import socket
import subprocess
import tempfile
import time
import typing as t

from .errors import CheckpointError
from .manifest import STAMP, TRASH

UNIT = "llmfleet-checkpoint.service"
USER = "llmfleet"
MODULE = "checkpoint"
_START = 15.0
# A client that takes nothing for so long frees its place.
_IDLE = 120


@dataclasses.dataclass(frozen=True)
class Server:
    """What is served, where and to whom.

    address: where to listen; peers: names or addresses that may ask; seconds: after which it ends in any case;
    transfers: at the same time; limit: bytes a second in all, 0 for none; io_class: best-effort, idle or none.
    """

    address: str
    port: int
    peers: tuple[str, ...]
    secret: str
    seconds: int = 14400
    transfers: int = 1
    limit: int = 0
    io_class: str = "best-effort"
    rsync: str = "/usr/bin/rsync"

    def configuration(self, folder: str, secrets: str, lock: str) -> str:
        """The daemon's own file; `secrets` and `lock` are the paths of its other two."""
        allowed = " ".join(_numeric(peer) for peer in self.peers)
        lines = [
            f"address = {_numeric(self.address)}",
            f"port = {self.port}",
            "use chroot = no",
            "reverse lookup = no",
            "log file = /dev/null",
            f"lock file = {lock}",
            f"timeout = {_IDLE}",
            f"[{MODULE}]",
            f"path = {folder}",
            "read only = yes",
            "list = no",
            f"max connections = {self.transfers}",
            f"hosts allow = {allowed}",
            f"auth users = {USER}",
            f"secrets file = {secrets}",
            f"exclude = /{TRASH} /{STAMP}",
        ]
        return "".join(f"{line}\n" for line in lines)

    def daemon(self, configuration: str) -> list[str]:
        """The daemon's command line. Its limit holds for each transfer."""
        limit = [f"--bwlimit={max(1, self.limit // self.transfers // 1024)}"] if self.limit else []
        return [self.rsync, "--daemon", "--no-detach", f"--config={configuration}", *limit]

    def properties(self, configuration: str, secrets: str) -> list[str]:
        """What systemd is asked for."""
        priority = {"idle": ["IOSchedulingClass=idle"], "best-effort": ["IOSchedulingClass=best-effort"]}
        return [
            "Type=exec",
            "DynamicUser=yes",
            f"RuntimeMaxSec={self.seconds}",
            "TimeoutStopSec=10",
            f"RuntimeDirectory={UNIT[:-8]}",
            f"LoadCredential=rsyncd.conf:{configuration}",
            f"LoadCredential=secrets:{secrets}",
            "ProtectSystem=strict",
            "ProtectHome=read-only",
            "PrivateTmp=yes",
            "PrivateDevices=yes",
            "NoNewPrivileges=yes",
            "CapabilityBoundingSet=",
            "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
            "UMask=0077",
            *priority.get(self.io_class, []),
            *(["IOSchedulingPriority=7"] if self.io_class == "best-effort" else []),
        ]

    def start(self, folder: str) -> None:
        """Serves `folder`; a server that an earlier run left is ended first. Raises CheckpointError."""
        stop()
        credentials = f"/run/credentials/{UNIT}"
        with tempfile.TemporaryDirectory(prefix="llmfleet-", dir="/run") as private:
            files = {
                "rsyncd.conf": self.configuration(folder, f"{credentials}/secrets", f"/run/{UNIT[:-8]}/lock"),
                "secrets": f"{USER}:{self.secret}\n",
            }
            for name, content in files.items():
                descriptor = os.open(os.path.join(private, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "w", encoding="utf-8") as stream:
                    stream.write(content)
            wanted = self.properties(os.path.join(private, "rsyncd.conf"), os.path.join(private, "secrets"))
            command = ["systemd-run", "--collect", "--quiet", f"--unit={UNIT}"]
            command += [f"--property={one}" for one in wanted]
            self._run([*command, "--", *self.daemon(f"{credentials}/rsyncd.conf")])
            self._wait()

    def _run(self, command: t.Sequence[str]) -> None:
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CheckpointError(f"The checkpoint cannot be served to the other hosts: {error}.") from error
        if done.returncode:
            raise CheckpointError(f"The checkpoint cannot be served to the other hosts: {done.stderr.strip()[-500:]}.")

    def _wait(self) -> None:
        """Until it listens. Raises CheckpointError if it does not."""
        deadline = time.monotonic() + _START
        while True:
            try:
                with socket.create_connection((self.address, self.port), timeout=2):
                    return
            except OSError as error:
                if active() and time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                stop()
                raise CheckpointError(
                    f"The server for the other hosts does not listen on {self.address} port {self.port} ({error}): is "
                    "the port taken, or the address not one of this host? `journalctl -u "
                    f"{UNIT}` on it may say more. Set sglang_checkpoint_port or sglang_checkpoint_address."
                ) from error


def active() -> bool:
    """Whether a server runs here."""
    done = subprocess.run(["systemctl", "is-active", "--quiet", UNIT], check=False, capture_output=True, timeout=60)
    return done.returncode == 0


def stop() -> bool:
    """Ends the server, if there is one; returns whether there was."""
    if not active():
        return False
    subprocess.run(["systemctl", "stop", UNIT], check=True, capture_output=True, timeout=60)
    return True


def _numeric(name: str) -> str:
    """An address for a name, as this host knows it. Raises CheckpointError."""
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise CheckpointError(
            f"{name} is no address that this host knows ({error}): set sglang_checkpoint_address for that host."
        ) from error
