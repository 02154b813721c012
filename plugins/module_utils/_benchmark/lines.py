# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of JSON lines in the host record: read whatever can be read, append whole lines. Private to the collection."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import kept

SCHEMA = 1


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the lines of a file, the oldest first, and a sentence for each that cannot be read.

    A file that is not there has no lines. Raises OSError.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return [], []
    found: list[dict[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            problems.append(f"{path}:{number} cannot be read, and is left out: {error}")
            continue
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            found.append(value)
        else:
            problems.append(f"{path}:{number} was written by another version, and is left out")
    return found, problems


def append(path: Path, content: Mapping[str, Any]) -> None:
    """Add one line, whole and on the disk when this returns; what a power cut tore stays alone. Raises OSError."""
    line = json.dumps({"schema": SCHEMA, **content}, sort_keys=True) + "\n"
    with kept.guarded(path), open(path, "ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o644)  # whatever the umask
