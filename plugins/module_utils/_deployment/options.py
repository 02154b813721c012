# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable that an operator may set, with its type and default: the one place. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

PIN = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Option:
    """One `sglang_*` variable: its Python type, its default, and how to get a value that has none."""

    kind: type
    default: Any = None
    how: str = ""
    required: bool = False
    pattern: re.Pattern[str] | None = None


def _required(kind: type, how: str, pattern: re.Pattern[str] | None = None) -> Option:
    return Option(kind=kind, how=how, required=True, pattern=pattern)


_PIN_HOW = (
    "run `ansible-playbook playbooks/pin.yml -i INVENTORY`, which looks it up once and writes it to the inventory"
)

OPTIONS: dict[str, Option] = {
    # what is deployed
    "profile": _required(str, "name a model profile (playbooks/profiles); deploy_qwen.yml does", _NAME),
    "commit": _required(str, _PIN_HOW, PIN),
    "version": _required(str, _PIN_HOW),
    "checkpoint_revision": _required(str, _PIN_HOW, PIN),
    "patch_sets": Option(list, ["sm120"]),
    "multimem_world_sizes": Option(list, []),
    "replaces": Option(list, []),
    # where it serves
    "listen_host": _required(
        str, "set the address that clients reach this host by (0.0.0.0 only if you mean every interface)"
    ),
    "port": Option(int, 30000),
    "served_model_name": Option(str, ""),
    "arguments": Option(dict, {}),
    "environment": Option(dict, {}),
    # where it comes from
    "repository": Option(str, "https://github.com/sgl-project/sglang.git"),
    "hub_endpoint": Option(str, "https://huggingface.co"),
    "offline": Option(bool, False),
    "build_overrides": Option(str, ""),
    "build_environment": Option(dict, {}),
    "python": Option(str, "/usr/bin/python3"),
    "link_mode": Option(str, "hardlink", pattern=re.compile("hardlink|symlink|copy|clone")),
    "uv_version": Option(str, "0.13.9"),
    "hub_version": Option(str, "2.4.0"),
    # where it lies on the host
    "root": Option(str, "/opt/sglang", pattern=re.compile("/.+")),
    "models": Option(str, "/models", pattern=re.compile("/.+")),
    "state": Option(str, "/var/lib/llmfleet", pattern=re.compile("/.+")),
    "cache": Option(str, "/var/cache/llmfleet", pattern=re.compile("/.+")),
    "user": Option(str, "sglang", pattern=_NAME),
    "build_user": Option(str, "sglang-build", pattern=_NAME),
    # how much and how long
    "gpus": Option(dict, {}),
    "root_free_bytes": Option(int, 30_000_000_000),  # a venv of 11 GB, its cache, a worktree, and room to install
    "checkpoint_bytes": Option(int, 0),
    "ready_timeout": Option(int, 1800),
    "stop_timeout": Option(int, 300),
}


def read(variables: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Take the options out of `variables` (names with the prefix `sglang_`), typed and with defaults.

    Returns the values by short name, and every problem found as one sentence each.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, option in OPTIONS.items():
        given = variables.get(f"sglang_{name}")
        if given in (None, ""):
            values[name] = option.default
            if option.required:
                problems.append(f"sglang_{name} is not set: {option.how}.")
            continue
        value, problem = _typed(name, option, given)
        values[name] = value
        if problem:
            problems.append(problem)
    return values, problems


def _typed(name: str, option: Option, given: Any) -> tuple[Any, str]:
    """Return (value, problem): what Ansible hands over as text (`-e`) is taken as the type that was meant."""
    value: Any = given
    if option.kind is int and isinstance(given, str) and given.strip().lstrip("-").isdigit():
        value = int(given)
    if option.kind is bool and isinstance(given, str) and given.lower() in ("true", "yes", "false", "no"):
        value = given.lower() in ("true", "yes")
    if option.kind is str and isinstance(given, int) and not isinstance(given, bool):
        value = str(given)
    if not isinstance(value, option.kind) or (option.kind is int and isinstance(value, bool)):
        return option.default, f"sglang_{name} has to be a {option.kind.__name__}, not {given!r}."
    if option.pattern and not option.pattern.fullmatch(str(value)):
        advice = f": {option.how}" if option.how else f" (it has to match {option.pattern.pattern})"
        return option.default, f"sglang_{name} is {given!r}, which is not allowed{advice}."
    return value, ""
