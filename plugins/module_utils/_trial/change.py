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
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import made_from
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words

KEYS = ("patch_sets", "arguments", "environment")
MOST = 5  # of a kind of differences
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
    """Return the change as records and reports show it: with all keys, and no value that may be a secret.

    None stands for an argument or a variable that is taken out.
    """
    environment = {str(name): value for name, value in (trial.get("environment") or {}).items()}
    hidden = running.hidden({name: str(value) for name, value in environment.items() if value is not None})
    return {
        "patch_sets": [str(one) for one in trial.get("patch_sets") or []],
        "arguments": {flags.canonical(str(flag)): value for flag, value in (trial.get("arguments") or {}).items()},
        "environment": {name: hidden.get(name) for name in sorted(environment)},
    }


def words(trial: Mapping[str, Any]) -> str:
    """Return the change in a line."""
    seen = shown(trial)
    parts = [f"patch set {name}" for name in seen["patch_sets"]]
    parts += [" ".join(group) for group in launch_words({k: v for k, v in seen["arguments"].items() if v is not None})]
    parts += [f"--{flag} taken out" for flag, value in seen["arguments"].items() if value is None]
    parts += [f"{name}={value}" for name, value in seen["environment"].items() if value is not None]
    parts += [f"{name} taken out" for name, value in seen["environment"].items() if value is None]
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
    return found + _other_variables(serving, deployment)


def _other_variables(serving: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    """Return the variables of the running process that are not as deployed, without a value that may be a secret."""
    environment = running.hidden(deployment["launch"]["environment"])
    have = {**serving["environment"], **serving["asked"]}
    as_asked = {name for name, how in serving["compared"].items() if how == running.AS_ASKED}
    other = [name for name in environment if name not in as_asked]
    more = [name for name in serving["environment"] if name not in environment and not _of_the_build(name)]
    return [
        _other(name, have.get(name, "not set"), environment.get(name, "not set")) for name in sorted([*other, *more])
    ]


def _other(name: str, have: str, wanted: str) -> str:
    if have == wanted:
        return f"{name} is another one than the deployment's, and may be a secret"
    return f"{name} is {have}, and the deployment's {wanted}"


def in_force(serving: Mapping[str, Any], base: Mapping[str, Any], changed: Mapping[str, Any]) -> list[str]:
    """Return the variables that the change adds and what serves has already, by unit or host; a sentence each."""
    added = {n: v for n, v in changed["launch"]["environment"].items() if n not in base["launch"]["environment"]}
    return [
        f"The change sets {name} to {value}, which what serves has already: leave it out."
        for name, value in running.hidden(added).items()
        if serving["compared"].get(name) == running.AS_ASKED
    ]


def release_differences(serving: Mapping[str, Any], release: Mapping[str, Any]) -> list[str]:
    """Return in what the release that serves is not the one that the deployment makes, a sentence each.

    release: what the module release_status says of the deployment without the change.
    """
    if serving["release"] == release["id"]:
        return []
    have, found = serving["made_from"], []
    if release["interpreter"] and have["interpreter"] != release["interpreter"]:
        found.append(
            f"it runs on {have['interpreter']}, and the deployment's sglang_python is {release['interpreter']}"
        )
    if not release["id"]:
        if release["interpreter"] and not found:
            found.append("it was built with other sglang_build_overrides or sglang_uv_version, or its lock was removed")
        return [*found, *(f"{one} is missing on the host" for one in release["missing"])]
    wanted = made_from(release["inputs"])
    for name in sorted({*have["patch_sets"]} & {*wanted["patch_sets"]}):
        if have["patch_sets"][name] != wanted["patch_sets"][name]:
            found.append(f"patch set {name} has other edits in the release that serves than in the deployment")
    found += _told(have["packages"], wanted["packages"], "package {} is {}, and the deployment's lock has {}")
    before, now = (running.hidden(one["environment"]) for one in (have, wanted))
    found += _told(
        before, now, "it was built with {} {}, and now that would be {} (sglang_build_environment, or other cards)"
    )
    return found or [f"release {serving['release']} serves, and the deployment's is {release['id']}"]


def _told(have: Mapping[str, str], wanted: Mapping[str, str], text: str) -> list[str]:
    """Return a sentence for each entry that differs, of the first few; how many more there are is said."""
    pairs = [(name, have.get(name, "not there"), wanted.get(name, "not there")) for name in sorted({*have, *wanted})]
    found = [text.format(*one) for one in pairs if one[1] != one[2]]
    more = [f"and {len(found) - MOST} more of that kind"] if len(found) > MOST else []
    return found[:MOST] + more


def _of_the_build(name: str) -> bool:
    """Tell whether a variable that the deployment does not set is the release's own: what its compilers are told."""
    return name in (*ARCHITECTURES, "MAX_JOBS")
