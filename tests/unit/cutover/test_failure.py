# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed task said."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.failure import FilterModule

LOOP = "One or more items failed"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"failed": True, "msg": "The port is taken."}, "The port is taken."),
        (
            {"failed": True, "msg": LOOP, "results": [{"msg": "fine"}, {"failed": True, "msg": "pid 7 still runs"}]},
            "pid 7 still runs",
        ),
        ({"msg": LOOP, "results": [{"failed": True, "msg": "one"}, {"failed": True, "msg": "two"}]}, "one two"),
        ({"msg": LOOP, "results": [{"failed": True, "msg": "one"}, {"failed": True, "msg": "one"}]}, "one"),
        # What no_log hides has no message of its own.
        ({"msg": LOOP, "results": [{"failed": True, "censored": "hidden"}, "hidden"]}, LOOP),
        ({"failed": True}, "a task failed"),
        ({}, "a task failed"),
    ],
)
def test_the_message_of_a_failure(result: dict[str, Any], said: str) -> None:
    assert FilterModule().filters()["failure_message"](result) == said
