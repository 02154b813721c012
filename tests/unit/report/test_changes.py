# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two units and two releases, and what does not leave the host."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import changes
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import environment_line, launch_line


def unit(release: str, arguments: dict[str, object], environment: dict[str, str]) -> str:
    root = f"/opt/sglang/releases/{release}"
    line = launch_line([f"{root}/venv/bin/python", "-m", "sglang.launch_server"], arguments)
    variables = {"PATH": f"{root}/venv/bin:/usr/bin", **environment, "LLMFLEET_STATE": release}
    lines = [f"Environment={environment_line(name, value)}" for name, value in variables.items()]
    return "\n".join(["[Unit]", "X-Llmfleet=qwen", "[Service]", f"ExecStart={line}", *lines, ""])


WEIGHTS = "/models/.checkpoints/nvidia--Qwen3.5-397B-A17B-NVFP4/9fc6747"
OLD = unit("0.5.22-a", {"model-path": WEIGHTS, "tp-size": 8, "mem-fraction-static": 0.85, "served-model-name": "q"}, {})
NEW = unit(
    "0.5.23-b",
    {
        "model-path": WEIGHTS,
        "tp-size": 8,
        "mem-fraction-static": 0.9,
        "served-model-name": "q",
        "sleep-on-idle": True,
        "json": {"a": "b c 100%"},
    },
    {"NCCL_P2P_LEVEL": "SYS", "HF_TOKEN": "hf_made_up"},
)


def test_a_unit_of_ours_is_read_as_it_was_written() -> None:
    assert changes.arguments(NEW)["json"] == '{"a": "b c 100%"}'
    assert changes.arguments(NEW)["sleep-on-idle"] == ""
    assert changes.release_of(NEW) == "0.5.23-b"
    assert changes.checkpoint_of(NEW) == "nvidia/Qwen3.5-397B-A17B-NVFP4@9fc6747"
    assert changes.release_of("ExecStart=/opt/kimi/run.sh") == ""


def test_only_what_differs_is_listed_and_paths_with_the_release_in_them_are_not() -> None:
    rows = changes.of_units(OLD, NEW, ("0.5.22-a", "0.5.23-b"))
    assert [(one["what"], one["before"], one["after"]) for one in rows] == [
        ("argument --json", "not set", '{"a": "b c 100%"}'),
        ("argument --mem-fraction-static", "0.85", "0.9"),
        ("argument --sleep-on-idle", "not set", "set"),
        ("variable HF_TOKEN", "not set", "***"),
        ("variable NCCL_P2P_LEVEL", "not set", "SYS"),
    ]
    assert changes.of_units(OLD, OLD) == [] and changes.of_units("", NEW) == []


def test_services() -> None:
    assert changes.of_services(("sglang-kimi", "sglang-qwen"), "", NEW) == [
        {"what": "service", "before": "sglang-kimi (not made by this collection)", "after": "sglang-qwen"}
    ]
    assert [one["what"] for one in changes.of_services(("sglang-qwen", "sglang-qwen"), OLD, NEW)] == ["release"]
    assert changes.of_services(("", "sglang-qwen"), "", NEW)[0]["before"] == "none"


def test_releases() -> None:
    old = {"inputs": {"commit": "1" * 40}, "torch": "2.13", "packages": ["torch==2.13", "numpy==2.0", "sglang==0"]}
    new = {
        "inputs": {"commit": "2" * 40},
        "torch": "2.14",
        "packages": ["torch==2.14", "numpy==2.1", "sglang==0.0.0"],
        "patched": [{"id": "one", "state": "present"}],
    }
    assert [(one["what"], one["after"]) for one in changes.of_releases(old, new)] == [
        ("commit", "2" * 40),
        ("torch", "2.14"),
        ("package numpy", "2.1"),
        ("patches", "one (present)"),
    ]
    assert changes.of_releases({}, new) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HF_TOKEN", True),
        ("api-key", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("HTTP_PASSWORD", True),
        ("API_TOKENS", True),
        ("max-total-tokens", False),
        ("speculative-num-draft-tokens", False),
        ("skip-tokenizer-init", False),
        ("kv-cache-dtype", False),
        ("NCCL_P2P_LEVEL", False),
    ],
)
def test_names_that_speak_of_a_secret(name: str, expected: bool) -> None:
    assert changes.secret(name) is expected
