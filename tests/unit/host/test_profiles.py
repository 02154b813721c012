# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped profiles on the hosts that they are made for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import BLOCKS, WARNS
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import Launch, launch_of
from ansible_collections.llmfleet.sglang.tests.unit.deployment import example
from ansible_collections.llmfleet.sglang.tests.unit.host.good import CARDS, GB, GOOD, READING, VIEW, WANTED


@pytest.mark.parametrize("profile", sorted(example.PROFILES))
def test_a_profile_fits_eight_cards_and_not_two(profile: str) -> None:
    # No source says how large two of them are; 450 GB is 60 % of eight cards.
    size = example.PROFILES[profile]["checkpoint"].get("bytes") or 450 * GB
    deployment = example.resolved(profile=profile, checkpoint_bytes=size)
    wanted = replace(
        WANTED,
        launch=Launch(**launch_of(deployment)),
        models_bytes=size,
        gpu_count=deployment["gpus"]["count"],
        compute_capability=deployment["gpus"]["compute_capability"],
        gpu_memory_mib=deployment["gpus"]["memory_mib"],
    )
    roomy = replace(GOOD, spaces={**GOOD.spaces, "models": replace(GOOD.spaces["models"], free=900 * GB)})
    assert wanted.launch.on_cards and wanted.launch.ranks == 8
    found = check(roomy, wanted)
    assert [one.message for one in found if one.severity in (BLOCKS, WARNS)] == []
    assert "memory_fit" in [one.id for one in found]
    two = replace(roomy, view=replace(VIEW, reading=replace(READING, gpus=CARDS[:2])))
    assert "gpu_count" in [one.id for one in check(two, wanted) if one.severity == BLOCKS]
