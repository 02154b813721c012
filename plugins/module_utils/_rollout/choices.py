# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator chooses of a rollout, checked before any host is touched. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import files, hide
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import serial

NAMES = (
    "sglang_serial",
    "sglang_failures_allowed",
    "sglang_batch_peers",
    "sglang_drain_tasks",
    "sglang_undrain_tasks",
    "sglang_lock_broken",
    "sglang_haproxy",
    "sglang_smg",
    "sglang_report_to",
    "sglang_benchmark",
    "sglang_trial_baseline",
    "sglang_trial_same",
)
MEASURED = ("none", "canary", "all")
PEERS = ("keep", "back")
# Load balancers that the collection has task files for: the variable that says where they are, and what it needs.
SHIPPED = {"haproxy": ("sglang_haproxy", ("host",)), "smg": ("sglang_smg", ("host", "url"))}
_RUN = re.compile(r"[0-9a-f]{12}")
HOOKS = ("sglang_drain_tasks", "sglang_undrain_tasks")


def problems(variables: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the choices, a sentence each. variables: those of NAMES that are set."""
    found: list[str] = []
    given = {name: variables[name] for name in NAMES if variables.get(name) not in (None, "")}
    if "sglang_serial" in given:
        try:
            serial.sizes(given["sglang_serial"])
        except ValueError as error:
            found.append(f"{error}.")
    allowed = given.get("sglang_failures_allowed", 0)
    if isinstance(allowed, bool) or not re.fullmatch(r"\d+", str(allowed)):
        shown = hide.shown(allowed)
        found.append(f"sglang_failures_allowed has to be how many hosts of the fleet may fail, not {shown}.")
    if given.get("sglang_batch_peers", "keep") not in PEERS:
        found.append(
            f"sglang_batch_peers has to be keep (healthy hosts of a batch in which another fails keep the new version) "
            f"or back (they go back too), not {hide.shown(given['sglang_batch_peers'])}."
        )
    if given.get("sglang_benchmark", "none") not in MEASURED:
        found.append(
            "sglang_benchmark has to be canary (the first host of a rollout is measured, and goes back if it is "
            f"slower), all or none, not {hide.shown(given['sglang_benchmark'])}."
        )
    if given.get("sglang_trial_baseline", "measured") not in ("measured", "recorded"):
        found.append(
            f"sglang_trial_baseline has to be measured (before the change) or recorded (the last one of what serves), "
            f"not {hide.shown(given['sglang_trial_baseline'])}."
        )
    if given.get("sglang_trial_same", "back") not in ("back", "keep"):
        found.append(
            f"sglang_trial_same has to be back or keep (what a host does with a change that changed nothing), "
            f"not {hide.shown(given['sglang_trial_same'])}."
        )
    place = given.get("sglang_report_to", "")
    if not isinstance(place, str) or (place and files.hindrance(files.folder(place, Path.cwd()), ())):
        wrong = files.hindrance(files.folder(str(place), Path.cwd()), ()) or f"it is {hide.shown(place)}"
        found.append(f"sglang_report_to has to be a folder on the controller for reports: {wrong}.")
    broken = given.get("sglang_lock_broken", "")
    if broken and not _RUN.fullmatch(str(broken)):
        shown = hide.shown(broken)
        found.append(f"sglang_lock_broken has to be the run that the refusal names, 12 hex digits, not {shown}.")
    return found + _hook_problems(given)


def _hook_problems(given: Mapping[str, Any]) -> list[str]:
    set_ones = [name for name in HOOKS if name in given]
    if len(set_ones) == 1:
        [other] = set(HOOKS) - set(set_ones)
        return [f"{set_ones[0]} is set and {other} is not: a host that is drained has to be undrained, and only such."]
    found: list[str] = []
    for name in set_ones:
        value = given[name]
        if isinstance(value, str) and value in SHIPPED:
            found += _places_problems(*SHIPPED[value], given)
        elif not isinstance(value, str) or not value.startswith("/"):
            found.append(
                f"{name} has to be {', '.join(SHIPPED)}, or the absolute path of a file of tasks on the controller "
                f"(such as {{{{ inventory_dir }}}}/drain.yml), not {hide.shown(value)}."
            )
        elif not Path(value).is_file():
            found.append(f"{name} names {value}, and there is no such file on the controller.")
    return list(dict.fromkeys(found))


def _places_problems(variable: str, keys: tuple[str, ...], given: Mapping[str, Any]) -> list[str]:
    places = given.get(variable)
    if (
        isinstance(places, list)
        and places
        and all(isinstance(one, Mapping) and set(keys) <= set(one) for one in places)
    ):
        return []
    return [f"{variable} has to be a list of where the load balancers are, each a map with {' and '.join(keys)}."]


def hook(value: str, verb: str, shipped: Path) -> str:
    """Return the file of tasks that a hook means. verb: drain, undrain or ask; shipped: the folder of ours."""
    return str(shipped / f"{value}_{verb}.yml") if value in SHIPPED else value


def unreached(result: Mapping[str, Any]) -> str:
    """Say which load balancers could not be reached, of a task of ours that asked each of them."""
    lost = [one for one in result.get("results", []) if one.get("unreachable")]
    each = [f"{one.get('sglang_balancer', {}).get('host', '')}: {str(one.get('msg', '')).strip()}" for one in lost]
    return f"The load balancer cannot be reached from here: {'; '.join(each).rstrip('.')}."
