# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model profile has to hold. Private to the collection."""

from __future__ import annotations

from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import shapes
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.config import EXPECTED
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags, versions

_TEXTS = ("name", "model", "instance", "served_model_name")
_GPUS: dict[str, type] = {"count": int, "compute_capability": str, "memory_mib": int}
_ROWS = {"arguments": "flag", "environment": "name"}


def problems(profile: dict[str, Any]) -> list[str]:
    """Return what is wrong with the content of a profile's file, a sentence each; an operator may have written it."""
    where = f"The model profile '{profile.get('name')}'"
    found = [f"{where} has no text '{key}'." for key in _TEXTS if not _text(profile.get(key))]
    checkpoint = profile.get("checkpoint")
    if not isinstance(checkpoint, dict) or not _text(checkpoint.get("repository")):
        found.append(f"{where} has no 'checkpoint' with a 'repository' of the Hub.")
    elif not isinstance(checkpoint.get("bytes", 0), int):
        found.append(f"{where} has 'bytes' in 'checkpoint' that are no whole number.")
    if isinstance(checkpoint, dict) and checkpoint.get("expects") is not None:
        found += expects_problems(f"{where}, checkpoint.expects,", checkpoint["expects"])
    found += _range_problems(where, profile.get("versions"))
    gpus = profile.get("gpus")
    if isinstance(gpus, dict) and set(gpus) >= set(_GPUS):
        found += gpu_problems(f"{where}, gpus,", gpus)
    else:
        found.append(f"{where} has no 'gpus' with what the hosts must have: {', '.join(_GPUS)}.")
    for section, key in _ROWS.items():
        rows = profile.get(section)
        if isinstance(rows, list):
            found += [text for row in rows for text in _row_problems(f"{where}, {section},", row, key)]
        else:
            found.append(f"{where} has no list '{section}'.")
    smoke = profile.get("smoke")
    if not isinstance(smoke, list) or not smoke or not all(map(_prompt, smoke)):
        found.append(f"{where} has no 'smoke' prompts, each with 'messages' and 'expect'.")
    benchmark = profile.get("benchmark", {})
    if isinstance(benchmark, dict) and set(benchmark) <= {"shapes"}:
        found += shapes.problems(f"{where}, benchmark.shapes,", benchmark.get("shapes", []))
    else:
        found.append(f"{where} has a 'benchmark' that is no map with a list 'shapes'.")
    return found


def expects_problems(where: str, expects: Any) -> list[str]:
    """Return what is wrong with what `where` says that a checkpoint has to be, a sentence each."""
    if not isinstance(expects, dict):
        return [f"{where} has to be a map of {', '.join(EXPECTED)}."]
    unknown = [key for key in expects if key not in EXPECTED]
    found = [f"{where} sets '{key}', and only {', '.join(EXPECTED)} are known." for key in unknown]
    if expects.get("sizes") is not None and not isinstance(expects["sizes"], dict):
        found.append(f"{where} sets 'sizes' to {expects['sizes']!r}, which has to be a map of names to numbers.")
    return found


def gpu_problems(where: str, gpus: dict[Any, Any]) -> list[str]:
    """Return what is wrong with what `where` says of the GPUs, a sentence each."""
    found = [f"{where} sets '{key}', and only {', '.join(_GPUS)} are known." for key in gpus if key not in _GPUS]
    for key, kind in _GPUS.items():
        value = gpus.get(key, kind())
        if not isinstance(value, kind) or isinstance(value, bool):
            meant = "text, such as '12.0'" if kind is str else "a whole number"
            found.append(f"{where} sets '{key}' to {value!r}, which has to be {meant}.")
    return found


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _prompt(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list) and _text(value.get("expect"))


def misfits(profile: dict[str, Any], version: str, size: int) -> list[str]:
    """Return why a sound profile does not do for a deployment, a sentence each.

    version: the SGLang version, "" where none is known; size: the checkpoint's bytes as the operator says, 0 for none.
    """
    where = f"The model profile '{profile['name']}'"
    found = []
    wanted = str(profile.get("versions") or "")
    if version and not versions.matches(version, wanted):
        found.append(f"{where} is made for SGLang {wanted}, and sglang_version is {version}.")
    if not size and not profile["checkpoint"].get("bytes"):
        found.append(
            f"{where} has no 'bytes' in 'checkpoint', for no source says how much disk it takes: "
            "set sglang_checkpoint_bytes to the sum of the repository's files on the Hub."
        )
    return found


def _range_problems(where: str, spec: Any) -> list[str]:
    try:
        versions.check(str(spec or ""))
    except ValueError as error:
        return [f"{where} has a range 'versions' that cannot be read: {error}."]
    return []


def _row_problems(where: str, row: Any, key: str) -> list[str]:
    if not isinstance(row, dict) or not _text(row.get(key)) or "value" not in row:
        held = f"one with {', '.join(str(name) for name in row) or 'nothing'}" if isinstance(row, dict) else "no map"
        return [f"{where} has a row without '{key}' or 'value': {held}."]
    try:
        versions.check(str(row.get("versions", "")))
    except ValueError as error:
        return [f"{where} has a range for '{row[key]}' that cannot be read: {error}."]
    problems = flags.argument_problems if key == "flag" else flags.environment_problems
    return problems(where, {row[key]: row["value"]})
