# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that appear whole or not at all. Private to the collection."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

# What a power cut leaves of a file that was being written is found by these.
PREFIX, SUFFIX = ".llmfleet-", ".tmp"


def put(path: Path, content: bytes, mode: int = 0o644, durable: bool = True) -> None:
    """Write a file beside its place and put it there in one step; what stood there, a link too, is replaced.

    mode: whatever the umask; durable: on the disk before it gets its name. No link is followed, so that the folder
    may be one that others write to. Raises OSError.
    """
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise


def settle(folder: Path) -> None:
    """Have what a folder lists survive a power cut. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
