# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be tried: patch sets, arguments and variables that belong together, on one host. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import running
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.flags import ARCHITECTURES
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words

KEYS = ("patch_sets", "arguments", "environment")
EXAMPLE = '-e \'{"sglang_trial": {"arguments": {"chunked-prefill-size": 8192}}}\''


def problems(trial: Any, hosts: Sequence[str]) -> list[str]:
    """Return what is wrong with a trial, a sentence each. hosts: those that it is aimed at."""
    found: list[str] = []
    if len(hosts) != 1:
        told = ", ".join(hosts) or "none"
        found.append(f"A trial is made on one host, and {len(hosts)} are aimed at ({told}): name one with --limit.")
    unknown = [key for key in trial if key not in KEYS] if isinstance(trial, Mapping) else []
    found += [f"sglang_trial has '{key}', and only {', '.join(KEYS)} are known." for key in unknown]
    if not isinstance(trial, Mapping) or not any(trial.get(key) for key in KEYS):
        nothing = f"sglang_trial names no change: give it one or more of {', '.join(KEYS)}, such as {EXAMPLE}."
        return found if unknown else [*found, nothing]
    sets = trial.get("patch_sets") or []
    if not isinstance(sets, list) or not all(isinstance(one, str) for one in sets):
        found.append(f"sglang_trial, patch_sets, has to be a list of names, not {sets!r}.")
    for key, check in (("arguments", flags.argument_problems), ("environment", flags.environment_problems)):
        value = trial.get(key) or {}
        if isinstance(value, Mapping):
            found += check(f"sglang_trial, {key},", dict(value))
        else:
            found.append(f"sglang_trial, {key}, has to be a map of names to values, not {value!r}.")
    return found


def changed(variables: Mapping[str, Any], trial: Mapping[str, Any], patch_sets: Sequence[str]) -> dict[str, Any]:
    """Return the variables that differ with the change: the operator's own with those of the trial over them.

    patch_sets: those that the deployment has without it.
    """
    arguments = {flags.canonical(str(flag)): value for flag, value in (trial.get("arguments") or {}).items()}
    own = {
        flag: value
        for flag, value in (variables.get("sglang_arguments") or {}).items()
        if flags.canonical(str(flag)) not in arguments
    }
    return {
        "sglang_patch_sets": list(dict.fromkeys([*patch_sets, *(trial.get("patch_sets") or [])])),
        "sglang_arguments": {**own, **arguments},
        "sglang_environment": {**(variables.get("sglang_environment") or {}), **(trial.get("environment") or {})},
    }


def without_effect(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return why there is nothing to try between two resolved deployments; empty where there is."""
    if base["launch"] == other["launch"] and base["patch_sets"] == other["patch_sets"]:
        return ["sglang_trial changes nothing: the deployment has all of it already."]
    return []


def shown(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the change as records and reports show it: with all keys, and no value that may be a secret."""
    environment = {str(name): str(value) for name, value in (trial.get("environment") or {}).items()}
    return {
        "patch_sets": [str(one) for one in trial.get("patch_sets") or []],
        "arguments": {flags.canonical(str(flag)): value for flag, value in (trial.get("arguments") or {}).items()},
        "environment": running.hidden(environment),
    }


def words(trial: Mapping[str, Any]) -> str:
    """Return the change in a line."""
    seen = shown(trial)
    parts = [f"patch set {name}" for name in seen["patch_sets"]]
    parts += [" ".join(group) for group in launch_words({k: v for k, v in seen["arguments"].items() if v is not None})]
    parts += [f"--{flag} taken out" for flag, value in seen["arguments"].items() if value is None]
    parts += [f"{name}={value}" for name, value in seen["environment"].items()]
    return ", ".join(parts)


def differences(serving: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    """Return in what the running instance is not the deployment that a trial changes, a sentence each.

    serving: what `_benchmark.running` says of it, as a map; deployment: the resolved one.
    """
    found: list[str] = []
    wanted_sets = [one["name"] for one in deployment["patch_sets"]]
    if serving["commit"] != deployment["build"]["commit"]:
        found.append(f"commit {serving['commit'][:12]} serves, and {deployment['build']['commit'][:12]} is deployed")
    if sorted(serving["patch_sets"]) != sorted(wanted_sets):
        found.append(f"its patch sets are {serving['patch_sets']}, and the deployment's {wanted_sets}")
    wanted = running.parse_arguments(
        [word for group in launch_words(deployment["launch"]["arguments"]) for word in group]
    )
    have = serving["arguments"]
    for flag in sorted({*wanted, *have}):
        if wanted.get(flag) != have.get(flag):
            found.append(f"--{flag} is {have.get(flag, 'not set')}, and the deployment's {wanted.get(flag, 'not set')}")
    environment = running.hidden(deployment["launch"]["environment"])
    for name in sorted({*environment, *serving["environment"]}):
        was, will = serving["environment"].get(name, "not set"), environment.get(name, "not set")
        if was != will and not _of_the_build(name, deployment):
            found.append(f"{name} is {was}, and the deployment's {will}")
    return found


def _of_the_build(name: str, deployment: Mapping[str, Any]) -> bool:
    """Tell whether a variable is the release's own: what its compilers at run time are told."""
    return name not in deployment["launch"]["environment"] and name in (*ARCHITECTURES, "MAX_JOBS")
