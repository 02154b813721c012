# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's tests share with pytest: one SSH connection to each node, and what nodes say when tests fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from fleet.config import OLD_SERVICE
from tests.fleet.hosts import SERVICE, name

SOCKETS = pytest.StashKey[str]()


def share_connections(config: pytest.Config) -> None:
    """Let all tests use one SSH connection to each node."""
    config.stash[SOCKETS] = tempfile.mkdtemp(prefix="llmfleet-ssh-")
    shared = f"-o ControlMaster=auto -o ControlPersist=60s -o ControlPath={config.stash[SOCKETS]}/%C"
    os.environ["ANSIBLE_SSH_EXTRA_ARGS"] = shared


def end_connections(config: pytest.Config) -> None:
    """End the SSH connections: a node that lost its power leaves them hanging."""
    for socket in Path(config.stash[SOCKETS]).iterdir():
        subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "node"], check=False, capture_output=True, timeout=20)


def forget_connections(config: pytest.Config) -> None:
    """End the SSH connections for good."""
    end_connections(config)
    shutil.rmtree(config.stash[SOCKETS])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the nodes of a failed test say about their services."""
    report = yield
    if report.failed:
        for host in _hosts_in(getattr(item, "funcargs", {}).values()):
            report.sections.append((f"services of {name(host)}", services_of(host)))
    return report


def _hosts_in(values: Iterable[Any]) -> list[Host]:
    """The nodes among a test's fixtures, each once."""
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return list({name(one): one for one in flat if isinstance(one, Host)}.values())


def services_of(host: Host) -> str:
    """Status of both services of a node, the phase of its snapshot and the end of the journal, or why there is none."""
    units = f"{SERVICE} {OLD_SERVICE}"
    try:
        with host.sudo():
            status = host.run(f"systemctl status --no-pager --lines=0 {units}").stdout
            record = host.run("grep '\"phase\"' /var/lib/llmfleet/*/snapshot.json").stdout
            journal = host.run(f"journalctl --no-pager --lines=50 --unit={SERVICE}").stdout
    except (OSError, RuntimeError) as error:
        return f"the node does not answer: {error}"
    return "\n".join(line[:300] for line in f"{status}\n{record}\n{journal}".splitlines())
