# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cut-over finds ready on the host: the unit, its API key, and the small files that the unit reads. Private."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import settle
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import STATE_VARIABLE

FOLDER_MODE = 0o755


@dataclass(frozen=True)
class Prepared:
    """A file and what it is to be; wanted: None where there is to be none; secret: a diff must not show it."""

    path: Path
    wanted: File | None
    secret: bool = False

    @property
    def changes(self) -> bool:
        """Tell whether it is not so yet, or somebody else's."""
        return File.read(self.path) != self.wanted or self.path.is_symlink() or not _own(self.path)

    def carry_out(self) -> None:
        """Make it so. Raises OSError."""
        if self.wanted is None:
            self.path.unlink()
            settle(self.path.parent)
            return
        if not _own(self.path):
            self.path.unlink()
        self.wanted.write(self.path)

    def diff(self) -> dict[str, str]:
        """Return what Ansible shows of it."""
        header, there = str(self.path), File.read(self.path)
        before, after = (one.content.decode(errors="replace") if one else "" for one in (there, self.wanted))
        return {"before_header": header, "after_header": header, "before": before, "after": after}


@dataclass(frozen=True)
class Folder:
    """A folder that all may look into, and only who runs this may write to."""

    path: Path

    @property
    def changes(self) -> bool:
        """Tell whether it is not there, or not so."""
        if not self.path.is_dir():
            return True
        return self.path.stat().st_mode & 0o7777 != FOLDER_MODE or not _own(self.path)

    def carry_out(self) -> None:
        """Make it so. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        os.chmod(self.path, FOLDER_MODE)
        os.chown(self.path, os.geteuid(), os.getegid())


def _own(path: Path) -> bool:
    """Tell whether it belongs to who runs this; also when it is not there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return True
    return (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())


def key_file(key: str) -> File | None:
    """Return the configuration file of SGLang that holds an API key, for its owner alone; None without a key."""
    return File((json.dumps({"api-key": key}) + "\n").encode(), 0o600) if key else None


def state_of(unit: str) -> str:
    """Return the wanted state that stands in a unit's text; empty where none does."""
    found = re.search(rf"^Environment={STATE_VARIABLE}=(\S+)$", unit, re.MULTILINE)
    return found[1] if found else ""


def refused_by_systemd(path: Path, name: str) -> str:
    """Return what systemd has against a unit file; empty when it takes it. Raises UnitError when it cannot be asked.

    It exits 0 on keys that it does not know, and says so; also of the units that ours is not to run beside.
    """
    try:
        done = subprocess.run(
            ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnitError(f"`systemd-analyze verify` gave no answer: {error}") from error
    unknown = re.search(rf"{re.escape(name)}[.]service:.*Unknown", done.stderr)
    if not done.returncode and not unknown:
        return ""
    return done.stderr.strip() or f"`systemd-analyze verify` exited with {done.returncode}"
