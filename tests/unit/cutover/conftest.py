# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.cutover.host import make

if TYPE_CHECKING:
    from tests.unit.cutover.case import Case


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Case:
    """A host on which a foreign sglang-kimi serves."""
    from tests.unit.cutover.case import Case  # Ansible, which the targets' oldest Pythons are tested without

    return Case(make(tmp_path, monkeypatch), capsys)


@pytest.fixture
def deployed(case: Case) -> Case:
    """The same after a first deployment that answered."""
    from tests.unit.cutover.case import SERVICES

    case.snapshot("taken", services=SERVICES)
    case.start("1")
    assert case.conclude()["phase"] == "serving"
    return case
