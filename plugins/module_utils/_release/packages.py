# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pip and uv: where their packages come from, and how they are run. Private to the collection.

Where packages come from may hold a password, so it is handed over in the environment, never as an argument.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact


class PackageError(RuntimeError):
    """pip or uv failed; the message says what was run and what it said, without passwords."""


@dataclass(frozen=True)
class PackageSource:
    """Where packages come from. `offline` means that `index_url` is the only source there is."""

    index_url: str = ""
    offline: bool = False
    cache: str = ""
    link_mode: str = "hardlink"
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the environment variables for pip and uv."""
        values = {
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_LINK_MODE": self.link_mode,
        }
        if self.cache:
            values["UV_CACHE_DIR"] = self.cache
        if self.index_url:
            values["PIP_INDEX_URL"] = values["UV_DEFAULT_INDEX"] = self.index_url
        if self.index_url.startswith("http://"):
            values["PIP_TRUSTED_HOST"] = urlsplit(self.index_url).netloc.rpartition("@")[2]
        if self.offline or self.index_url:
            values["PIP_CONFIG_FILE"] = os.devnull  # it may name further sources
        if self.offline and not self.index_url:
            values["UV_OFFLINE"] = values["PIP_NO_INDEX"] = "1"
        return {**values, **{name: str(value) for name, value in self.environment.items()}}

    def redact(self, text: str) -> str:
        """Return `text` without the passwords that the source holds."""
        return redact(text, [self.index_url, *(str(value) for value in self.environment.values())])

    def complete(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment for pip and uv: what is inherited, without a say in where packages come from."""
        given = self.offline or self.index_url
        kept = {name: value for name, value in inherited.items() if not (given and name.startswith(("PIP_", "UV_")))}
        return {**kept, **self.variables()}


def run(command: Sequence[str], source: PackageSource, *, timeout: float = 7200) -> str:
    """Run pip or uv and return what it printed. Raises PackageError."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd="/",
            env=source.complete(os.environ),
        )
    except FileNotFoundError as error:
        raise PackageError(f"{command[0]} is not there") from error
    except subprocess.TimeoutExpired as error:
        raise PackageError(f"`{' '.join(command)}` took longer than {timeout:.0f} s") from error
    if done.returncode:
        said = source.redact((done.stderr or done.stdout).strip()[-2000:])
        raise PackageError(f"`{' '.join(command)}` failed:\n{said}")
    return done.stdout
