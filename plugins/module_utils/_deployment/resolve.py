# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and a model profile become one deployment. Private to the collection."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import shapes
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags, versions
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.options import PIN, PIN_COMMAND, read
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.profile import (
    expects_problems,
    gpu_problems,
    misfits,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.profile import problems as profile_problems
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide


class DeploymentError(ValueError):
    """The deployment cannot be resolved; `problems` holds every reason, a sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def resolve(
    variables: dict[str, Any], profiles: dict[str, dict[str, Any]], patch_sets: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Resolve an operator's variables and the profile they name into one deployment (see docs in the filter).

    variables: the host's variables, of which those named `sglang_*` are read.
    profiles, patch_sets: the known ones by name.
    Raises DeploymentError with every problem at once.
    """
    values, problems = read(variables)
    if not values["profile"]:
        known = f" Known: {', '.join(sorted(profiles))}."
        problems = [one + (known if one.startswith("sglang_profile is not set") else "") for one in problems]
    profile = profiles.get(values["profile"] or "")
    if values["profile"] and profile is None:
        known = ", ".join(sorted(profiles))
        problems.append(f"sglang_profile is '{values['profile']}', and there is no such model profile. Known: {known}.")
    for name in values["patch_sets"]:
        if name not in patch_sets:
            known = ", ".join(sorted(patch_sets))
            problems.append(f"sglang_patch_sets names '{name}', and there is no such patch set. Known: {known}.")
    version = values["version"] or ""
    try:
        versions.parse(version or "0.0.0")
    except ValueError as error:
        version = ""
        problems.append(f"sglang_version: {error}.")
    problems += flags.argument_problems("sglang_arguments", values["arguments"])
    for option in ("environment", "build_environment"):
        problems += flags.environment_problems(f"sglang_{option}", values[option])
    problems += gpu_problems("sglang_gpus", values["gpus"]) + _visible_problems(values)
    problems += expects_problems("sglang_checkpoint_expects", values["checkpoint_expects"])
    problems += shapes.problems("sglang_benchmark_shapes", values["benchmark_shapes"])
    if profile is not None:
        revision = [] if variables.get("sglang_checkpoint_revision") else _revision_problems(values)
        problems = _with_one_command(problems, revision, values["profile"])
        problems += profile_problems(profile) or misfits(profile, version, values["checkpoint_bytes"])
    if problems or profile is None:
        raise DeploymentError(problems)
    return _assemble(values, profile, [patch_sets[name] for name in values["patch_sets"]])


def _revision(values: dict[str, Any]) -> Any:
    """Return the pin of the profile's checkpoint, whatever it is: the operator's for all, else the profile's own."""
    return values["checkpoint_revision"] or values["checkpoint_revisions"].get(values["profile"])


def _revision_problems(values: dict[str, Any]) -> list[str]:
    """Return why the profile's own pin does not do, in a sentence with the command that writes it."""
    revision, name = _revision(values), values["profile"]
    if revision and PIN.fullmatch(str(revision)):
        return []
    shown = hide.shown(revision)
    wrong = f"gives '{name}' {shown}, which is no 40 hex digits" if revision else f"has no entry '{name}'"
    command = f"{PIN_COMMAND} -e sglang_profile={name} -e sglang_pin=checkpoint"
    return [f"sglang_checkpoint_revisions {wrong}: run `{command}`, which looks it up once and writes it there."]


def _with_one_command(problems: list[str], revision: list[str], name: str) -> list[str]:
    """Return all problems; where pins of source and checkpoint lack, the one command that looks up both is in each."""
    found = problems + revision
    if not revision or not any(PIN_COMMAND in one for one in problems):
        return found
    return [re.sub(rf"`{PIN_COMMAND}[^`]*`", f"`{PIN_COMMAND} -e sglang_profile={name}`", one) for one in found]


# CUDA counts cards as nvidia-smi does only in the order of the bus; by itself it has the fastest first.
_VISIBLE = {"CUDA_VISIBLE_DEVICES": "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def _visible_problems(values: dict[str, Any]) -> list[str]:
    """Return what is wrong with the choice of cards, a sentence each."""
    visible = values["visible_gpus"]
    if not visible:
        return []
    found = [
        f"sglang_environment sets {name}, which sglang_visible_gpus does."
        for name in _VISIBLE
        if name in values["environment"]
    ]
    if len(set(visible)) < len(visible):
        found.append(f"sglang_visible_gpus names a card twice: {visible!r}.")
    count = values["gpus"].get("count", len(visible))
    if count != len(visible):
        found.append(f"sglang_gpus counts {count!r} cards, and sglang_visible_gpus names {len(visible)}.")
    return found


def _gpus(values: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    """Return what the cards have to be, and which they are where an instance has some of a host's."""
    visible = values["visible_gpus"]
    some = {"count": len(visible), "visible": visible} if visible else {}
    return {**profile["gpus"], **values["gpus"], **some}


def _services(names: list[str]) -> list[str]:
    return list(dict.fromkeys(name.removesuffix(".service") for name in names))


def _assemble(values: dict[str, Any], profile: dict[str, Any], sets: list[dict[str, Any]]) -> dict[str, Any]:
    served = values["served_model_name"] or profile["served_model_name"]
    instance = values["instance"] or profile["instance"]
    service = f"sglang-{instance}"
    checkpoint = profile["checkpoint"]
    paths = {name: values[name].rstrip("/") for name in ("root", "models", "state", "cache")}
    path = f"{paths['models']}/{profile['name']}"
    size = values["checkpoint_bytes"] or checkpoint["bytes"]
    # The revision's own folder, never the link: a unit that comes back has to find the weights that it served with.
    weights = f"{paths['models']}/.checkpoints/{checkpoint['repository'].replace('/', '--')}/{_revision(values)}"
    arguments = _arguments(values, profile, served, weights)
    return {
        "name": instance,
        "service": service,
        "profile": profile["name"],
        "model": profile["model"],
        "served_model_name": served,
        # An inventory lists every service on these GPUs; the one that is deployed is not in its own way.
        "replaces": [name for name in _services(values["replaces"]) if name != service],
        "adopt": service in _services(values["adopt"]),
        "users": {"service": values["user"], "build": values["build_user"]},
        "paths": paths,
        "listen": {"host": values["listen_host"], "port": values["port"]},
        "gpus": _gpus(values, profile),
        "disk": {"root_bytes": values["root_free_bytes"], "models_bytes": size},
        "checkpoint": {
            "repository": checkpoint["repository"],
            "revision": _revision(values),
            "endpoint": values["hub_endpoint"].rstrip("/"),
            "bytes": size,
            "path": path,
            "expects": _expects(checkpoint.get("expects"), values["checkpoint_expects"]),
            "driver": values["checkpoint_driver"],
            "port": values["checkpoint_port"],
            "transfers": values["checkpoint_transfers"],
            "bytes_per_second": values["checkpoint_bytes_per_second"],
            "serve_seconds": values["checkpoint_serve_seconds"],
            "keep": values["checkpoint_keep"],
            "verify": values["checkpoint_verify"],
            "io_class": values["io_class"],
        },
        "build": {
            "repository": values["repository"],
            "bundle": values["source_bundle"],
            "source_host": values["source_host"],
            "keep_releases": values["keep_releases"],
            "commit": values["commit"],
            "version": values["version"],
            "python": values["python"],
            "uv_version": values["uv_version"],
            "hub_version": values["hub_version"],
            "offline": values["offline"],
            "overrides": values["build_overrides"],
            "link_mode": values["link_mode"],
            "environment": {
                name: str(value) for name, value in values["build_environment"].items() if value is not None
            },
        },
        "patch_sets": [_with_world_sizes(one, values["multimem_world_sizes"]) for one in sets],
        "launch": {
            "arguments": arguments,
            "environment": _environment(values, profile),
        },
        "verify": {
            "prompts": profile["smoke"],
            # Reading the weights, and ten minutes for the kernels that are compiled at the first start.
            "timeout_seconds": values["ready_timeout"] or 600 + size // values["disk_bytes_per_second"],
            "max_tokens": profile.get("smoke_max_tokens", 256),
            # An engine without a parser gives tool calls as text.
            "tool_call": profile.get("tool_call") if "tool-call-parser" in arguments else None,
            "hang_seconds": values["hang_seconds"],
        },
        "benchmark": {
            "shapes": values["benchmark_shapes"] or (profile.get("benchmark") or {}).get("shapes", []),
            "runs": values["benchmark_runs"],
            "timeout_seconds": values["benchmark_timeout"],
        },
        "stop": {
            "timeout_seconds": values["stop_timeout"],
            "drain_seconds": values["drain_seconds"],
            "kill_leftovers": values["kill_leftovers"],
        },
    }


def _expects(profile: dict[str, Any] | None, operator: dict[str, Any]) -> dict[str, Any]:
    """Return what the checkpoint has to say of itself: the profile's, the operator's over it; null takes one out."""
    return {field: value for field, value in {**(profile or {}), **operator}.items() if value is not None}


def _arguments(values: dict[str, Any], profile: dict[str, Any], served: str, weights: str) -> dict[str, Any]:
    """Launch arguments as a map from flag to value: the profile's for this version, then the operator's over them."""
    arguments: dict[str, Any] = {
        "model-path": weights,
        "served-model-name": served,
        "host": values["listen_host"],
        "port": values["port"],
    }
    arguments.update(_by_version(profile["arguments"], values["version"], "flag"))
    arguments.update({flags.canonical(flag): value for flag, value in values["arguments"].items()})
    return {flag: value for flag, value in arguments.items() if value is not None and value is not False}


def _environment(values: dict[str, Any], profile: dict[str, Any]) -> dict[str, str]:
    environment: dict[str, Any] = _by_version(profile["environment"], values["version"], "name")
    environment.update(values["environment"])
    if values["visible_gpus"]:
        environment.update({**_VISIBLE, "CUDA_VISIBLE_DEVICES": ",".join(str(one) for one in values["visible_gpus"])})
    return {name: str(value) for name, value in environment.items() if value is not None}


def _by_version(rows: list[dict[str, Any]], version: str, key: str) -> dict[str, Any]:
    """Rows that hold for `version`, as a map; two rows for one name in one version are a fault of the profile."""
    chosen: dict[str, Any] = {}
    for row in rows:
        if not versions.matches(version, row.get("versions", "")):
            continue
        name = flags.canonical(row[key]) if key == "flag" else row[key]
        if name in chosen:
            raise DeploymentError([f"The profile gives '{name}' twice for SGLang {version}."])
        chosen[name] = row["value"]
    return chosen


def _with_world_sizes(patch_set: dict[str, Any], sizes: list[int]) -> dict[str, Any]:
    """Put the operator's multimem world sizes into the edit that takes them."""
    edits = []
    for edit in patch_set["edits"]:
        if edit.get("id") == "multimem_world_sizes" and sizes:
            edit = {
                **edit,
                "dict_entry": {**edit["dict_entry"], "value": repr([int(size) for size in sizes])},
            }
        edits.append(edit)
    return {"name": patch_set["name"], "edits": edits}
