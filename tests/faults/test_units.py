# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that were set up in other ways than ours: by a link, by a package, without [Install]; and what is named."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from testinfra.host import Host

from fleet.config import OLD_MODEL, OLD_SERVICE
from tests.faults.breaking import NODE, another, deploy, fleet, refused
from tests.faults.test_models import FOREIGN, QWEN, STATE, back, play, serves, unit
from tests.faults.test_power import BAD
from tests.fleet.hosts import SERVED_MODEL, SERVICE, Serving, root, show

PLACE, AWAY = f"/etc/systemd/system/{OLD_SERVICE}.service", f"/opt/kimi/{OLD_SERVICE}.service"
PACKAGE = f"/usr/lib/systemd/system/{OLD_SERVICE}.service"
WANTS = f"/etc/systemd/system/multi-user.target.wants/{OLD_SERVICE}.service"


@pytest.fixture
def foreign(node: Host) -> Iterator[None]:
    """The service that was made by hand serves, from a unit file as it came; afterwards too."""
    fleet("power", NODE, "on")
    try:
        if show(node, OLD_SERVICE, "ActiveState")["ActiveState"] != "active":
            back(QWEN, sglang_rollback_to=OLD_SERVICE).must_pass()
        assert unit(node) == FOREIGN
        serves(node, OLD_SERVICE, OLD_MODEL)
    except AssertionError:
        fleet("reset", NODE)
    root(node, f"cp {PLACE} /root/{OLD_SERVICE}.service")
    yield
    root(node, f"rm -f {PLACE} {PACKAGE} {AWAY} {WANTS} && cp /root/{OLD_SERVICE}.service {PLACE}")
    root(node, f"systemctl daemon-reload && systemctl enable {OLD_SERVICE}")


def readlink(host: Host, path: str) -> str:
    """Where a link leads to; "" for no link."""
    return root(host, f"readlink {path} || true").strip()


def enabled(host: Host, service: str) -> str:
    """What `systemctl is-enabled` says."""
    return root(host, f"systemctl is-enabled {service} || true").strip()


@pytest.fixture
def by_its_path(node: Host, foreign: None) -> None:
    """The same with `systemctl enable /a/path`."""
    root(node, f"systemctl disable {OLD_SERVICE} && mv {PLACE} {AWAY} && systemctl enable {AWAY}")
    assert (readlink(node, PLACE), readlink(node, WANTS)) == (AWAY, AWAY)


def test_a_unit_that_was_enabled_by_its_path_comes_back_when_the_new_one_fails(node: Host, by_its_path: None) -> None:
    run = deploy(BAD, timeout=900)
    assert f"The host serves again what it served before: {OLD_SERVICE}." in refused(run)
    assert (readlink(node, PLACE), readlink(node, WANTS)) == (AWAY, AWAY)
    serves(node, OLD_SERVICE, OLD_MODEL)


def test_a_unit_that_was_enabled_by_its_path_comes_back_on_demand(node: Host, by_its_path: None) -> None:
    deploy(timeout=900).must_pass()
    assert (readlink(node, PLACE), readlink(node, WANTS)) == (AWAY, "")  # disabled, never deleted
    assert enabled(node, OLD_SERVICE) not in ("enabled", "enabled-runtime")
    # And then somebody tidies up.
    root(node, f"rm {PLACE} && systemctl daemon-reload")
    back(QWEN).must_pass()
    assert (readlink(node, PLACE), readlink(node, WANTS)) == (AWAY, AWAY)
    serves(node, OLD_SERVICE, OLD_MODEL)
    assert back(QWEN).must_pass().changed == {NODE: 0}


def test_a_unit_of_a_package_without_install(node: Host, foreign: None) -> None:
    root(node, f"systemctl disable {OLD_SERVICE} && mv {PLACE} {PACKAGE} && sed -i '/Install/,$d' {PACKAGE}")
    root(node, f"ln -s ../../../../usr/lib/systemd/system/{OLD_SERVICE}.service {WANTS} && systemctl daemon-reload")
    kept = root(node, f"sha256sum {PACKAGE}"), readlink(node, WANTS)
    assert enabled(node, OLD_SERVICE) == "enabled"

    run = play("deploy_kimi", sglang_adopt=[])
    assert f"{OLD_SERVICE}.service was not made by this collection" in refused(run)

    deploy().must_pass()
    assert (readlink(node, WANTS), enabled(node, OLD_SERVICE)) == ("", "static")
    back(QWEN).must_pass()
    assert (root(node, f"sha256sum {PACKAGE}"), readlink(node, WANTS)) == kept
    assert not node.file(PLACE).exists
    serves(node, OLD_SERVICE, OLD_MODEL)


def in_force(host: Host) -> tuple[str, str]:
    """The state that the record names, and the one that the unit's main process has."""
    pid = show(host, SERVICE, "MainPID")["MainPID"]
    running = root(host, f"tr '\\0' '\\n' </proc/{pid}/environ | sed -n s/^LLMFLEET_STATE=//p").strip()
    return json.loads(root(host, f"cat {STATE}/qwen/record.json"))["state"], running


def test_two_deployments_of_one_release_can_both_be_named(node: Host, deployed: Serving) -> None:
    first = in_force(node)
    assert first[0] == first[1]
    deploy(another()).must_pass()
    second = in_force(node)
    assert second[0] == second[1] != first[0]
    release = json.loads(root(node, f"cat {STATE}/qwen/record.json"))["release"]

    said = back(QWEN, sglang_rollback_to=f"{release}@{first[0][:12]}").must_pass()
    assert f"The host serves {SERVICE} (served {SERVED_MODEL}, answered" in said.output
    assert in_force(node) == first
    serves(node, SERVICE, SERVED_MODEL)

    back(QWEN, sglang_rollback_to=release).must_pass()
    assert in_force(node) == second


def test_only_one_of_them_runs_whatever_is_started(node: Host, deployed: Serving) -> None:
    deploy().must_pass()
    root(node, f"systemctl start {OLD_SERVICE}")
    try:
        assert show(node, SERVICE, "ActiveState")["ActiveState"] in ("inactive", "deactivating")
    finally:
        root(node, f"systemctl stop {OLD_SERVICE} && systemctl start {SERVICE}")
    assert show(node, OLD_SERVICE, "ActiveState")["ActiveState"] == "inactive"
