# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be tried: patch sets, arguments and variables that belong together, on one host. Private."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import running
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.flags import ARCHITECTURES
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import made_from
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.environment import of_service
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words

KEYS = ("patch_sets", "arguments", "environment")
MOST = 5  # of a kind of differences
# Of the release: what its compilers are told.
_OF_THE_BUILD = (*ARCHITECTURES, "MAX_JOBS")
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
        found.append(f"sglang_trial, patch_sets, has to be a list of names, not {hide.kind(sets)}.")
    for key, check in (("arguments", flags.argument_problems), ("environment", flags.environment_problems)):
        value = trial.get(key) or {}
        if isinstance(value, Mapping):
            found += check(f"sglang_trial, {key},", dict(value))
        else:
            found.append(f"sglang_trial, {key}, has to be a map of names to values, not {hide.kind(value)}.")
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


def without_effect(base: Mapping[str, Any], other: Mapping[str, Any], trial: Mapping[str, Any]) -> list[str]:
    """Return what of a trial cannot be, or that two resolved deployments do not differ; empty for neither."""
    bare = {"service": "", "launch": {"environment": {}}}
    own = {*of_service(bare, {"id": "", "path": ""}), *_OF_THE_BUILD}
    out = [str(name) for name, value in (trial.get("environment") or {}).items() if value is None]
    kept = [name for name in out if name in own and name not in base["launch"]["environment"]]
    if kept:
        return [
            f"sglang_trial takes {name} out, which every unit of ours sets: only what the inventory or the profile "
            "sets can be taken out. Give it another value."
            for name in kept
        ]
    if base["launch"] == other["launch"] and base["patch_sets"] == other["patch_sets"]:
        return ["sglang_trial changes nothing: the deployment is the same without it."]
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


def differences(
    serving: Mapping[str, Any], deployment: Mapping[str, Any], compilers: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return in what the running instance is not the deployment that a trial changes, a sentence each.

    serving: what `_benchmark.running` says of it, as a map; deployment: the resolved one; compilers: what its release
    adds to the environment, none where that is not known.
    """
    found = ["its unit is another one now than it was started from"] if serving["unit_changed"] else []
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
    return found + _other_variables(serving, deployment, compilers)


def _other_variables(
    serving: Mapping[str, Any], deployment: Mapping[str, Any], compilers: Mapping[str, str]
) -> list[str]:
    """Return the variables of the running process that are not as deployed, without a value that may be a secret."""
    environment = running.hidden(deployment["launch"]["environment"])
    have = {**serving["environment"], **serving["asked"]}
    as_asked = {name for name, how in serving["compared"].items() if how == running.AS_ASKED}
    as_built = {n for n, value in compilers.items() if n not in environment and have.get(n) == value}
    wanted = {**compilers, **environment}
    other = [name for name in wanted if name not in as_asked | as_built]
    more = [name for name in serving["environment"] if name not in wanted and (compilers or name not in _OF_THE_BUILD)]
    return [_other(name, have.get(name, "not set"), wanted.get(name, "not set")) for name in sorted([*other, *more])]


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
        # Another interpreter has a lock of its own: that it is not there yet says nothing more.
        missing = [one for one in release["missing"] if not (found and one.startswith("a lock of its packages"))]
        if release["interpreter"] and not found:
            found.append("it was built with other sglang_build_overrides or sglang_uv_version, or its lock was removed")
        return [*found, *(f"{one} is missing on the host" for one in missing)]
    wanted = made_from(release["inputs"])
    for name in sorted({*have["patch_sets"]} & {*wanted["patch_sets"]}):
        if have["patch_sets"][name] != wanted["patch_sets"][name]:
            found.append(f"patch set {name} has other edits in the release that serves than in the deployment")
    found += _told(have["packages"], wanted["packages"], _package)
    before, now = (running.hidden(one["environment"]) for one in (have, wanted))
    found += _told(before, now, _built)
    return found or [f"release {serving['release']} serves, and the deployment's is {release['id']}"]


def _package(name: str, have: str | None, wanted: str | None) -> str:
    return f"package {name} is {have or 'not there'}, and the deployment's lock has {wanted or 'none'}"


def _built(name: str, have: str | None, wanted: str | None) -> str:
    was = f"without {name}" if have is None else f"with {name} {have}"
    now = "it would be without it" if wanted is None else f"that would be {wanted}"
    return f"it was built {was}, and now {now} (sglang_build_environment, or other cards)"


def _told(
    have: Mapping[str, str], wanted: Mapping[str, str], text: Callable[[str, str | None, str | None], str]
) -> list[str]:
    """Return a sentence for each entry that differs, of the first few; how many more there are is said.

    text: makes it of the name and both values, None where there is none.
    """
    names = sorted({*have, *wanted})
    found = [text(name, have.get(name), wanted.get(name)) for name in names if have.get(name) != wanted.get(name)]
    more = [f"and {len(found) - MOST} more of that kind"] if len(found) > MOST else []
    return found[:MOST] + more
