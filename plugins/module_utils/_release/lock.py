# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dependency lock: made once by uv for a commit, kept on the host, the same for every host. Private."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import digest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import build_requirements
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageSource, run

# A lock made another way is another lock.
_FORMAT = 2


@dataclass(frozen=True)
class LockRequest:
    """What a lock is made from. Where the packages come from is no part of it."""

    pyproject: str
    overrides: str
    python: str
    uv: str
    uv_version: str
    extras: tuple[str, ...] = ()
    prerelease: str = ""

    def key(self, interpreter: str) -> str:
        """Return the name of the lock that this request leads to, hexadecimal."""
        return digest(
            [_FORMAT, self.pyproject, self.overrides, interpreter, self.uv_version, self.extras, self.prerelease]
        )[:32]


def compile_lock(request: LockRequest, source: PackageSource, *, timeout: float = 1800) -> str:
    """Resolve the requirements and return the lock's text, with digests. Raises PackageError, after `timeout` s too."""
    with tempfile.TemporaryDirectory(prefix="llmfleet-lock-") as folder:
        project, overrides, build = (Path(folder, name) for name in ("pyproject.toml", "overrides.txt", "build.in"))
        project.write_text(request.pyproject, encoding="utf-8")
        overrides.write_text(request.overrides, encoding="utf-8")
        # SGLang is installed without build isolation, so what builds it is locked too.
        build.write_text("".join(f"{one}\n" for one in build_requirements(request.pyproject)), encoding="utf-8")
        command = [request.uv, "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
        command += ["--no-emit-index-url", "--python", request.python, "--overrides", str(overrides)]
        command += [word for extra in request.extras for word in ("--extra", extra)]
        command += ["--prerelease", request.prerelease] if request.prerelease else []
        command += [str(project), str(build)]
        return run(command, source, timeout=timeout)
