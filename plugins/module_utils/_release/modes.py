# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may read and write what a build makes. Private to the collection."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def let_all_read() -> None:
    """From now on this process, and all that it starts, makes what everybody may read and the owner alone may write.

    A hardened host's own mask (027, 077) would make a release that the user who serves cannot read.
    """
    os.umask(0o022)


def close_locks(*folders: Path) -> None:
    """Take the right to write uv's lock files from everybody but their owner: uv makes them 0666. Raises OSError.

    What packages were unpacked to (`archive-v0`) holds none and is not looked through.
    """
    for folder in folders:
        for parent, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if name not in ("archive-v0", "lib")]
            for name in names:
                if name.endswith(".lock"):
                    with contextlib.suppress(FileNotFoundError):
                        _close(Path(parent, name))


def _close(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode) and mode & 0o022:
        path.chmod(stat.S_IMODE(mode) & ~0o022)
