# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host can go back to, and how one names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import aim, answered, snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.aim import Places
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.answered import Answered
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

from tests.unit.cutover.host import FOREIGN, Host, make, ours

OLD, NEW = "0.5.22-aaaaaaaaa-1111111111111111", "0.5.23-bbbbbbbbb-2222222222222222"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """A host with two finished releases on which the foreign sglang-kimi serves."""
    found = make(tmp_path, monkeypatch)
    found.build(OLD, NEW)
    return found


def places(host: Host, instance: str = "qwen") -> Places:
    """Where an instance's rollback looks."""
    return Places(host.state, host.releases, instance)


def cut_over(host: Host, instance: str, release: str, state: str, replaces: list[str]) -> None:
    """What a deployment leaves behind that answered."""
    service = f"sglang-{instance}"
    (host.state / instance).mkdir(parents=True, exist_ok=True)
    snapshot.keep(host.state / instance / "snapshot.json", instance, [*replaces, service])
    for extra in (host.units / f"{service}.service.d").glob("*.conf"):
        extra.unlink()
    host.put(service, ours(instance, state))
    host.serves(service)
    record = {"instance": instance, "service": service, "release": release, "served_model_name": f"{instance}-model"}
    entry = Answered(record, UnitFiles.read(service), {"model": f"{instance}-model"}, f"2026-11-30T0{state}:00:00")
    answered.keep(host.state / instance, entry, host.releases)
    snapshot.mark(host.state / instance / "snapshot.json", "serving")


def go(host: Host, to: str = "", instance: str = "qwen") -> aim.Aim:
    """Go back, as the role does it."""
    found = aim.aim(places(host, instance), to)
    aim.begin(places(host, instance), found)
    if found.needed:
        kept = snapshot.load(places(host, instance).snapshot)
        assert kept is not None
        snapshot.switch_back(kept)
        host.systemd.active -= set(found.stop)
        snapshot.put_back(kept)
        snapshot.start_again(kept)
        snapshot.mark(places(host, instance).snapshot, "restored")
    return found


def test_by_default_it_is_what_served_before(host: Host) -> None:
    cut_over(host, "qwen", NEW, "1", ["sglang-kimi"])
    found = go(host)
    assert (found.needed, found.stop, found.words, found.verify) == (True, ["sglang-qwen"], ["sglang-kimi"], {})
    assert host.unit("sglang-kimi") == FOREIGN
    assert host.unit("sglang-qwen") is None
    assert host.systemd.active == host.systemd.enabled == {"sglang-kimi"}


def test_a_second_time_finds_everything_as_it_shall_be(host: Host) -> None:
    cut_over(host, "qwen", NEW, "1", ["sglang-kimi"])
    go(host)
    again = aim.aim(places(host))
    assert (again.needed, again.stop) == (False, [])
    assert not aim.begin(places(host), again)


def test_an_older_release_is_named_by_its_id_and_so_is_the_newer_one(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    back = go(host, OLD)
    assert back.stop == ["sglang-qwen"]
    assert back.verify == {"model": "qwen-model"}
    assert back.words == ["sglang-qwen (served qwen-model, answered 2026-11-30T01:00:00)"]
    assert host.unit("sglang-qwen") == ours("qwen", "1")
    go(host, NEW)
    assert host.unit("sglang-qwen") == ours("qwen", "2")
    assert host.systemd.active == {"sglang-qwen"}


def test_the_walk_through_the_models(host: Host) -> None:
    """Foreign Kimi, Qwen, our Kimi in the foreign one's name, back to Qwen, back to the foreign one."""
    cut_over(host, "qwen", NEW, "1", ["sglang-kimi"])
    cut_over(host, "kimi", NEW, "2", ["sglang-qwen"])
    assert host.unit("sglang-kimi") == ours("kimi", "2")
    back = go(host, instance="kimi")
    assert back.verify == {"model": "qwen-model"}
    assert host.systemd.active == host.systemd.enabled == {"sglang-qwen"}
    assert host.unit("sglang-kimi") == FOREIGN
    go(host, "sglang-kimi")
    assert host.unit("sglang-kimi") == FOREIGN
    assert (host.units / "sglang-kimi.service.d" / "10-limits.conf").exists()
    assert host.systemd.active == host.systemd.enabled == {"sglang-kimi"}


def test_a_unit_of_ours_that_runs_makes_room_for_the_foreign_one_of_its_name(host: Host) -> None:
    """Even if the rollback is asked of another instance than the one that serves."""
    cut_over(host, "qwen", NEW, "1", ["sglang-kimi"])
    cut_over(host, "kimi", NEW, "2", ["sglang-qwen"])
    assert go(host, instance="qwen").stop == ["sglang-kimi"]
    assert host.unit("sglang-kimi") == FOREIGN


def test_our_other_instance_is_named_by_its_service(host: Host) -> None:
    host.units.joinpath("sglang-kimi.service").unlink()
    host.units.joinpath("sglang-kimi.service.d/10-limits.conf").unlink()
    host.serves()
    cut_over(host, "kimi", NEW, "1", ["sglang-qwen"])
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    found = go(host, "sglang-kimi.service")
    assert found.verify == {"model": "kimi-model"}
    assert host.systemd.active == {"sglang-kimi"}


@pytest.mark.parametrize(("cards", "stops"), [("4,5,6,7", []), ("3,4,5,6", ["sglang-qwen-b"]), ("", ["sglang-qwen-b"])])
def test_an_instance_on_other_cards_is_left_alone(host: Host, cards: str, stops: list[str]) -> None:
    def on(cards: str, instance: str, state: str) -> None:
        visible = f'\nEnvironment="CUDA_VISIBLE_DEVICES={cards}"\n' if cards else ""
        host.put(f"sglang-{instance}", ours(instance, state) + visible.encode())
        host.systemd.active.add(f"sglang-{instance}")
        entry = Answered(
            {"instance": instance, "service": f"sglang-{instance}", "release": [OLD, NEW][int(state) - 1]},
            UnitFiles.read(f"sglang-{instance}"),
            {},
            f"2026-11-30T0{state}:00:00",
        )
        answered.keep(host.state / instance, entry, host.releases)

    on("0,1,2,3", "qwen", "1")
    on("0,1,2,3", "qwen", "2")
    on(cards, "qwen-b", "2")
    found = aim.aim(places(host), OLD)
    assert sorted(found.stop) == ["sglang-qwen", *stops]
    assert ("sglang-qwen-b" in [one.name for one in found.target.services]) is bool(stops)


def test_the_foreign_unit_goes_before_ours_of_the_same_name(host: Host) -> None:
    cut_over(host, "kimi", NEW, "1", [])
    names = {one.name: one.words for one in aim.goals(places(host, "kimi"))}
    assert set(names) == {NEW, "sglang-kimi"}
    assert "somebody else" in names["sglang-kimi"]


@pytest.mark.parametrize("to", ["sglang-nothing", "0.5.21-cccccccccc", "aaaa"])
def test_what_is_not_known_gets_one_message_with_what_is(host: Host, to: str) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    before = places(host).snapshot.read_bytes()
    with pytest.raises(UnitError) as caught:
        aim.aim(places(host), to)
    said = str(caught.value)
    assert said.startswith(f"there is nothing named '{to}' to go back to. What can be named on this host:\n")
    assert f"  {OLD}: release of sglang-qwen, served qwen-model" in said
    assert "  sglang-kimi: the unit that somebody else made" in said
    assert places(host).snapshot.read_bytes() == before


def test_a_release_that_was_removed_cannot_be_named(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    (host.releases / OLD / "release.json").unlink()
    with pytest.raises(UnitError, match="nothing named"):
        aim.aim(places(host), OLD)
    cut_over(host, "qwen", NEW, "3", ["sglang-kimi"])
    assert [path.stem for path in (host.state / "qwen" / "answered").iterdir()] == [NEW]


def test_without_its_weights_it_cannot_be_gone_back_to_and_nothing_is_stopped(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    path = host.state / "qwen" / "answered" / f"{OLD}.json"
    kept = answered.load(path)
    assert kept is not None
    weights = host.state / "weights"
    record = {**kept.record, "model_path": str(weights)}
    answered.keep(host.state / "qwen", Answered(record, kept.files, kept.verify, kept.at), host.releases)
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    before = places(host).snapshot.read_bytes()
    with pytest.raises(
        UnitError, match=f"sglang-qwen would need its checkpoint {weights}, which is not there any more"
    ):
        aim.aim(places(host))
    with pytest.raises(UnitError, match="nothing named"):
        aim.aim(places(host), OLD)
    assert places(host).snapshot.read_bytes() == before
    weights.mkdir()
    assert aim.aim(places(host)).stop == aim.aim(places(host), OLD).stop == ["sglang-qwen"]


def test_a_host_without_a_past_says_so(host: Host) -> None:
    with pytest.raises(UnitError, match=r"nothing was kept .* Nothing can be named on this host$"):
        aim.aim(places(host))


def test_what_is_gone_back_to_is_on_the_disk_before_anything_is_stopped(host: Host) -> None:
    """A power cut in the middle: the next cut-over keeps it as what served before."""
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    aim.begin(places(host), aim.aim(places(host), OLD))
    kept = snapshot.keep(places(host).snapshot, "qwen", ["sglang-kimi", "sglang-qwen"])
    assert kept.phase == "cutover"
    assert {one.name: one.files.unit for one in kept.services if one.active} == {"sglang-qwen": File(ours("qwen", "1"))}


def test_going_to_what_serves_already_forgets_nothing(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    cut_over(host, "qwen", NEW, "2", ["sglang-kimi"])
    before = places(host).snapshot.read_bytes()
    assert not go(host, NEW).needed
    assert places(host).snapshot.read_bytes() == before


def test_keeping_the_same_again_writes_nothing(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    path = host.state / "qwen" / "answered" / f"{OLD}.json"
    kept = answered.load(path)
    assert kept is not None
    assert path.stat().st_mode & 0o777 == 0o600
    later = Answered(kept.record, kept.files, kept.verify, "2026-12-01T00:00:00")
    assert not answered.keep(host.state / "qwen", later, host.releases)
    assert answered.keep(host.state / "qwen", Answered(kept.record, kept.files, {}, later.at), host.releases)


def test_what_cannot_be_read_is_not_guessed_from(host: Host) -> None:
    cut_over(host, "qwen", OLD, "1", ["sglang-kimi"])
    (host.state / "qwen" / "answered" / f"{OLD}.json").write_text('{"schema": 2}')
    with pytest.raises(UnitError, match=r"answered/.*json cannot be read: it has schema 2"):
        aim.aim(places(host))
