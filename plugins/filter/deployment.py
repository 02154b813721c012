# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that turn an operator's variables into a deployment; the logic is in module_utils/_deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import credentials
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import names as known_names
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.options import OPTIONS
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment.resolve import (
    DeploymentError,
    resolve,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import choices
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _hooks, _yaml
from jinja2 import Undefined

_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


def _content(path: Path) -> dict[str, Any]:
    try:
        content = _yaml.read(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DeploymentError([f"{path} cannot be read: {error}."]) from error
    if not isinstance(content, dict) or not isinstance(content.get("name"), str):
        raise DeploymentError([f"{path} is no map with a 'name'."])
    return content


def _named(folders: list[Path]) -> dict[str, dict[str, Any]]:
    """Read every YAML file of `folders` as {its own `name`: its content}; a later folder wins."""
    for folder in folders:
        if not folder.is_dir():
            raise DeploymentError([f"There is no folder {folder} to read model profiles from."])
    contents = [_content(path) for folder in folders for path in sorted(folder.glob("*.yml"))]
    return {content["name"]: content for content in contents}


def _profiles(own: list[str] | None) -> dict[str, dict[str, Any]]:
    return _named([_PLAYBOOKS / "profiles", *(Path(folder).expanduser() for folder in own or [])])


def _resolve(variables: Mapping[str, Any], profile: str, profiles: list[str] | None) -> dict[str, Any]:
    # Only what is an option: no secret is looked at, and no other variable's template can fail here.
    options = (*(f"sglang_{name}" for name in OPTIONS), *choices.NAMES)
    names = [name for name in options if name in variables]
    chosen = {name: variables[name] for name in names}
    if profile:
        chosen["sglang_profile"] = profile
    undefined = {name: value for name, value in chosen.items() if isinstance(value, Undefined)}
    for name in undefined:
        del chosen[name]
    problems = [f"{name} cannot be worked out: {_why_undefined(value)}." for name, value in undefined.items()]
    problems += known_names.slips(variables) + choices.problems(chosen) + _hooks.problems(chosen)
    try:
        resolved = resolve(chosen, _profiles(profiles), _named([_PLAYBOOKS / "patch_sets"]))
    except DeploymentError as error:
        of_these = tuple(f"{name} is not set: " for name in undefined)
        problems += [problem for problem in error.problems if not problem.startswith(of_these)]
        raise DeploymentError(problems) from error
    if problems:
        raise DeploymentError(problems)
    return resolved


def _why_undefined(value: Undefined) -> str:
    """Say which variable a template lacks."""
    return str(getattr(value, "_undefined_message", "") or "its template names an undefined variable")


def deployment(variables: Mapping[str, Any], profile: str = "", profiles: list[str] | None = None) -> dict[str, Any]:
    """Return the deployment of one host, or fail with every problem at once."""
    try:
        return _resolve(variables, profile, profiles)
    except DeploymentError as error:
        raise AnsibleFilterError(str(error)) from error


def deployment_problems(
    variables: Mapping[str, Any], profile: str = "", profiles: list[str] | None = None
) -> list[str]:
    """Return what keeps the deployment of one host from being resolved, a sentence each; empty when nothing does."""
    try:
        _resolve(variables, profile, profiles)
    except DeploymentError as error:
        return error.problems
    return []


def credential_problems(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the keys, tokens and passwords of these hosts, a sentence each, without a value."""
    found: list[str] = []
    known: dict[str, dict[str, Any]] = {}
    for host in hosts:
        variables = hostvars[host]
        given = {name: variables[name] for name in credentials.NAMES if name in variables}
        undefined = {name: value for name, value in given.items() if isinstance(value, Undefined)}
        found += [f"{host}: {name} cannot be worked out: {_why_undefined(one)}." for name, one in undefined.items()]
        known[host] = {name: value for name, value in given.items() if name not in undefined}
    return found + credentials.of_hosts(known)


def fleet_problems(
    hosts: Sequence[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    profile: str = "",
    profiles: list[str] | None = None,
) -> list[str]:
    """Return what keeps the deployments of these hosts from being resolved; what not all have, with who has it."""
    # Where a play sets the profile, no host's own variables do; where hosts do, each may have another.
    theirs = bool(hosts) and hostvars[hosts[0]].get("sglang_profile") == profile
    return credentials.by_hosts(
        {host: deployment_problems(hostvars[host], "" if theirs else profile, profiles) for host in hosts}
    )


def profile_repository(name: str, profiles: list[str] | None = None) -> str:
    """Return the Hub repository of a model profile."""
    try:
        known = _profiles(profiles)
    except DeploymentError as error:
        raise AnsibleFilterError(str(error)) from error
    if name not in known:
        raise AnsibleFilterError(f"There is no model profile '{name}'. Known: {', '.join(sorted(known))}.")
    return str(known[name]["checkpoint"]["repository"])


class FilterModule:
    """Filters of llmfleet.sglang about deployments."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "credential_problems": credential_problems,
            "deployment": deployment,
            "deployment_problems": deployment_problems,
            "fleet_problems": fleet_problems,
            "profile_repository": profile_repository,
        }
