# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What building one version of SGLang needs, from data that is keyed by version. Private to the collection."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import versions
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import lock_entries

_SCALARS = ("python", "kernel", "cuda", "prerelease")
_KNOWN = {"id", "versions", "source", "extras", "environment", "tools", *_SCALARS}


@dataclass(frozen=True)
class Tool:
    """A command that the build calls. least: its least version; unless: build flags that make it needless."""

    name: str
    least: str = ""
    unless: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What a version needs: least Python, extras, build flags, tools, kernel package, CUDA's major version."""

    python: str = ""
    kernel: str = ""
    cuda: str = ""
    prerelease: str = ""
    extras: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()


def needs_of(rules: Sequence[Mapping[str, Any]], version: str) -> Needs:
    """Return what `version` needs. Raises ValueError for a rule that cannot be read, or two that contradict."""
    found: dict[str, Any] = {"extras": (), "environment": {}, "tools": ()}
    said_by: dict[str, str] = {}
    for rule in rules:
        unknown = set(rule) - _KNOWN
        if unknown:
            raise ValueError(f"the build rule {rule.get('id')} has unknown keys: {', '.join(sorted(unknown))}")
        if not versions.matches(version, rule.get("versions", "")):
            continue
        for key in _SCALARS:
            if key in rule:
                _once(said_by, key, rule["id"])
                found[key] = str(rule[key])
        for name, value in rule.get("environment", {}).items():
            _once(said_by, name, rule["id"])
            found["environment"][name] = str(value)
        found["extras"] += tuple(rule.get("extras", ()))
        found["tools"] += tuple(Tool(**tool) for tool in rule.get("tools", ()))
    return Needs(**found)


def _once(said_by: dict[str, str], key: str, rule: str) -> None:
    if key in said_by:
        raise ValueError(f"the build rules {said_by[key]} and {rule} both give {key}")
    said_by[key] = rule


def build_requirements(pyproject: str) -> list[str]:
    """Return what `[build-system]` requires; the editable install finds it in the environment, as the lock holds it.

    Raises ValueError when it cannot be read. No parser of TOML is at hand before Python 3.11; this table is simple.
    """
    table = re.search(r"^\[build-system\]\s*$(.*?)(?=^\[|\Z)", pyproject, re.MULTILINE | re.DOTALL)
    listed = re.search(r"^requires\s*=\s*(\[.*?\])\s*$", table[1], re.MULTILINE | re.DOTALL) if table else None
    if listed is None:
        return ["setuptools>=61.0"]  # what PEP 518 assumes without the table
    try:
        required = ast.literal_eval(listed[1])
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"[build-system] requires of pyproject.toml cannot be read: {listed[1][:200]}") from error
    return [str(one) for one in required]


def lock_problems(lock: str, needs: Needs) -> list[str]:
    """Say in a sentence each what in a lock does not fit the version or itself."""
    pinned = _pins(lock)
    problems = []
    for kernel in ("sgl-kernel", "sglang-kernel"):
        if needs.kernel and (kernel in pinned) != (kernel == needs.kernel):
            lacks = "lacks" if kernel == needs.kernel else "holds"
            problems.append(f"the lock {lacks} {kernel}, and this version's kernels are in {needs.kernel}")
    flashinfer = {name: pinned[name].partition("+")[0] for name in sorted(pinned) if name.startswith("flashinfer-")}
    if len(set(flashinfer.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in flashinfer.items())
        problems.append(f"FlashInfer's packages have to be of one version, and are {listed}")
    lanes = sorted({match[1] for name in pinned if (match := re.fullmatch(r"nvidia-cudnn-cu(\d+)", name))})
    if needs.cuda and lanes and lanes != [needs.cuda]:
        problems.append(
            f"the lock's torch is for CUDA {' and '.join(lanes)}, and this version's is for CUDA {needs.cuda}"
        )
    return problems


def _pins(lock: str) -> dict[str, str]:
    """What a lock pins: versions by name."""
    matches = (re.match(r"([^=\s]+)==(\S+)", line) for line in lock_entries(lock))
    return {match[1]: match[2] for match in matches if match}
