# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep secrets out of a report, wherever they stand in it. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact_urls, secrets_of
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.changes import HIDDEN, secret

# Variables of a host whose values are secrets, or maps of which some are.
NAMES = (
    "sglang_api_key",
    "sglang_hub_token",
    "sglang_smg_api_key",
    "sglang_index_url",
    "sglang_download_environment",
    "sglang_environment",
    "sglang_build_environment",
    "sglang_arguments",
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_become_password",
    "ansible_become_pass",
)
_URLS = ("sglang_index_url", "sglang_download_environment")
_MAPS = ("sglang_environment", "sglang_build_environment", "sglang_arguments", "sglang_download_environment")
# A text that is shorter would be hidden inside of other words.
_SHORTEST = 4
# After a blank it is a value only behind a flag: prose speaks of tokens and keys too.
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_][\w-]*)(?P<between>\s?=\s?|: ?)(?P<value>[^\s,;]+)")
_FLAG = re.compile(r"(?<=--)(?P<name>[A-Za-z][\w-]*)(?P<between>\s+)(?P<value>[^\s,;]+)")
_BEARER = re.compile(r"(?i)\b(bearer)\s+[^\s,;]+")


def known(variables: Mapping[str, Any]) -> set[str]:
    """Return the secrets among the variables of a host (those of NAMES)."""
    found = {str(variables[name]) for name in NAMES if name in variables and name not in (*_URLS, *_MAPS)}
    for name in _MAPS:
        values = variables.get(name)
        if isinstance(values, Mapping):
            found |= {str(value) for key, value in values.items() if value is not None and secret(str(key))}
    for name in _URLS:
        values = variables.get(name)
        urls = values.values() if isinstance(values, Mapping) else [values]
        found |= set(secrets_of(str(url) for url in urls if url))
    return {one for one in (each.strip() for each in found) if len(one) >= _SHORTEST}


def text(value: str, secrets: Sequence[str]) -> str:
    """Return a text without these secrets, without passwords in URLs, and without what a name says to be one."""
    for one in secrets:
        value = value.replace(one, HIDDEN)
    value = _BEARER.sub(rf"\1 {HIDDEN}", redact_urls(value))
    return _FLAG.sub(_hidden, _ASSIGNED.sub(_hidden, value))


def _hidden(match: re.Match[str]) -> str:
    return f"{match['name']}{match['between']}{HIDDEN}" if secret(match["name"]) else match[0]


def shown(value: Any) -> str:
    """Return a value as a message may quote it: of a text what is no secret, of a container no more than its kind."""
    return repr(text(value, ())) if isinstance(value, str) else kind(value)


def kind(value: Any) -> str:
    """Return the kind of a value that is of a wrong one; numbers and the like as they are."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    kinds = {str: "text", Mapping: "a map", list: "a list", tuple: "a list"}
    return next((word for one, word in kinds.items() if isinstance(value, one)), f"a {type(value).__name__}")


def everywhere(value: Any, secrets: Iterable[str]) -> Any:
    """Return plain data without the secrets, in its texts and in its keys."""
    longest_first = sorted(set(secrets), key=lambda one: (-len(one), one))
    return _walk(value, longest_first)


def _walk(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        return text(value, secrets)
    if isinstance(value, Mapping):
        return {text(str(key), secrets): _walk(one, secrets) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walk(one, secrets) for one in value]
    return value
