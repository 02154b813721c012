# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that holds a deployment against what is known to fail; the logic is in module_utils/_launch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import rules
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _yaml

_RULES = Path(__file__).resolve().parents[2] / "playbooks" / "rules"


@functools.cache
def rule_sets() -> list[dict[str, Any]]:
    """Return the shipped rules, read once in a run. Raises what _yaml.read does."""
    return [_yaml.read(path) for path in sorted(_RULES.glob("*.yml"))]


def launch_findings(
    deployment: Mapping[str, Any], accepted: list[str] | None = None, facts: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return what is known to fail in a deployment, those that refuse it first; empty when nothing is."""
    try:
        return [finding.as_dict() for finding in rules.findings(deployment, rule_sets(), facts, accepted or [])]
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Filters of llmfleet.sglang about launch arguments."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions.

        resolve.yml has Ansible load them before it forks, so each host's tasks find the rules read.
        """
        with contextlib.suppress(OSError, ValueError, yaml.YAMLError):  # said where the rules are asked
            rule_sets()
        return {"launch_findings": launch_findings}
