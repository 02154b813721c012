# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of the real profile, for CUDA: resolved from metadata alone, without the eleven gigabytes behind it."""

from __future__ import annotations

import os
import re
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.lock import LockRequest, compile_lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import lock_problems, needs_of
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageError, PackageSource

from fleet import config, depot, source
from fleet.wheels import metadata_of

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uv that a deployment installs."""
    pin = next(pin for pin in depot.pins() if pin.name == "uv")
    wheel = depot.download(config.cache_folder(), [pin])[pin]
    program = tmp_path_factory.mktemp("uv") / "uv"
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/scripts/uv"))
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    return program


@pytest.mark.registry
@pytest.mark.skipif(
    "ANSIBLE_CONTROLLER_MIN_PYTHON_VERSION" in os.environ,
    reason="ansible-test keeps the environment's index and certificates from its tests; `make unit` runs this one",
)
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="the lock is for linux x86-64")
def test_the_real_profiles_packages_resolve_and_agree(uv: Path, tmp_path: Path) -> None:
    wheel = depot.download(config.cache_folder(), [source.WHEEL])[source.WHEEL]
    needs = needs_of(yaml.safe_load((ROOT / "roles/sglang_build/files/builds.yml").read_text()), "0.5.23")
    request = LockRequest(
        pyproject=source.pyproject(metadata_of(wheel).decode(), ""),
        overrides="",
        python=sys.executable,
        uv=str(uv),
        uv_version="0.13.9",
        extras=needs.extras,
        prerelease=needs.prerelease,
    )
    began = time.monotonic()
    try:
        lock = compile_lock(request, PackageSource(cache=str(tmp_path / "cache")), timeout=300)
    except PackageError as error:
        pytest.fail(f"this test asks the package index for metadata (-m 'not registry' leaves it out): {error}")
    print(f"resolved in {time.monotonic() - began:.1f} s")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    assert (pinned["torch"], pinned["sglang-kernel"], pinned["flashinfer-python"]) == ("2.14.1", "0.4.10", "0.7.2")
    assert "setuptools" in pinned  # it builds SGLang, without build isolation
    assert len(pinned) > 150
    assert lock_problems(lock, needs) == []
    assert lock.count("--hash=sha256:") >= len(pinned)
