# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator's variables and what they resolve to, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.resolve import DeploymentError, resolve

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "1a2b3c4d" * 5
REVISION = "9f8e7d6c" * 5
PROFILE = "qwen3_5_397b_nvfp4"


def _named(folder: str) -> dict[str, dict[str, Any]]:
    contents = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "playbooks" / folder).glob("*.yml")]
    return {content["name"]: content for content in contents}


PROFILES = _named("profiles")
PATCH_SETS = _named("patch_sets")


def variables(**changes: Any) -> dict[str, Any]:
    """Return the least that an operator has to set, changed by option names without the prefix; None takes one out."""
    values: dict[str, Any] = {
        "profile": PROFILE,
        "commit": COMMIT,
        "version": "0.5.23",
        "checkpoint_revision": REVISION,
        "listen_host": "192.0.2.11",
        **changes,
    }
    return {f"sglang_{name}": value for name, value in values.items() if value is not None}


def resolved(**changes: Any) -> dict[str, Any]:
    """Resolve the example."""
    return resolve(variables(**changes), PROFILES, PATCH_SETS)


def problems(**changes: Any) -> list[str]:
    """Return why the example does not resolve; empty when it does."""
    try:
        resolved(**changes)
    except DeploymentError as error:
        return error.problems
    return []


def arguments(**changes: Any) -> dict[str, Any]:
    """Return the launch arguments of the example."""
    found: dict[str, Any] = resolved(**changes)["launch"]["arguments"]
    return found
