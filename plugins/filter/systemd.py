# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that write values into a systemd unit; the logic is in module_utils/_systemd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd import environment, quote


def systemd_launch(program: list[str], arguments: Mapping[str, Any]) -> str:
    """Return the words of an ExecStart= line, one launch argument on each continued line."""
    try:
        return quote.launch_line([str(word) for word in program], arguments)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def systemd_environment(values: Mapping[str, Any]) -> list[str]:
    """Return one assignment for Environment= for each variable."""
    try:
        return [quote.environment_line(name, str(value)) for name, value in values.items()]
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def service_environment(deployment: Mapping[str, Any], release: Mapping[str, Any], logging: str = "") -> dict[str, Any]:
    """Return the environment that an instance's engine runs in."""
    return environment.of_service(deployment, release, logging)


class FilterModule:
    """Filters of llmfleet.sglang about systemd units."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "service_environment": service_environment,
            "systemd_launch": systemd_launch,
            "systemd_environment": systemd_environment,
        }
