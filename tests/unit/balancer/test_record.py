# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is out by our doing, kept so that a run that dies leaves a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._balancer.record import BalancerError, Record


def test_an_entry_stays_as_it_was_first_noted_until_it_is_forgotten(tmp_path: Path) -> None:
    record = Record(tmp_path / "state" / "r.json")
    assert record.read() == {}
    record.note("a", {"priority": 1})
    record.note("b", {})
    record.note("a", {"priority": 2})
    assert record.read() == {"a": {"priority": 1}, "b": {}}
    record.forget("a")
    assert record.read() == {"b": {}}


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 99}', '{"schema": 1, "out": []}'])
def test_a_record_that_cannot_be_read_is_not_guessed_at(tmp_path: Path, text: str) -> None:
    record = Record(tmp_path / "r.json")
    record.path.write_text(text)
    with pytest.raises(BalancerError, match="remove it"):
        record.note("a", {})
