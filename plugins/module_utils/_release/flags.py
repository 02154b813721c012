# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of a build: what the version needs, what the operator set, and what the cards ask for. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import versions
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import host
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs

ARCHITECTURES = ("TORCH_CUDA_ARCH_LIST", "FLASHINFER_CUDA_ARCH_LIST")


def build_flags(
    needs: Needs,
    given: Mapping[str, Any],
    *,
    version: str,
    commit: str,
    describe: str,
    capabilities: Sequence[str],
    jobs: int,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the flags that belong to a release's identifier, and the environment for the compilers that it runs.

    given: the operator's own, which win; describe: what Git says of the commit, "" where no tag leads to it;
    capabilities: of the cards, none for a build that no card serves; jobs: compilers that may run at once.
    """
    flags = {**needs.environment, **{name: str(value) for name, value in given.items()}}
    if not describe:
        release = ".".join(str(number) for number in versions.parse(version)[:3])
        flags.setdefault("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SGLANG", f"{release}+g{commit[:9]}")
    archs = host.arch_list(capabilities)
    for name in ARCHITECTURES if archs else ():
        flags.setdefault(name, archs)
    compilers = {name: flags[name] for name in ARCHITECTURES if name in flags}
    # How many at once changes nothing of what is built.
    compilers["MAX_JOBS"] = flags.pop("MAX_JOBS", "") or str(jobs)
    return flags, compilers
