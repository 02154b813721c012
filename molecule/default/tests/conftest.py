# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of the main job on the fleet. All nodes are deployed when they begin.

`molecule verify` runs them; on a fleet that is up and deployed, so does `pytest molecule/default/tests`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

pytest.register_assert_rewrite("tests.fleet")

from tests.fleet.control import INVENTORY  # noqa: E402
from tests.fleet.reporting import (  # noqa: E402
    forget_connections,
    pytest_runtest_makereport,
    share_connections,
)

__all__ = ["pytest_runtest_makereport"]  # pytest finds it by its name

# What only looks comes first; then what changes something and puts it back.
ORDER = ("deployed", "unit", "again", "patch", "benchmark", "installed", "bad_input", "proofs", "cutover_failure")


def pytest_configure(config: pytest.Config) -> None:
    """Take the demo fleet when no hosts are named, and one SSH connection to each node for all tests."""
    if not config.option.hosts:
        config.option.hosts = "ansible://sglang"
    if not config.option.ansible_inventory:
        config.option.ansible_inventory = str(INVENTORY)
    share_connections(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the SSH connections."""
    forget_connections(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the modules into their order; the tests of one stay in theirs."""
    items.sort(key=lambda item: ORDER.index(Path(item.path).stem.removeprefix("test_")))


@pytest.fixture(scope="session")
def nodes(pytestconfig: pytest.Config) -> list[Host]:
    """All nodes (or those that `--hosts` names)."""
    options = pytestconfig.option
    return list(testinfra.get_hosts(options.hosts.split(","), ansible_inventory=options.ansible_inventory))


@pytest.fixture(scope="session")
def node(nodes: list[Host]) -> Host:
    """The one node on which things are broken and mended again: the last."""
    return nodes[-1]
