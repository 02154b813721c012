# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's HTTP services (depot and git, simulated Hub, its CDN): one background process for all three."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

from .cache import key_of
from .config import CDN_PORT, HOST, HUB_PORT, PROJECT, RUNTIME, STATIC_PORT
from .hub import CdnHandler, HubHandler
from .shell import FleetError, end, find_processes, wait_for
from .web import Handler, Server, Settings, StaticHandler

SETTINGS = RUNTIME / "services.json"
LOG = RUNTIME / "services.log"
PIDFILE = RUNTIME / "services.pid"
PORTS: dict[int, type[Handler]] = {STATIC_PORT: StaticHandler, HUB_PORT: HubHandler, CDN_PORT: CdnHandler}
CODE = ("services.py", "web.py", "hub.py", "config.py")


def settings() -> Settings:
    """The services' settings."""
    return Settings(SETTINGS)


def code_key() -> str:
    """A hash of the services' own code: a process with another one is out of date."""
    return key_of([(Path(__file__).parent / name).read_text() for name in CODE])


def processes() -> list[int]:
    """Process ids of the services, of whatever version."""
    return find_processes("fleet.services", str(SETTINGS))


def answering() -> bool:
    """Whether all three answer (anything)."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for port in PORTS:
        try:
            with direct.open(f"http://{HOST}:{port}/", timeout=5):
                pass
        except urllib.error.HTTPError:
            continue
        except OSError:
            return False
    return True


def running() -> bool:
    """Whether it is the services that answer, and not a stranger on their ports."""
    return bool(processes()) and answering()


def start() -> None:
    """Start the services unless they run from the present code; wait until they answer."""
    current = find_processes("fleet.services", str(SETTINGS), code_key())
    if current and answering():
        return
    stop()
    RUNTIME.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "fleet.services", str(SETTINGS), code_key()]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd="/", start_new_session=True
        )
    PIDFILE.write_text(f"{process.pid}\n")

    def ready() -> bool:
        if process.poll() is not None:
            tail = "\n".join(LOG.read_text(errors="replace").splitlines()[-15:])
            raise FleetError(f"the services ended with status {process.returncode} (log: {LOG}):\n{tail}")
        return answering()

    wait_for("the depot, the Hub and its CDN to answer", ready, 30)


def stop() -> None:
    """End the services."""
    end(processes(), signal.SIGTERM)
    PIDFILE.unlink(missing_ok=True)


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description="serve the fleet's depot, git repository and simulated Hub")
    parser.add_argument("settings", type=Path)
    parser.add_argument("code", help="hash of the code, for whoever looks at the process list")
    arguments = parser.parse_args()
    servers = [Server((HOST, port), handler, Settings(arguments.settings)) for port, handler in PORTS.items()]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
