# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance that is removed leaves behind: services that nobody starts any more. Private to the collection."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Service, Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitFiles


def left(taken: Snapshot | None, own: str, others: Iterable[str]) -> list[Service]:
    """Return the services that `own` took the place of and that neither run nor come back after a reboot.

    taken: the snapshot of the last cut-over to `own`; others: what else may serve in its place. None is left where one
    of them all does. Raises UnitError when systemd cannot be asked.
    """
    services = [one for one in taken.services if one.name != own] if taken else []
    names = dict.fromkeys([*(one.name for one in services), *(name for name in others if name != own)])
    if any(units.active(name) or units.enabled(name) for name in names):
        return []
    return [one for one in services if (one.active or one.enabled or one.links) and UnitFiles.read(one.name).unit]


def words(own: str, adopted: Service | None, services: Iterable[Service]) -> list[str]:
    """Say what is left, a sentence and a command each. adopted: the foreign unit that comes back, if one does."""
    back = [
        f"{one.name}.service is again the unit that somebody else made, and is not started. To start it: "
        f"systemctl start {one.name}"
        for one in ([adopted] if adopted else [])
    ]
    return back + [
        f"{one.name}.service, which {own}.service took the place of, stays stopped and disabled. To have it serve "
        f"again: {_command(one)}"
        for one in services
    ]


def _command(one: Service) -> str:
    """How it is enabled and started; `systemctl enable` does nothing for a unit without [Install]."""
    unit = UnitFiles.read(one.name).unit
    if not one.links or (unit is not None and b"\n[Install]" in b"\n" + unit.content):
        return f"systemctl enable --now {one.name}"
    made = [shlex.join(["ln", "-s", target, path]) for path, target in one.links.items()]
    return " && ".join([*made, f"systemctl start {one.name}"])
