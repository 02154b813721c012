# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small JSON file on a host that several runs may decide over at once. Private to the collection."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Let nobody else decide over the file between our reading and our writing. Raises OSError."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o755)  # whatever the umask: the service user reads its files in there
    with open(path.with_suffix(".guard"), "a") as guard:  # "w" would change its time
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def write(path: Path, value: Mapping[str, Any]) -> None:
    """Write the file atomically, and on the disk when it is there. Raises OSError."""
    put(path, (json.dumps(value, indent=2) + "\n").encode())
