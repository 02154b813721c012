# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that has some of a host's cards."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.resolve import DeploymentError

from tests.unit.deployment.example import resolved


def test_two_instances_share_a_host_by_name_port_and_cards() -> None:
    other = resolved(instance="qwen-b", port=30001, visible_gpus=["4", 5, 6, 7], arguments={"tp-size": 4})
    assert (other["name"], other["service"]) == ("qwen-b", "sglang-qwen-b")
    assert other["gpus"] == {**resolved()["gpus"], "count": 4, "visible": [4, 5, 6, 7]}
    environment = other["launch"]["environment"]
    assert environment["CUDA_VISIBLE_DEVICES"] == "4,5,6,7" and environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    # Without a choice of cards nothing of it is there, and no unit changes.
    assert "visible" not in resolved()["gpus"]
    assert not [name for name in resolved()["launch"]["environment"] if name.startswith("CUDA_")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"visible_gpus": [0, 0]}, "sglang_visible_gpus names a card twice"),
        ({"visible_gpus": [0, 1], "gpus": {"count": 4}}, "sglang_gpus counts 4 cards, and sglang_visible_gpus names 2"),
        ({"visible_gpus": [0], "environment": {"CUDA_VISIBLE_DEVICES": "1"}}, "which sglang_visible_gpus does"),
        ({"visible_gpus": [-1]}, "sglang_visible_gpus has to be a list of which each is a whole number from 0"),
        ({"instance": "a b"}, "sglang_instance is 'a b'"),
    ],
)
def test_a_choice_of_cards_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DeploymentError, match=words):
        resolved(**changes)
