# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys, tokens and what else may hold a password, checked before any host is touched. Private to the collection.

No message holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide

SENT = ("sglang_api_key", "sglang_hub_token", "sglang_smg_api_key")
INDEX = "sglang_index_url"
DOWNLOADS = "sglang_download_environment"
NAMES = (*SENT, INDEX, DOWNLOADS)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Of hosts with the same problem, as many are named.
_NAMED = 3


def problems(variables: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the variables NAMES of a host, a sentence each; one that is not set is none's fault."""
    given = {name: variables[name] for name in NAMES if variables.get(name) not in (None, "")}
    found = [f"{name} {why}." for name in SENT if name in given and (why := _sent(given[name]))]
    if INDEX in given and (why := _index(given[INDEX])):
        found.append(f"{INDEX} {why}.")
    return found + [f"{DOWNLOADS} {why}." for why in _downloads(given.get(DOWNLOADS, {}))]


def of_hosts(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is wrong on any host, a sentence each, which names hosts where others have another value."""
    return by_hosts({host: problems(variables) for host, variables in hosts.items()}, _NAMED)


def by_hosts(found: Mapping[str, Sequence[str]], most: int | None = None) -> list[str]:
    """Return each problem once; where not all hosts have it, with who has it. most: how many are named, None: all."""
    where: dict[str, list[str]] = {}
    for host, told in found.items():
        for one in told:
            where.setdefault(one, []).append(host)
    return [one if len(names) == len(found) else f"{_names(names, most)}: {one}" for one, names in where.items()]


def _names(hosts: list[str], most: int | None) -> str:
    more = len(hosts) - len(hosts[:most])
    return ", ".join(hosts[:most]) + (f" and {more} more" if more else "")


def _no_text(value: Any) -> str:
    return "" if isinstance(value, str) else f"has to be text, not {_kind(value)}"


def _kind(value: Any) -> str:
    """The kind of a value. A key that YAML takes for a number is not told either."""
    if isinstance(value, bool):
        return "true or false"
    return "a number: put it in quotes" if isinstance(value, (int, float)) else hide.kind(value)


def _sent(value: Any) -> str:
    return _no_text(value) or bearer.hindrance(value)


def _index(value: Any) -> str:
    return _no_text(value) or bearer.ended(value) or ("is no URL: it holds a blank" if re.search(r"\s", value) else "")


def _downloads(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"has to be a map of names to text, not {_kind(value)}"]
    if any(not _VARIABLE.fullmatch(str(name)) for name in value):
        return ["holds a name that is none of an environment variable"]
    # A number is text here, such as GIT_CONFIG_COUNT.
    wrong = {name: one for name, one in value.items() if isinstance(one, bool) or not isinstance(one, (str, int))}
    found = [f"sets {name} to {_kind(one)}: give it as text, in quotes" for name, one in wrong.items()]
    texts = {name: one for name, one in value.items() if isinstance(one, str)}
    return found + [f"sets {name} to a value that {why}" for name, one in texts.items() if (why := bearer.ended(one))]
