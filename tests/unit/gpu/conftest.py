# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the tests of cards."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.tests.unit.gpu.eight import Eight
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def eight(tmp_path: Path) -> Eight:
    return Eight(tmp_path)
