# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cutover.case import SERVICES, Case
from tests.unit.cutover.host import make


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Case:
    """A host on which a foreign sglang-kimi serves."""
    return Case(make(tmp_path, monkeypatch), capsys)


@pytest.fixture
def deployed(case: Case) -> Case:
    """The same after a first deployment that answered."""
    case.snapshot("taken", services=SERVICES)
    case.start("1")
    assert case.conclude()["phase"] == "serving"
    return case
