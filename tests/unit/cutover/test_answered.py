# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several deployments of one release: each is kept, can be named, and comes back with its own record and proof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import aim, answered, record, snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.aim import Places
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.answered import Answered
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles

from tests.unit.cutover.host import FOREIGN, INSTALL, Host, make, ours

RELEASE, SERVICE = "0.5.23-bbbbbbbbb-2222222222222222", "sglang-qwen"
STATES = [letter * 64 for letter in "abcdef0123456789"]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """A host with one finished release on which the foreign sglang-kimi serves."""
    found = make(tmp_path, monkeypatch)
    found.build(RELEASE)
    return found


def folder(host: Host) -> Path:
    """The record of the instance."""
    return host.state / "qwen"


def deploy(host: Host, number: int) -> None:
    """Deploy the release with other arguments: what a deployment leaves behind that answered."""
    folder(host).mkdir(parents=True, exist_ok=True)
    snapshot.keep(folder(host) / "snapshot.json", "qwen", ["sglang-kimi", SERVICE])
    host.put(SERVICE, ours("qwen", STATES[number]))
    host.serves(SERVICE)
    said = {"instance": "qwen", "service": SERVICE, "release": RELEASE, "state": STATES[number]}
    record.write(folder(host) / record.NAME, record.text(said))
    entry = Answered(said, UnitFiles.read(SERVICE), {"number": number}, f"2026-11-30T{number:02}:00:00")
    answered.keep(folder(host), entry, host.releases)
    snapshot.mark(folder(host) / "snapshot.json", "serving")


def target(host: Host, to: str = "") -> aim.Aim:
    """What is gone back to."""
    return aim.aim(Places(host.state, host.releases, "qwen"), to)


def test_what_served_before_is_proven_as_it_was_though_it_is_of_the_same_release(host: Host) -> None:
    deploy(host, 0)
    deploy(host, 1)
    found = target(host)
    assert (found.needed, found.verify) == (True, {"number": 0})


def test_the_record_comes_back_with_what_is_in_force(host: Host) -> None:
    deploy(host, 0)
    deploy(host, 1)
    record.renew(host.state, target(host).target.services[-1].files)
    assert json.loads((folder(host) / record.NAME).read_text())["state"] == STATES[0]


def test_a_release_means_its_newest_and_an_older_one_is_named_with_its_state(host: Host) -> None:
    deploy(host, 0)
    deploy(host, 1)
    assert not target(host, RELEASE).needed
    assert target(host, f"{RELEASE}@{'b' * 12}").verify == {"number": 1}
    older = target(host, f"{RELEASE}@{'a' * 12}")
    assert (older.needed, older.stop, older.verify) == (True, [SERVICE], {"number": 0})
    with pytest.raises(UnitError) as caught:
        target(host, f"{RELEASE}@{'c' * 12}")
    assert all(f"  {RELEASE}{one}: release of {SERVICE}" in str(caught.value) for one in ("", "@" + "a" * 12))


def test_how_the_foreign_unit_was_enabled_outlives_going_to_a_release_and_back(host: Host) -> None:
    host.put("sglang-kimi", FOREIGN.replace(INSTALL.encode(), b""))
    deploy(host, 0)
    deploy(host, 1)
    for to, enabled in ((f"{RELEASE}@{'a' * 12}", SERVICE), (RELEASE, SERVICE), ("sglang-kimi", "sglang-kimi")):
        aim.begin(Places(host.state, host.releases, "qwen"), target(host, to))
        kept = snapshot.load(folder(host) / "snapshot.json")
        assert kept is not None
        snapshot.put_back(kept)
        snapshot.switch_back(kept)
        snapshot.mark(folder(host) / "snapshot.json", "restored")
        host.systemd.active = set(kept.served)
        assert host.systemd.enabled == {enabled}


def test_a_release_that_was_deployed_once_is_listed_once(host: Host) -> None:
    deploy(host, 0)
    with pytest.raises(UnitError) as caught:
        target(host, "sglang-nothing")
    assert f"  {RELEASE}:" in str(caught.value)
    assert "@" not in str(caught.value)


def test_a_file_from_before_is_read_and_gives_way_to_one_with_the_state(host: Host) -> None:
    deploy(host, 0)
    place = folder(host) / "answered"
    [path] = place.iterdir()
    path.rename(place / f"{RELEASE}.json")
    assert target(host, RELEASE).verify == {"number": 0}
    assert target(host, f"{RELEASE}@{'a' * 12}").verify == {"number": 0}
    deploy(host, 0)
    assert [one.name for one in place.iterdir()] == [f"{RELEASE}@{'a' * 12}.json"]


def test_the_newest_are_kept_and_what_the_snapshot_holds(host: Host) -> None:
    deploy(host, 0)
    for number in range(1, answered.MOST + 1):
        deploy(host, number)
    kept = {one.stem.partition("@")[2][0] for one in (folder(host) / "answered").iterdir()}
    assert kept == {one[0] for one in STATES[1 : answered.MOST + 1]}
    held = snapshot.load(folder(host) / "snapshot.json")
    assert held is not None
    oldest = min(answered.all_of(host.state, host.releases), key=lambda one: one.at)
    services = (snapshot.Service(oldest.files, True, True),)
    snapshot.save(folder(host) / "snapshot.json", snapshot.Snapshot("qwen", "cutover", held.taken_at, services))
    deploy(host, answered.MOST + 1)
    assert answered.of_unit(host.state, oldest.files) == oldest
