# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the paths that a deployment asks for the running engine took, by its log and /server_info. Private.

The paths are data: roles/sglang_benchmark/files/paths.yml says what each field means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags

KEYS = ("id", "patch_sets", "arguments", "environment", "least_tensor_parallel", "skipped", "active", "server_info")
LONGEST = 300
_OFF = ("", "0", "false", "none", "null")


@dataclass(frozen=True)
class Path:
    """A path of the engine, as the data has it."""

    id: str
    patch_sets: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    least_tensor_parallel: int
    skipped: tuple[re.Pattern[str], ...]
    active: tuple[re.Pattern[str], ...]
    server_info: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Taken:
    """Whether the engine took a path. asked: whether anything asks for it; active: None where nothing tells.

    by: what asks for such a path: patch_sets, arguments and environment, by name.
    """

    id: str
    asked: bool
    active: bool | None
    evidence: str
    source: str
    by: dict[str, tuple[str, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a benchmark's line holds it."""
        return asdict(self)


@dataclass(frozen=True)
class Seen:
    """What the engine was started with and what it says.

    log: lines since its start; info: /server_info, None where it could not be had.
    """

    patch_sets: Sequence[str]
    arguments: Mapping[str, Any]
    environment: Mapping[str, str]
    tensor_parallel: int
    log: Sequence[str]
    info: Mapping[str, Any] | None


def read(rows: Iterable[Mapping[str, Any]]) -> tuple[Path, ...]:
    """Read the data. Raises ValueError with the entry that is wrong."""
    found: list[Path] = []
    for row in rows:
        missing = [key for key in (*KEYS, "source") if key not in row]
        if missing:
            raise ValueError(f"the path {row.get('id')!r} has no {', '.join(missing)}")
        try:
            skipped, active = (tuple(re.compile(one) for one in row[key]) for key in ("skipped", "active"))
        except re.error as error:
            raise ValueError(f"the path {row['id']!r} has a pattern that cannot be read: {error}") from error
        found.append(
            Path(
                id=str(row["id"]),
                patch_sets=tuple(row["patch_sets"]),
                arguments=tuple(row["arguments"]),
                environment=tuple(row["environment"]),
                least_tensor_parallel=int(row["least_tensor_parallel"]),
                skipped=skipped,
                active=active,
                server_info=tuple(row["server_info"]),
                source=str(row["source"]),
            )
        )
    return tuple(found)


def concern(path: Path, change: Mapping[str, Any]) -> bool:
    """Tell whether a change (patch_sets, arguments, environment) asks for a path, in part at least.

    What it takes out or switches off asks for nothing: that the path does not run then is what was wanted.
    """
    arguments = {flags.canonical(str(flag)) for flag, value in (change.get("arguments") or {}).items() if is_on(value)}
    environment = {name for name, value in (change.get("environment") or {}).items() if is_on(value)}
    return bool(
        set(path.patch_sets) & set(change.get("patch_sets") or ())
        or set(path.arguments) & arguments
        or set(path.environment) & environment
    )


def is_on(value: Any) -> bool:
    """Tell whether a value of an argument or a variable switches something on."""
    return str(value).strip().lower() not in _OFF


def taken(paths: Iterable[Path], seen: Seen) -> list[Taken]:
    """Say of each path that something asks for whether the engine took it."""
    return [_taken(path, seen) for path in paths if _asked(path, seen) or set(path.patch_sets) & set(seen.patch_sets)]


def _asked(path: Path, seen: Seen) -> bool:
    return any(is_on(seen.arguments.get(flag)) for flag in path.arguments) or any(
        is_on(seen.environment.get(name)) for name in path.environment
    )


def _taken(path: Path, seen: Seen) -> Taken:
    asked = _asked(path, seen)

    def conclude(active: bool | None, evidence: str) -> Taken:
        by = {"patch_sets": path.patch_sets, "arguments": path.arguments, "environment": path.environment}
        return Taken(path.id, asked, active, evidence[:LONGEST], path.source, by)

    if not asked:
        wanted = " or ".join([*(f"--{flag}" for flag in path.arguments), *path.environment])
        return conclude(False, f"the patch alone does nothing: it takes {wanted}")
    skipped = _line(path.skipped, seen.log)
    if skipped:
        return conclude(False, skipped)
    if seen.tensor_parallel < path.least_tensor_parallel:
        return conclude(
            False,
            f"tensor parallel size {seen.tensor_parallel}: the engine comes to it from {path.least_tensor_parallel} on",
        )
    if path.server_info and seen.info is not None:
        told = {key: seen.info[key] for key in path.server_info if key in seen.info}
        if told and not any(is_on(value) for value in told.values()):
            return conclude(False, "/server_info: " + ", ".join(f"{key} is {value}" for key, value in told.items()))
    active = _line(path.active, seen.log)
    if active:
        return conclude(True, active)
    return conclude(None, "neither the log since the start nor /server_info tells")


def _line(patterns: Iterable[re.Pattern[str]], log: Sequence[str]) -> str:
    """Return the first line of the log that any pattern is found in; "" if there is none."""
    for line in log:
        if any(pattern.search(line) for pattern in patterns):
            return line.strip()
    return ""
