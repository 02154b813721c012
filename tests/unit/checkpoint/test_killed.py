# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fetch that is killed or stalls in the middle."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import ensure as logic
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import (
    CheckpointError,
)

from tests.unit.checkpoint.case import Case
from tests.unit.checkpoint.hub_server import HubServer, wait_for

SHARD = "model-00002-of-00002.safetensors"


def is_running(pid: str) -> bool:
    """A process that waits for its parent to take note runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# killed in the middle


def test_a_killed_run_leaves_no_downloader_and_the_next_goes_on(case: Case, hub: HubServer, tmp_path: Path) -> None:
    hub.stalls.add(SHARD)
    program = (
        "import sys; from pathlib import Path; from tests.unit.checkpoint.case import Case; "
        "from types import SimpleNamespace as N; "
        "Case(Path(sys.argv[1]), N(url=sys.argv[2]), Path(sys.argv[3])).ensure()"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root / '.collections'}:{root}"}
    run = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), hub.url, str(case.hf)], env=environment)
    staging = Path(case.place.staging)
    remembered = staging / "files" / ".cache" / "huggingface" / "download"
    others = [remembered / f"{name}.metadata" for name in hub.files if name != SHARD]
    wait_for(lambda: all(path.exists() for path in others) and list(remembered.glob("*.incomplete")))
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    with (
        pytest.raises(CheckpointError, match=f"Another run \\(process {run.pid} on this host\\)"),
        case.place.locked(0),
    ):
        pass
    run.send_signal(signal.SIGKILL)
    run.wait(10)
    assert children
    wait_for(lambda: not any(is_running(child) for child in children))
    hub.stalls.clear()
    hub.requests.clear()
    outcome = case.ensure()
    assert case.served() == hub.files
    assert hub.asked("/resolve/") == hub.asked(SHARD) > 0
    assert outcome.bytes_downloaded == len(hub.files[SHARD])
    assert not staging.exists()


def test_a_stall_is_ended_and_tried_again_without_xet(case: Case, hub: HubServer, tmp_path: Path) -> None:
    log = tmp_path / "environments"
    wrapper = tmp_path / "hf"
    wrapper.write_text(f'#!/bin/sh\necho "xet off: ${{HF_HUB_DISABLE_XET:-no}}" >> {log}\nexec {case.hf} "$@"\n')
    wrapper.chmod(0o755)
    hub.stalls.add(SHARD)
    request = case.request(stall=5.0)
    request = dataclasses.replace(request, hf=dataclasses.replace(request.hf, command=str(wrapper)))
    wait = hub.release.wait

    def release(timeout: float | None = None) -> bool:
        hub.stalls.clear()
        return wait(timeout)

    hub.release.wait = release  # type: ignore[method-assign]
    assert logic.ensure(request).changed
    assert case.served() == hub.files
    first, *further = log.read_text().splitlines()
    # a busy machine may take longer than the stall to start hf, and then it is started once more
    assert first == "xet off: no"
    assert set(further) == {"xet off: 1"}
