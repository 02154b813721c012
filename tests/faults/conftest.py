# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of faults: one node of a fleet that is up, and a run that can be gone on with (see README.md here)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import testinfra
from testinfra.host import Host

pytest.register_assert_rewrite("tests.fleet", "tests.faults.breaking")

from tests.faults.breaking import NODE, as_deployed, clean_up  # noqa: E402
from tests.faults.passed import Passed  # noqa: E402
from tests.fleet.control import INVENTORY  # noqa: E402
from tests.fleet.hosts import Serving  # noqa: E402
from tests.fleet.reporting import (  # noqa: E402
    forget_connections,
    pytest_runtest_makereport,
    share_connections,
)

__all__ = ["pytest_runtest_makereport"]  # pytest finds it by its name


def pytest_addoption(parser: pytest.Parser) -> None:
    """--resume: go on where an earlier run at this commit ended."""
    parser.addoption("--resume", action="store_true", help="leave out the tests that have passed at this commit")


def pytest_configure(config: pytest.Config) -> None:
    """Remember what passes, and share one SSH connection."""
    config.addinivalue_line("markers", "faults(n): how many faults the test tries, where it is not one")
    share_connections(config)
    config.pluginmanager.register(Passed(config), "llmfleet-passed")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the SSH connections."""
    forget_connections(config)


@pytest.fixture(scope="session")
def node() -> Host:
    """The node on which things are broken."""
    return testinfra.get_host(f"ansible://{NODE}", ansible_inventory=str(INVENTORY))


@pytest.fixture
def deployed(node: Host) -> Iterator[Serving]:
    """What serves on the node: ours, deployed and concluded. Whatever the test leaves is cleaned up."""
    yield as_deployed(node)
    clean_up(node)
