# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launch arguments and environment variables: which may be set, how a flag is spelled. Private to the collection."""

from __future__ import annotations

import json
import re
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import unfit

# Flags that the collection sets itself; an operator has a variable for each.
_OWN_FLAGS = {
    "host": "sglang_listen_host",
    "port": "sglang_port",
    "model-path": "sglang_checkpoint_revisions",
    "served-model-name": "sglang_served_model_name",
    "api-key": "sglang_api_key",
    "config": "sglang_arguments",
}
# Secrets that argv would show to everybody on the host; there is no variable for them yet.
_SECRET_FLAGS = ("admin-api-key", "ssl-keyfile-password")
# Two spellings of one flag would let the profile's value and the operator's both reach the engine (0.5.23's --help).
_SPELLINGS = {
    "tp": "tp-size",
    "tensor-parallel-size": "tp-size",
    "dp": "dp-size",
    "data-parallel-size": "dp-size",
    "pp": "pp-size",
    "pipeline-parallel-size": "pp-size",
    "ep": "ep-size",
    "expert-parallel-size": "ep-size",
    "model": "model-path",
    "nccl-init-addr": "dist-init-addr",
    "enable-hicache": "enable-hierarchical-cache",
    "speculative-draft-model": "speculative-draft-model-path",
}
# Between which numbers, both left out, a flag's value has to be on every card; None: no end.
_BETWEEN: dict[str, tuple[float, float | None]] = {"mem-fraction-static": (0, 1), "context-length": (0, None)}
_FLAG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VALUE_BEGINS = re.compile(r"(?<=\S)[\s=:]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def canonical(flag: str) -> str:
    """Return the spelling that the collection uses for a flag: without dashes in front, and one of its synonyms."""
    name = flag.strip().lstrip("-").replace("_", "-")
    return _SPELLINGS.get(name, name)


def argument_problems(where: str, arguments: dict[Any, Any]) -> list[str]:
    """Return what is wrong with the flags that `where` sets, a sentence each."""
    problems: list[str] = []
    seen: dict[str, Any] = {}
    for given in arguments:
        flag = canonical(str(given))
        if not _FLAG.fullmatch(flag):
            problems.append(f"{where} sets {_named(given)}, which is no name of a launch argument.")
        elif flag in _OWN_FLAGS:
            problems.append(f"{where} sets '{given}', which is the collection's own: use {_OWN_FLAGS[flag]}.")
        elif flag in _SECRET_FLAGS:
            problems.append(f"{where} sets '{given}', a secret that everybody on the host could read in argv.")
        elif flag in seen:
            problems.append(f"{where} sets '{seen[flag]}' and '{given}', which are one flag: keep one of them.")
        problems += _value_problems(where, str(given), flag, arguments[given])
        seen.setdefault(flag, given)
    return problems


def _value_problems(where: str, given: str, flag: str, value: Any) -> list[str]:
    """Return what no engine takes of a flag's value."""
    held = _unit_problems(where, given, value)
    if held or value is None or flag not in _BETWEEN:
        return held
    low, high = _BETWEEN[flag]
    try:
        number = float(value)
    except (TypeError, ValueError):
        return []  # the built engine's own parser says more of it
    if number > low and (high is None or number < high):
        return []
    what = f"greater than {low}" + ("" if high is None else f" and less than {high}")
    return [f"{where} sets '{given}' to {hide.shown(value)}, and it has to be {what}."]


def _unit_problems(where: str, name: str, value: Any) -> list[str]:
    """Name the value that holds what no unit can; it may be a secret and is not quoted."""
    words = value if isinstance(value, list) else [value]
    texts = [word if isinstance(word, str) else json.dumps(word, ensure_ascii=False, default=str) for word in words]
    found = unfit("".join(texts))
    return [f"{where} sets {name} to a value with the character {found}, which a unit cannot hold."] if found else []


def _named(given: Any) -> str:
    """Quote what is no name, up to where a value may begin that was written into it."""
    name = _VALUE_BEGINS.split(str(given), maxsplit=1)[0]
    return repr(name) if name == str(given) else f"'{name} …'"


def environment_problems(where: str, environment: dict[Any, Any]) -> list[str]:
    """Return what is wrong with the environment variables that `where` sets, a sentence each."""
    problems: list[str] = []
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(str(name)):
            problems.append(f"{where} sets {_named(name)}, which is no name of an environment variable.")
        elif isinstance(value, (dict, list, bool)):
            problems.append(f"{where} sets {name} to {hide.shown(value)}: give it as text, in quotes.")
        else:
            problems += _unit_problems(where, str(name), value)
    return problems
