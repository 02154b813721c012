# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several models on one node, one after the other, and back again: each by one command, each under its own name."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from testinfra.host import Host

from fleet.config import OLD_MODEL, OLD_SERVICE
from tests.faults.breaking import NODE, Deployment, fleet, one_engine, refused
from tests.fleet.control import PROJECT, Run
from tests.fleet.hosts import ANSWER, SERVED_MODEL, SERVICE, Serving, api, ask, old_service_digest, root, show

QWEN, KIMI = "qwen3_5_397b_nvfp4", "kimi_k2_5_int4"
PLAYBOOKS = PROJECT / "playbooks"
STATE = "/var/lib/llmfleet"
FOREIGN = (PROJECT / "fleet/files" / f"{OLD_SERVICE}.service").read_bytes()


def play(name: str, **variables: object) -> Run:
    """Run a playbook of the collection to its end."""
    return Deployment(variables, PLAYBOOKS / f"{name}.yml").end(timeout=900)


def back(profile: str, **variables: object) -> Run:
    """Go back, from that profile's instance."""
    return play("rollback", sglang_profile=profile, **variables)


def serves(host: Host, service: str, model: str) -> None:
    """This service, and no other, answers rightly under this model's name and comes back after a reboot."""
    status, listed = api(host, "/v1/models")
    assert status == 200, listed
    assert [one["id"] for one in listed["data"]] == [model]
    status, answer = ask(host, model)
    assert status == 200 and ANSWER in str(answer), f"{status} {answer!r}"
    assert int(show(host, service, "MainPID")["MainPID"]) != 0
    one_engine(host)
    other = SERVICE if service == OLD_SERVICE else OLD_SERVICE
    assert show(host, service, "ActiveState", "UnitFileState") == {"ActiveState": "active", "UnitFileState": "enabled"}
    assert show(host, other, "ActiveState")["ActiveState"] == "inactive"
    assert show(host, other, "UnitFileState")["UnitFileState"] in ("disabled", "")


def unit(host: Host, service: str = OLD_SERVICE) -> bytes:
    """The bytes of a unit file."""
    return bytes(host.file(f"/etc/systemd/system/{service}.service").content)


def release(host: Host, instance: str) -> str:
    """The release that an instance last answered from."""
    return str(json.loads(root(host, f"cat {STATE}/{instance}/record.json"))["release"])


@pytest.fixture
def foreign(node: Host) -> Iterator[None]:
    """The node as it came: a service that was made by hand serves. Afterwards too, for the tests that come next."""
    fleet("power", NODE, "on")
    try:
        assert unit(node) == FOREIGN
        serves(node, OLD_SERVICE, OLD_MODEL)
    except (AssertionError, RuntimeError):
        fleet("reset", NODE)
    yield


def test_the_walk_through_the_models(node: Host, foreign: None) -> None:
    serves(node, OLD_SERVICE, OLD_MODEL)

    play("deploy_qwen").must_pass()
    serves(node, SERVICE, SERVED_MODEL)
    assert unit(node) == FOREIGN

    # Ours takes the foreign one's name, for the inventory's sglang_adopt names it.
    play("deploy_kimi").must_pass()
    serves(node, OLD_SERVICE, OLD_MODEL)
    assert b"X-Llmfleet=kimi" in unit(node)
    assert play("deploy_kimi").must_pass().changed == {NODE: 0}

    said = back(KIMI).must_pass()
    assert f"The host serves {SERVICE} (served {SERVED_MODEL}" in said.output
    serves(node, SERVICE, SERVED_MODEL)
    assert unit(node) == FOREIGN

    said = back(QWEN, sglang_rollback_to=OLD_SERVICE).must_pass()
    assert f"The host serves {OLD_SERVICE}." in said.output
    serves(node, OLD_SERVICE, OLD_MODEL)
    assert unit(node) == FOREIGN
    assert back(QWEN, sglang_rollback_to=OLD_SERVICE).must_pass().changed == {NODE: 0}

    # A release that once answered can be named too, and needs no build.
    back(KIMI, sglang_rollback_to=release(node, "kimi")).must_pass()
    serves(node, OLD_SERVICE, OLD_MODEL)
    assert b"X-Llmfleet=kimi" in unit(node)

    play("uninstall", sglang_profile=KIMI).must_pass()
    assert unit(node) == FOREIGN
    assert node.file(f"/models/{KIMI}").is_symlink
    root(node, f"systemctl enable --now {OLD_SERVICE}")


def test_a_foreign_unit_of_our_name_is_said_before_any_download(node: Host, foreign: None) -> None:
    run = play("deploy_kimi", sglang_adopt=[])
    assert f"/etc/systemd/system/{OLD_SERVICE}.service was not made by this collection" in refused(run)
    assert f"add {OLD_SERVICE} to sglang_adopt" in refused(run)
    assert "Have the checkpoint" not in run.output
    serves(node, OLD_SERVICE, OLD_MODEL)


def test_a_name_that_a_host_does_not_know_gets_the_list_of_those_it_knows(node: Host, deployed: Serving) -> None:
    run = back(QWEN, sglang_rollback_to="0.5.1-000000000-0000000000000000")
    assert run.rc != 0, run.output
    message = run.errors[0]
    assert "there is nothing named '0.5.1-000000000-0000000000000000' to go back to" in message
    assert f"{release(node, 'qwen')}: release of {SERVICE}, served {SERVED_MODEL}" in message
    assert f"{OLD_SERVICE}: the unit that somebody else made" in message
    serves(node, SERVICE, SERVED_MODEL)


def test_another_model_is_not_started_beside_the_one_that_serves(node: Host, deployed: Serving) -> None:
    run = play("start", sglang_profile=KIMI)
    assert f"{SERVICE} serves on this host, and nothing was started." in refused(run)
    serves(node, SERVICE, SERVED_MODEL)


def test_a_rollback_that_fails_says_in_what_state_the_host_is(node: Host, deployed: Serving) -> None:
    digest = old_service_digest(node)
    root(node, "mv /opt/kimi/run.sh /opt/kimi/run.sh.away")
    try:
        run = back(QWEN, sglang_rollback_to=OLD_SERVICE)
    finally:
        root(node, "mv /opt/kimi/run.sh.away /opt/kimi/run.sh")
    assert run.rc != 0, run.output
    message = run.errors[-1]
    assert 'Going back failed, at "Prove that it answers again"' in message
    assert "The state of the host now:" in message
    assert f"{OLD_SERVICE}.service: activating; it served before; its unit is as it was." in message
    assert f"{SERVICE}.service: inactive; it did not serve before" in message
    assert f"A reboot would start {OLD_SERVICE}." in message
    # It tries again by itself, and the next run finds it so; the way forward is open too.
    back(QWEN).must_pass()
    serves(node, OLD_SERVICE, OLD_MODEL)
    assert old_service_digest(node) == digest
    play("deploy_qwen").must_pass()
    serves(node, SERVICE, SERVED_MODEL)
