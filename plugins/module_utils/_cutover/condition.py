# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In what state a host is when going back has failed, in words for the person who has to mend it. Private."""

from __future__ import annotations

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Service, Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles

_NEVER = "cannot be told"


def describe(found: Snapshot | None) -> list[str]:
    """Return a sentence for each service that takes part, and what a reboot would start; never raises."""
    if found is None:
        return ["Nothing is kept of what served before, and no service was touched by the rollback."]
    lines = [_service(one) for one in found.services]
    return [*lines, _reboot({one.name: _ask("is-enabled", one.name) for one in found.services})]


def _reboot(enabled: dict[str, str]) -> str:
    if _NEVER in enabled.values():
        return "What a reboot would start cannot be told."
    booted = [name for name, state in enabled.items() if state in ("enabled", "enabled-runtime")]
    return f"A reboot would start {' and '.join(booted)}." if booted else "A reboot would start none of them."


def _service(one: Service) -> str:
    was = "it served before" if one.active else "it did not serve before"
    return f"{one.name}.service: {_ask('is-active', one.name)}; {was}; {_files(one)}."


def _ask(verb: str, name: str) -> str:
    try:
        return units.systemctl(verb, f"{name}.service", must=False) or "unknown"
    except (OSError, UnitError):
        return _NEVER


def _files(one: Service) -> str:
    try:
        present = UnitFiles.read(one.name)
    except OSError as error:
        return f"its unit cannot be read ({error.strerror})"
    if one.files.in_force(present):
        return "its unit is as it was" if one.files.unit else "it has no unit, as before"
    if present.unit is None:
        return "its unit is gone"
    return (
        "its unit is the rejected one" if present.ours and present.unit != one.files.unit else "its unit is another one"
    )
