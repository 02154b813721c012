# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of an instance's engine: what wins, in which order, and where caches lie."""

from __future__ import annotations

from typing import Any

from ansible_collections.llmfleet.sglang.plugins.filter.systemd import service_environment

RELEASE: dict[str, Any] = {"id": "r1", "path": "/opt/sglang/releases/r1", "compilers": {"MAX_JOBS": "16", "HOME": "/c"}}


def deployment(**environment: str) -> dict[str, Any]:
    return {"service": "sglang-qwen", "launch": {"environment": environment}}


def test_every_cache_is_the_releases_own() -> None:
    found = service_environment(deployment(), {**RELEASE, "compilers": {}})
    written = {name: value for name, value in found.items() if name.endswith(("_DIR", "_CACHE_PATH", "_BASE"))}
    assert len(written) == 9
    assert all(f"{value}/".startswith("/var/cache/sglang-qwen/r1/") for value in written.values())
    assert found["PATH"].startswith("/opt/sglang/releases/r1/venv/bin:")


def test_the_operators_variables_win_over_the_compilers_and_these_over_ours() -> None:
    found = service_environment(deployment(HF_HOME="/mine", MAX_JOBS="2"), RELEASE)
    assert (found["HF_HOME"], found["MAX_JOBS"], found["HOME"]) == ("/mine", "2", "/c")


def test_the_order_is_one_whatever_is_set_since_a_units_state_hangs_on_it() -> None:
    names = list(service_environment(deployment(HF_HOME="/mine", LAST="1"), RELEASE, "/l.json"))
    assert names[:3] == ["HOME", "PATH", "CUDA_HOME"]
    assert names[-3:] == ["SGLANG_LOGGING_CONFIG_PATH", "MAX_JOBS", "LAST"]
    assert names.index("HF_HOME") < names.index("HF_HUB_OFFLINE")


def test_without_a_key_nothing_is_said_of_logging_and_a_release_may_have_no_compilers() -> None:
    release = {"id": "r1", "path": "/r"}
    assert "SGLANG_LOGGING_CONFIG_PATH" not in service_environment(deployment(), release)
