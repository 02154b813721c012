# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of the main job on the fleet. All nodes are deployed when they begin.

`molecule verify` runs them; on a fleet that is up and deployed, so does `pytest molecule/default/tests`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

pytest.register_assert_rewrite("tests.fleet")

from fleet.config import OLD_SERVICE  # noqa: E402
from tests.fleet.control import INVENTORY  # noqa: E402
from tests.fleet.hosts import SERVICE, name  # noqa: E402

# What only looks comes first; then what changes something and puts it back.
ORDER = ("deployed", "again", "installed", "bad_input", "proofs", "cutover_failure")
SOCKETS = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Take the demo fleet when no hosts are named, and one SSH connection to each node for all tests."""
    if not config.option.hosts:
        config.option.hosts = "ansible://sglang"
    if not config.option.ansible_inventory:
        config.option.ansible_inventory = str(INVENTORY)
    config.stash[SOCKETS] = tempfile.mkdtemp(prefix="llmfleet-ssh-")
    shared = f"-o ControlMaster=auto -o ControlPersist=60s -o ControlPath={config.stash[SOCKETS]}/%C"
    os.environ["ANSIBLE_SSH_EXTRA_ARGS"] = shared


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the SSH connections."""
    folder = Path(config.stash[SOCKETS])
    for socket in folder.iterdir():
        subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "node"], capture_output=True, timeout=20)
    shutil.rmtree(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the modules into their order; the tests of one stay in theirs."""
    items.sort(key=lambda item: ORDER.index(Path(item.path).stem.removeprefix("test_")))


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
    """Status and the end of the journal of both services of a node, or why they cannot be had."""
    units = f"{SERVICE} {OLD_SERVICE}"
    try:
        with host.sudo():
            status = host.run(f"systemctl status --no-pager --lines=0 {units}").stdout
            journal = host.run(f"journalctl --no-pager --lines=50 --unit={SERVICE}").stdout
    except (OSError, RuntimeError) as error:
        return f"the node does not answer: {error}"
    return "\n".join(line[:300] for line in f"{status}\n{journal}".splitlines())


@pytest.fixture(scope="session")
def nodes(pytestconfig: pytest.Config) -> list[Host]:
    """All nodes (or those that `--hosts` names)."""
    options = pytestconfig.option
    return list(testinfra.get_hosts(options.hosts.split(","), ansible_inventory=options.ansible_inventory))


@pytest.fixture(scope="session")
def node(nodes: list[Host]) -> Host:
    """The one node on which things are broken and mended again: the last."""
    return nodes[-1]
