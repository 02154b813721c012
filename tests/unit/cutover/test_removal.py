# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of the services that an instance took the place of, when it is removed."""

from __future__ import annotations

import pytest

from tests.unit.cutover.case import SERVICES, Case
from tests.unit.cutover.host import FOREIGN, ours

SAID = "sglang-kimi.service, which sglang-qwen.service took the place of, stays stopped and disabled. "
SAID += "To have it serve again: "


@pytest.fixture
def stopped(deployed: Case) -> Case:
    """Ours took the place of the foreign sglang-kimi, and was stopped since."""
    deployed.host.serves()
    return deployed


def test_what_it_took_the_place_of_is_named_with_the_next_command(stopped: Case) -> None:
    foreseen = stopped.uninstall(check=True)
    assert stopped.host.unit("sglang-qwen") is not None
    done, again = stopped.uninstall(), stopped.uninstall()
    assert foreseen == done
    assert (done["changed"], done["left"], done["given_back"]) == (True, ["sglang-kimi"], False)
    assert done["next"] == [SAID + "systemctl enable --now sglang-kimi"]
    # A run that ended before the record was removed has not lost it.
    assert (again["changed"], again["next"]) == (False, done["next"])
    assert stopped.host.unit("sglang-kimi") == FOREIGN and stopped.host.systemd.enabled == set()


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("name", ["sglang-kimi", "sglang-glm"])
def test_nothing_is_named_where_another_one_serves_or_is_to(stopped: Case, name: str, enabled: bool) -> None:
    stopped.host.put(name, FOREIGN)
    if enabled:
        stopped.host.systemd.enabled = {name}
    else:
        stopped.host.systemd.active = {name}
    assert stopped.uninstall(others=["sglang-glm"])["next"] == []


def test_what_had_served_before_an_earlier_deployment_is_named_too(case: Case) -> None:
    case.snapshot("taken", services=SERVICES)
    case.start("1")
    case.conclude()
    case.snapshot("taken", services=SERVICES)
    case.start("2")
    case.conclude()
    case.host.serves()
    assert case.uninstall()["left"] == ["sglang-kimi"]


def test_what_never_served_or_is_not_there_any_more_is_not_named(stopped: Case) -> None:
    (stopped.host.units / "sglang-kimi.service").unlink()
    assert stopped.uninstall()["left"] == []


def test_one_without_an_install_section_is_enabled_by_its_link(case: Case) -> None:
    case.host.put("sglang-kimi", b"[Service]\nExecStart=/opt/kimi/run.sh\n")
    [link] = case.host.units.glob("*.wants/sglang-kimi.service")
    case.snapshot("taken", services=SERVICES)
    case.start("1")
    case.conclude()
    case.host.serves()
    target = case.host.units / "sglang-kimi.service"
    assert case.uninstall()["next"] == [SAID + f"ln -s {target} {link} && systemctl start sglang-kimi"]


def test_a_foreign_unit_of_its_name_is_said_to_be_back_and_not_started(case: Case) -> None:
    case.host.put("sglang-qwen", FOREIGN)
    case.snapshot("taken", services=SERVICES)
    case.host.put("sglang-qwen", ours("qwen", "1"))
    case.host.serves()
    answer = case.uninstall()
    assert (answer["given_back"], case.host.unit("sglang-qwen")) == (True, FOREIGN)
    assert answer["next"][0].endswith("is not started. To start it: systemctl start sglang-qwen")
