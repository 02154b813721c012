# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable that an operator may set, with its type and default: the one place. Private to the collection."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide
from ansible_collections.llmfleet.sglang.plugins.module_utils._verdict.compare import ADVISED_RUNS

PIN = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USER = re.compile(r"(?!root$)[A-Za-z0-9][A-Za-z0-9_.-]*")
# Folders stand unquoted in units and in command lines, so nothing is allowed in them that needs quoting there.
_FOLDER = re.compile(r"(/(?!\.\.?(/|$))[A-Za-z0-9_.+-]+)+/?")
_DRIVER = re.compile(rf"hub|rsync|shared|{_FOLDER.pattern}")
_WEB = re.compile(r"https?://[^\s/]+\S*")
_GIT = re.compile(r"(https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+|/\S+")
_SECONDS = 7 * 24 * 3600

_KINDS = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a map"}


@dataclass(frozen=True)
class Option:
    """One `sglang_*` variable: its Python type, its default, and how to get a value that has none.

    pattern: what a text has to match, whole; meaning: the same for a reader; elements: the type of a list's items;
    least, most: the bounds of a number.
    """

    kind: type
    default: Any = None
    how: str = ""
    required: bool = False
    pattern: re.Pattern[str] | None = None
    meaning: str = ""
    elements: type | None = None
    least: int = 0
    most: int = 10**15


def _required(kind: type, how: str, pattern: re.Pattern[str] | None = None) -> Option:
    return Option(kind=kind, how=how, required=True, pattern=pattern)


def _folder(default: str) -> Option:
    meaning = "an absolute path of letters, digits and . _ + -"
    return Option(str, default, pattern=_FOLDER, meaning=meaning)


# From a checkout the name means the checkout, by its ansible.cfg.
PIN_COMMAND = "ansible-playbook llmfleet.sglang.pin -i INVENTORY"
_PIN_HOW = f"run `{PIN_COMMAND}`, which looks it up once and writes it to the inventory"

OPTIONS: dict[str, Option] = {
    # what is deployed
    "profile": _required(str, "name one with -e sglang_profile=NAME", _NAME),
    "commit": _required(str, _PIN_HOW, PIN),
    "version": _required(str, _PIN_HOW),
    # One revision for whatever profile goes before that of the profile, which pin.yml writes.
    "checkpoint_revision": Option(str, "", _PIN_HOW, pattern=PIN),
    "checkpoint_revisions": Option(dict, {}),
    # Empty: the profile's. Another name where a host has two instances.
    "instance": Option(str, "", pattern=_NAME, meaning="a name"),
    "patch_sets": Option(list, ["sm120"], elements=str),
    "multimem_world_sizes": Option(list, [], elements=int, least=2, most=1024),
    "replaces": Option(list, [], elements=str),
    "adopt": Option(list, [], elements=str),
    # where it serves
    "listen_host": _required(
        str, "set the address that clients reach this host by (0.0.0.0 only if you mean every interface)"
    ),
    "port": Option(int, 30000, least=1, most=65535),
    "served_model_name": Option(str, ""),
    "arguments": Option(dict, {}),
    "environment": Option(dict, {}),
    # where it comes from
    "repository": Option(
        str, "https://github.com/sgl-project/sglang.git", pattern=_GIT, meaning="a URL that Git can clone"
    ),
    "source_bundle": Option(str, ""),
    "source_host": Option(str, "", pattern=_NAME, meaning="the name of a host of the inventory"),
    "hub_endpoint": Option(str, "https://huggingface.co", pattern=_WEB, meaning="an http or https URL"),
    "offline": Option(bool, False),
    "build_overrides": Option(str, ""),
    "build_environment": Option(dict, {}),
    "python": Option(str, "/usr/bin/python3", pattern=_FOLDER, meaning="the absolute path of an interpreter"),
    "link_mode": Option(
        str, "hardlink", pattern=re.compile("hardlink|symlink|copy|clone"), meaning="hardlink, symlink, copy or clone"
    ),
    "uv_version": Option(str, "0.13.9", pattern=_NAME, meaning="a version"),
    "hub_version": Option(str, "2.4.0", pattern=_NAME, meaning="a version"),
    # where it lies on the host
    "root": _folder("/opt/sglang"),
    "models": _folder("/models"),
    "state": _folder("/var/lib/llmfleet"),
    "cache": _folder("/var/cache/llmfleet"),
    "user": Option(str, "sglang", pattern=_USER, meaning="the name of a user other than root"),
    "build_user": Option(str, "sglang-build", pattern=_USER, meaning="the name of a user other than root"),
    # how much and how long
    "gpus": Option(dict, {}),
    # By nvidia-smi's index; empty: all of the host.
    "visible_gpus": Option(list, [], elements=int, least=0, most=1023),
    "keep_releases": Option(int, 3, least=1, most=1000),
    "root_free_bytes": Option(int, 30_000_000_000),  # a venv of 11 GB, its cache, a worktree, and room to install
    "checkpoint_bytes": Option(int, 0),
    # what it has to be, and how it goes from host to host
    "checkpoint_expects": Option(dict, {}),
    "checkpoint_driver": Option(
        str, "rsync", pattern=_DRIVER, meaning="rsync, hub, shared, or the absolute path of a file of tasks"
    ),
    "checkpoint_port": Option(int, 8730, least=1, most=65535),
    "checkpoint_transfers": Option(int, 1, least=1, most=64),
    "checkpoint_bytes_per_second": Option(int, 0),
    "checkpoint_serve_seconds": Option(int, 4 * 3600, least=60, most=_SECONDS),
    "checkpoint_keep": Option(int, 0, most=1000),
    "checkpoint_verify": Option(str, "stamp", pattern=re.compile("stamp|full"), meaning="stamp or full"),
    "io_class": Option(
        str, "best-effort", pattern=re.compile("best-effort|idle|none"), meaning="best-effort, idle or none"
    ),
    # Unset: from the checkpoint's size and the disk's speed.
    "ready_timeout": Option(int, None, least=1, most=_SECONDS),
    "disk_bytes_per_second": Option(int, 200_000_000, least=1),  # a slow network disk; local NVMe reads ten times that
    "stop_timeout": Option(int, 300, least=1, most=_SECONDS),
    "drain_seconds": Option(int, 30, least=0, most=_SECONDS),
    "kill_leftovers": Option(bool, False),
    "hang_seconds": Option(int, 300, least=0, most=_SECONDS),
    # how it is measured; no shapes: the profile's. The first run is cold, and a verdict takes three more.
    "benchmark_shapes": Option(list, [], elements=dict),
    "benchmark_runs": Option(int, 1 + ADVISED_RUNS, least=4, most=100),
    "benchmark_timeout": Option(int, 3600, least=10, most=_SECONDS),
}


def read(variables: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Take the options out of `variables` (names with the prefix `sglang_`), typed and with defaults.

    Returns the values by short name, and every problem found as one sentence each.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, option in OPTIONS.items():
        given = variables.get(f"sglang_{name}")
        values[name] = copy.copy(option.default)
        if given in (None, ""):
            if option.required:
                problems.append(f"sglang_{name} is not set: {option.how}.")
            continue
        value = _meant(option.kind, given)
        problem = _problem(name, option, value)
        if problem:
            problems.append(problem)
        else:
            values[name] = [_meant(option.elements, one) for one in value] if option.elements else value
    return values, problems


def _meant(kind: type, given: Any) -> Any:
    """Take what Ansible hands over as text (`-e port=1`), or YAML as a number (`0.5`), as the type that was meant."""
    if kind is int and isinstance(given, str) and re.fullmatch(r"\s*-?[0-9]+\s*", given):
        return int(given)
    if kind is bool and isinstance(given, str) and given.lower() in ("true", "yes", "false", "no"):
        return given.lower() in ("true", "yes")
    if kind is str and isinstance(given, (int, float)) and not isinstance(given, bool):
        return str(given)
    return given


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _problem(name: str, option: Option, value: Any) -> str:
    """Say in a sentence what is wrong with the value of an option; "" when nothing is."""
    if not _is(option.kind, value):
        # A text in place of a map or a list may be a command line with a key in it.
        wrong = hide.kind(value) if option.kind in (dict, list) else hide.shown(value)
        return f"sglang_{name} has to be {_KINDS[option.kind]}, not {wrong}."
    for one in value if option.elements else ():
        item = Option(option.elements or str, least=option.least, most=option.most)
        problem = _problem(name, item, _meant(item.kind, one))
        if problem:
            return problem.replace(" has to be ", " has to be a list of which each is ", 1)
    if option.kind is int and not option.least <= value <= option.most:
        return f"sglang_{name} has to be {_KINDS[int]} from {option.least} to {option.most}, not {value!r}."
    if option.pattern in (_GIT, _WEB) and _has_password(value):
        return (
            f"sglang_{name} holds a password or token, which would be logged: take it out of the URL. Git takes one "
            "from sglang_download_environment (GIT_CONFIG_COUNT …), the Hub from sglang_hub_token."
        )
    if option.pattern and not option.pattern.fullmatch(value):
        # What stands before an @ may be a password, in whatever is no URL too.
        wrong = "holds an @ and" if "@" in value else f"is {hide.shown(value)}, which"
        return f"sglang_{name} {wrong} is not allowed: {option.how or 'it has to be ' + option.meaning}."
    return ""


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "@" in url
    # ssh://git@host is how Git is asked over SSH; a name alone before @ of an http URL is a token.
    return parts.password is not None or (parts.username is not None and parts.scheme in ("http", "https"))
