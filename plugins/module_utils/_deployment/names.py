# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable whose name nearly is one of ours is a slip of the pen, and would do nothing. Private to the collection."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.options import OPTIONS
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices

# What playbooks and roles read beside the options of a deployment.
_OTHERS = (
    "sglang_hosts",
    "sglang_site",
    "sglang_checkpoint_address",
    "sglang_api_key",
    "sglang_hub_token",
    "sglang_index_url",
    "sglang_download_environment",
    "sglang_accepted_rules",
    "sglang_accepted_findings",
    "sglang_refuse",
    "sglang_profile_folders",
    "sglang_rollback_to",
    "sglang_status_to",
    "sglang_preflight_to",
    "sglang_smg_api_key",
    "sglang_benchmark_measure",
    "sglang_benchmark_to",
    "sglang_trial",
    "sglang_without_trial",
)
KNOWN = (*(f"sglang_{name}" for name in OPTIONS), *choices.NAMES, *_OTHERS)
# Facts and variables of our own roles that are near one of the above.
OURS = frozenset(
    (
        "sglang_build_download_environment",
        "sglang_checkpoint_driver_file",
        "sglang_preflight",
        "sglang_refused",
        "sglang_reported",
        "sglang_rollback",
        "sglang_rollback_stop",
    )
)
# Of the whole name: one or two letters that are wrong, missing or swapped.
_NEAR = 0.9
_PREFIX = "sglang"
# With one letter missing, doubled, or swapped with its neighbour; golang_version is somebody else's.
_PREFIXES = frozenset(
    (
        *(_PREFIX[:at] + _PREFIX[at + 1 :] for at in range(len(_PREFIX))),
        *(_PREFIX[:at] + _PREFIX[at] + _PREFIX[at:] for at in range(len(_PREFIX))),
        *(_PREFIX[:at] + _PREFIX[at + 1] + _PREFIX[at] + _PREFIX[at + 2 :] for at in range(len(_PREFIX) - 1)),
        _PREFIX,
    )
)


def slips(names: Iterable[str]) -> list[str]:
    """Return a sentence for each name that is nearly one of ours; an operator's other names are his own."""
    found: list[str] = []
    for name in names:
        if name in KNOWN or name in OURS:
            continue
        near = _near(name)
        if near:
            found.append(f"{name} is no variable of this collection, and nothing reads it: {near} is meant?")
    return found


def _near(name: str) -> str:
    """Return the variable that a name nearly is; "" where it is none. The prefix and the rest are compared apart."""
    prefix, _underscore, rest = name.partition("_")
    if prefix not in _PREFIXES:
        return ""
    name = f"{_PREFIX}_{rest}"
    near = difflib.get_close_matches(name, KNOWN, 3, _NEAR)
    # Letters that are swapped leave a name with the same ones.
    return next((one for one in near if sorted(one) == sorted(name)), near[0] if near else "")
