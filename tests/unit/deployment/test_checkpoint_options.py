# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a checkpoint has to be, and how it goes from host to host, as an operator sets it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import profile as profiles

from tests.unit.deployment.example import PROFILE, PROFILES, problems, resolved

EXPECTS = PROFILES[PROFILE]["checkpoint"]["expects"]


def test_the_operators_expectation_goes_over_the_profiles_and_null_takes_one_out() -> None:
    found = resolved(checkpoint_expects={"architecture": "Qwen3ForCausalLM", "sizes": None})["checkpoint"]["expects"]
    assert found == {**{key: EXPECTS[key] for key in EXPECTS if key != "sizes"}, "architecture": "Qwen3ForCausalLM"}


@pytest.mark.parametrize(
    ("expects", "says"),
    [
        (
            {"quantisation": "nvfp4"},
            "sglang_checkpoint_expects sets 'quantisation', and only architecture, quant_method",
        ),
        ({"sizes": 4096}, "sglang_checkpoint_expects sets 'sizes' to 4096, which has to be a map"),
    ],
)
def test_a_wrong_expectation_is_named(expects: dict[str, Any], says: str) -> None:
    [problem] = problems(checkpoint_expects=expects)
    assert problem.startswith(says)


def test_a_wrong_expectation_of_a_profile_is_named() -> None:
    profile = copy.deepcopy(PROFILES[PROFILE])
    profile["checkpoint"]["expects"] = ["nvfp4"]
    [problem] = profiles.problems(profile)
    assert f"'{PROFILE}', checkpoint.expects, has to be a map of architecture" in problem


@pytest.mark.parametrize("driver", ["rsync", "hub", "shared", "/srv/ansible/torrent.yml"])
def test_a_driver_is_a_shipped_one_or_a_path(driver: str) -> None:
    assert resolved(checkpoint_driver=driver)["checkpoint"]["driver"] == driver


@pytest.mark.parametrize("driver", ["torrent", "torrent.yml", "../x.yml"])
def test_any_other_driver_is_refused(driver: str) -> None:
    [problem] = problems(checkpoint_driver=driver)
    assert "rsync, hub, shared, or the absolute path of a file of tasks" in problem


def test_the_io_class_is_one_of_three() -> None:
    assert resolved(io_class="idle")["checkpoint"]["io_class"] == "idle"
    [problem] = problems(io_class="realtime")
    assert "best-effort, idle or none" in problem
