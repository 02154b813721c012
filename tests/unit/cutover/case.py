# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that touch units as the roles call them, on the host of host.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.modules import (
    host_snapshot,
    rollback_aim,
    service_remove,
    service_switch,
)

from tests.unit.cutover.host import Host, ours

RELEASE = "0.5.23-bbbbbbbbb-2222222222222222"
RECORD = {
    "instance": "qwen",
    "service": "sglang-qwen",
    "release": RELEASE,
    "served_model_name": "qwen-model",
    "schema": 1,
}
SERVICES = ["sglang-kimi", "sglang-qwen"]


class Case:
    """A host, and the modules as the roles call them."""

    def __init__(self, host: Host, capsys: pytest.CaptureFixture[str]) -> None:
        self.host, self.capsys = host, capsys
        self.folder = host.state / "qwen"
        self.folder.mkdir(parents=True)
        host.build(RELEASE)

    def run(self, module: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Run a module."""
        with patch_module_args(given), pytest.raises(SystemExit):
            module.main()
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer

    def snapshot(self, state: str, check: bool = False, **more: Any) -> dict[str, Any]:
        """Run host_snapshot."""
        given = {"path": str(self.folder / "snapshot.json"), "instance": "qwen", "state": state, **more}
        return self.run(host_snapshot, {**given, "_ansible_check_mode": check})

    def switch(
        self, prepared: Path, credential: Path | None = None, check: bool = False, keyless: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Run service_switch. keyless: whether the unit asks for no key."""
        given = {"name": "sglang-qwen", "src": str(prepared), **more}
        if credential:
            source = {} if keyless else {"credential_src": str(prepared.with_name(credential.name))}
            given |= {"credential": str(credential), **source}
        return self.run(service_switch, {**given, "_ansible_check_mode": check})

    def conclude(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        """Conclude a cut-over."""
        verify = {"model": "qwen-model", "prompts": []}
        more = {"record": {**RECORD, **changes}, "verify": verify, "releases": str(self.host.releases)}
        return self.snapshot("concluded", check, **more)

    def aim(self, check: bool = False, **more: Any) -> dict[str, Any]:
        """Run rollback_aim."""
        given = {"instance": "qwen", "state_path": str(self.host.state), "releases": str(self.host.releases), **more}
        return self.run(rollback_aim, {**given, "_ansible_check_mode": check})

    def start(self, state: str) -> None:
        """What the tasks between `taken` and `concluded` do."""
        self.host.put("sglang-qwen", ours("qwen", state))
        self.host.serves("sglang-qwen")

    def files(self) -> dict[str, bytes]:
        """Everything in the host record."""
        return {str(path): path.read_bytes() for path in self.host.state.rglob("*") if path.is_file()}

    def uninstall(self, check: bool = False, **more: Any) -> dict[str, Any]:
        """Run service_remove."""
        files = {key: str(self.folder / f"{key}.json") for key in ("adopted", "snapshot")}
        given = {"name": "sglang-qwen", **files, **more}
        return self.run(service_remove, {**given, "_ansible_check_mode": check})
