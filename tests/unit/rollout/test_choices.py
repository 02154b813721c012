# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator chooses of a rollout is checked before any host is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.rollout import rollout_hook
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices

HAPROXY: dict[str, Any] = {"sglang_drain_tasks": "haproxy", "sglang_undrain_tasks": "haproxy"}


def both(value: Any) -> dict[str, Any]:
    return {"sglang_drain_tasks": value, "sglang_undrain_tasks": value}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sglang_serial": [1, "ten"]}, "sglang_serial has to be batch sizes"),
        ({"sglang_failures_allowed": -1}, "how many hosts of the fleet may fail, not -1"),
        ({"sglang_failures_allowed": True}, "not True"),
        ({"sglang_failures_allowed": "10%"}, "not '10%'"),
        ({"sglang_batch_peers": "stay"}, "has to be keep"),
        ({"sglang_lock_broken": "yes"}, "12 hex digits, not 'yes'"),
        ({"sglang_drain_tasks": "haproxy"}, "sglang_drain_tasks is set and sglang_undrain_tasks is not"),
        (both("drain.yml"), "the absolute path of a file of tasks on the controller"),
        (both(["a"]), "not a list"),
        (both("/no/such/file.yml"), "there is no such file on the controller"),
        (HAPROXY, "sglang_haproxy has to be a list of where the load balancers are, each a map with host."),
        ({**HAPROXY, "sglang_haproxy": [{"socket": "/x"}]}, "sglang_haproxy has to be a list"),
        ({**both("smg"), "sglang_smg": [{"host": "lb1"}]}, "each a map with host and url"),
        ({"sglang_report_to": 3}, "sglang_report_to has to be a folder on the controller for reports: it is 3"),
        ({"sglang_report_to": f"{__file__}/x"}, "is no folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given: dict[str, Any], words: str) -> None:
    found = choices.problems(given)
    assert found and words in found[0], found
    assert all(text.endswith(".") for text in found)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sglang_serial": [1, "10%", "100%"], "sglang_failures_allowed": "2", "sglang_batch_peers": "back"},
        {"sglang_drain_tasks": "", "sglang_undrain_tasks": None, "sglang_lock_broken": ""},
        {"sglang_lock_broken": "0123456789ab"},
        both(__file__),
        {**HAPROXY, "sglang_haproxy": [{"host": "lb1"}]},
        {"sglang_report_to": "reports"},
        {**both("smg"), "sglang_smg": [{"host": "lb1", "url": "http://lb1:30000"}]},
    ],
)
def test_what_is_right_is_let_pass(given: dict[str, Any]) -> None:
    assert choices.problems(given) == []


@pytest.mark.parametrize("name", choices.SHIPPED)
@pytest.mark.parametrize("verb", ["drain", "undrain", "ask"])
def test_the_shipped_hooks_are_there(name: str, verb: str) -> None:
    assert Path(rollout_hook(name, verb)).is_file()
    assert rollout_hook("/etc/x.yml", verb) == "/etc/x.yml"
