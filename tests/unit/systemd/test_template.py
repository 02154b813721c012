# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit's template: it alone runs of the services that it takes the place of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "roles" / "sglang_service" / "templates"


def render(replaces: list[str], state: str = "1") -> str:
    """The unit as Ansible renders it, without its command line and environment."""
    stage = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), trim_blocks=True, autoescape=False)
    own = {"systemd_launch": lambda *_given: "", "systemd_environment": lambda _given: []}
    stage.filters |= {f"llmfleet.sglang.{name}": filter_ for name, filter_ in own.items()}
    deployment: dict[str, Any] = {
        "name": "qwen",
        "service": "sglang-qwen",
        "model": "m",
        "replaces": replaces,
        "verify": {"timeout_seconds": 600},
        "stop": {"timeout_seconds": 60},
        "users": {"service": "sglang"},
        "paths": {"models": "/models"},
        "launch": {"arguments": {}},
    }
    return stage.get_template("sglang.service.j2").render(
        sglang_service_deployment=deployment,
        sglang_service_release={"path": "/r", "id": "r"},
        sglang_service_unit_state=state,
        sglang_service_environment={},
    )


@pytest.mark.parametrize("replaces", [[], ["sglang-kimi"], ["sglang-kimi", "sglang-glm"]])
def test_it_conflicts_with_what_it_takes_the_place_of_and_starts_when_that_is_gone(replaces: list[str]) -> None:
    unit, _heading, _service = render(replaces).partition("[Service]")
    lines = unit.splitlines()
    assert [line for line in lines if line.startswith("Conflicts=")] == [f"Conflicts={one}.service" for one in replaces]
    assert all(f"After={one}.service" in lines for one in replaces)


def test_another_list_of_services_is_no_other_state() -> None:
    assert render(["sglang-kimi"], state="") == render([], state="")
