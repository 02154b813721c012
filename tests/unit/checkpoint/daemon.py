# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that gives its checkpoint: the real rsync with the daemon's own file, without systemd round it."""

from __future__ import annotations

import os
import socket
import subprocess
import typing as t
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.peers import Peers
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.serve import USER, Server

from tests.unit.checkpoint.hub_server import wait_for

SECRET = "a-secret-of-this-deployment"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def server(address: str, port: int, **changes: t.Any) -> Server:
    """Serves on an address of the loopback, to it."""
    given = {"address": address, "port": port, "peers": ("127.0.0.1",), "secret": SECRET, **changes}
    return Server(**given)


class Daemon:
    """One host's rsync, until `close`."""

    def __init__(self, server: Server, folder: Path, home: Path) -> None:
        home.mkdir(parents=True)
        secrets, configuration = home / "secrets", home / "rsyncd.conf"
        secrets.write_text(f"{USER}:{server.secret}\n")
        secrets.chmod(0o600)
        text = server.configuration(str(folder), str(secrets), str(home / "lock"))
        # rsync that root starts would give up its rights, which it needs in pytest's folders
        own = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.getuid() == 0 else ""
        configuration.write_text(text + own)
        # in a session of its own, so that its children end with it
        self.process = subprocess.Popen(server.daemon(str(configuration)), start_new_session=True)
        wait_for(lambda: listens(server.address, server.port))

    def close(self) -> None:
        """It and every transfer of it are gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait(10)


def listens(address: str, port: int) -> bool:
    """Whether somebody answers there."""
    with socket.socket() as one:
        one.settimeout(2)
        return one.connect_ex((address, port)) == 0


def peers(addresses: t.Iterable[str], port: int, digest: str, **changes: t.Any) -> Peers:
    """Whom to ask, with short times."""
    times = {"stall": 20.0, "patience": 20.0, "pause": 0.1}
    return Peers(
        **{"addresses": tuple(addresses), "port": port, "secret": SECRET, "manifest_digest": digest, **times, **changes}
    )
