# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that are known by a link, that lie elsewhere or that have no [Install] section come back as they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import links, snapshot, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

from tests.unit.cutover.host import FOREIGN, INSTALL, Host, make, ours

KIMI, QWEN = "sglang-kimi", "sglang-qwen"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """A host on which a foreign sglang-kimi serves and comes back after a reboot."""
    return make(tmp_path, monkeypatch)


def take(host: Host, instance: str = "qwen") -> snapshot.Snapshot:
    """Keep what both services are now, through the disk."""
    path = host.state / instance / "snapshot.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    snapshot.keep(path, instance, [KIMI, QWEN])
    found = snapshot.load(path)
    assert found is not None
    return found


def cut_over(host: Host, name: str = QWEN, off: str = KIMI) -> None:
    """Put ours in force in the other's place, as service_switch does it, and let it run."""
    files = UnitFiles(name, File(ours(name.removeprefix("sglang-"))))
    files.write()
    links.switch({name: links.of_install(files)}, [off])
    host.systemd.active = {name}


def back(host: Host, taken: snapshot.Snapshot) -> None:
    """Go back, as the role does it."""
    snapshot.switch_back(taken)
    host.systemd.active.clear()
    snapshot.put_back(taken)
    snapshot.switch_back(taken)
    snapshot.start_again(taken)


def by_its_path(host: Host, folder: Path) -> Path:
    """Let the foreign unit be one that was enabled by its path."""
    file, link = folder / "opt" / f"{KIMI}.service", host.units / f"{KIMI}.service"
    file.parent.mkdir()
    file.write_bytes(FOREIGN)
    link.unlink()
    link.symlink_to(file)
    host.systemd.enabled = set()
    host.systemd.want(KIMI, leads=str(file))
    return file


def test_a_unit_that_is_known_by_a_link_is_disabled_and_comes_back_as_one(host: Host, tmp_path: Path) -> None:
    file, link = by_its_path(host, tmp_path), host.units / f"{KIMI}.service"
    before = links.of(KIMI)
    taken = take(host)
    cut_over(host)
    assert os.readlink(link) == str(file)  # disabled, never deleted
    assert (host.systemd.enabled, links.of(KIMI)) == ({QWEN}, {})
    back(host, taken)
    assert os.readlink(link) == str(file)
    assert links.of(KIMI) == before
    assert host.systemd.active == host.systemd.enabled == {KIMI}


def test_a_link_that_is_gone_comes_back_as_a_link(host: Host, tmp_path: Path) -> None:
    file, link = by_its_path(host, tmp_path), host.units / f"{KIMI}.service"
    taken = take(host)
    cut_over(host)
    link.unlink()
    back(host, taken)
    assert os.readlink(link) == str(file)


@pytest.mark.parametrize("now", [None, b"[Service]\nExecStart=/bin/other\n"])
def test_a_link_whose_file_is_no_longer_the_same_gives_way_to_the_bytes(
    host: Host, tmp_path: Path, now: bytes | None
) -> None:
    file, link = by_its_path(host, tmp_path), host.units / f"{KIMI}.service"
    taken = take(host)
    cut_over(host)
    file.unlink()
    if now:
        file.write_bytes(now)
    back(host, taken)
    assert not link.is_symlink() and link.read_bytes() == FOREIGN
    assert host.systemd.active == host.systemd.enabled == {KIMI}


def test_our_unit_takes_the_place_of_a_link_and_not_of_what_it_leads_to(host: Host, tmp_path: Path) -> None:
    file, link = by_its_path(host, tmp_path), host.units / f"{KIMI}.service"
    taken = take(host, "kimi")
    cut_over(host, KIMI, off=QWEN)
    assert not link.is_symlink() and file.read_bytes() == FOREIGN
    back(host, taken)
    assert os.readlink(link) == str(file)


def test_a_unit_that_somebody_removed_is_there_before_anything_is_enabled_or_disabled(host: Host) -> None:
    taken = take(host)
    cut_over(host)
    (host.units / f"{KIMI}.service").unlink()
    snapshot.switch_back(taken)
    assert host.unit(KIMI) == FOREIGN
    assert host.systemd.enabled == {KIMI}
    assert host.unit(QWEN) == ours()  # it still runs


def test_when_the_old_one_cannot_come_back_the_one_that_serves_stays_enabled(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take(host)
    cut_over(host)
    real = host.systemd

    def broken(*words: str, must: bool = True, timeout: float = 300) -> str:
        return "bad-setting" if words[0] == "show" else real(*words, must=must, timeout=timeout)

    monkeypatch.setattr(units, "systemctl", broken)
    with pytest.raises(UnitError, match=r"sglang-kimi.service cannot come back, for systemd says 'bad-setting'"):
        snapshot.switch_back(taken)
    assert host.systemd.enabled == {QWEN}


def test_a_unit_without_install_that_a_link_enables_comes_back_enabled(host: Host) -> None:
    host.put(KIMI, FOREIGN.replace(INSTALL.encode(), b""))
    host.systemd.enabled = set()
    link = host.systemd.want(KIMI, "graphical.target", "../sglang-kimi.service")
    taken = take(host)
    cut_over(host)
    assert not link.is_symlink()
    back(host, taken)
    assert os.readlink(link) == "../sglang-kimi.service"
    assert host.systemd.enabled == {KIMI}


def test_how_it_was_enabled_is_known_also_from_the_snapshot_before(host: Host) -> None:
    host.put(KIMI, FOREIGN.replace(INSTALL.encode(), b""))
    first = take(host)
    cut_over(host)
    snapshot.mark(host.state / "qwen" / "snapshot.json", "serving")
    second = take(host)
    assert [one.enabled for one in second.services] == [False, True]
    assert second.services[0].links == first.services[0].links != {}


def test_another_name_of_a_unit_is_one_of_its_links(host: Host) -> None:
    alias = host.units / "kimi.service"
    alias.symlink_to(host.units / f"{KIMI}.service")
    taken = take(host)
    cut_over(host)
    assert not alias.is_symlink()
    back(host, taken)
    assert os.readlink(alias) == str(host.units / f"{KIMI}.service")


def elsewhere(host: Host) -> Path:
    """Let the foreign unit be a package's."""
    file = host.elsewhere / f"{KIMI}.service"
    file.parent.mkdir()
    (host.units / file.name).rename(file)
    host.systemd.enabled = set()
    host.systemd.want(KIMI, leads=str(file))
    return file


def test_a_unit_of_a_package_counts_as_there_and_comes_back_enabled(host: Host) -> None:
    file = elsewhere(host)
    taken = take(host)
    assert (taken.services[0].files.path, taken.served) == (str(file), [KIMI])
    cut_over(host)
    assert host.systemd.enabled == {QWEN}
    back(host, taken)
    assert host.systemd.active == host.systemd.enabled == {KIMI}
    assert not (host.units / file.name).exists()
    assert taken.services[0].files.in_force(UnitFiles.read(KIMI))


def test_a_unit_of_a_package_is_what_the_package_makes_of_it_and_comes_back_if_that_is_gone(host: Host) -> None:
    file = elsewhere(host)
    taken = take(host)
    cut_over(host)
    file.write_bytes(FOREIGN + b"# newer\n")
    assert taken.services[0].files.in_force(UnitFiles.read(KIMI))
    file.unlink()
    back(host, taken)
    assert host.unit(KIMI) == FOREIGN


def test_a_unit_of_a_package_is_foreign_and_comes_back_from_under_ours(host: Host) -> None:
    elsewhere(host)
    assert not UnitFiles.read(KIMI).ours
    taken = take(host, "kimi")
    cut_over(host, KIMI, off=QWEN)
    assert UnitFiles.read(KIMI).ours
    back(host, taken)
    assert not (host.units / f"{KIMI}.service").exists()
    assert UnitFiles.read(KIMI).unit == File(FOREIGN)
    assert snapshot.load(host.state / "kimi" / "adopted.json") is not None


def test_what_stays_enabled_although_its_links_are_gone_is_a_failure(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(host)
    monkeypatch.setattr(units, "systemctl", lambda *_words, **_more: "enabled")
    with pytest.raises(UnitError, match=r"sglang-kimi.service was disabled, and `systemctl is-enabled` still says"):
        links.switch({QWEN: {}}, [KIMI])


def test_what_cannot_be_enabled_leaves_the_one_that_serves_enabled(host: Host) -> None:
    host.put(KIMI, FOREIGN.replace(INSTALL.encode(), b""))
    cut_over(host)
    with pytest.raises(UnitError, match=r"sglang-kimi.service was enabled, and .* enable it by hand"):
        links.switch({KIMI: {}}, [QWEN])
    assert host.systemd.enabled == {QWEN}


def test_links_of_a_package_or_a_generator_cannot_be_taken_away(host: Host) -> None:
    assert links.fixed(KIMI) == []
    link = host.elsewhere / "multi-user.target.wants" / f"{KIMI}.service"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../{KIMI}.service")
    assert links.fixed(KIMI) == [str(link)]


def test_the_links_of_our_unit_are_those_that_its_install_section_asks_for() -> None:
    files = UnitFiles(
        QWEN, File(b"[Unit]\nWantedBy=no.target\n[Install]\nWantedBy=a.target b.target\nRequiredBy=c.target\n")
    )
    places = {path.removeprefix("/etc/systemd/system/") for path in links.of_install(files)}
    assert places == {
        f"{target}/{QWEN}.service" for target in ("a.target.wants", "b.target.wants", "c.target.requires")
    }
    assert set(links.of_install(files).values()) == {f"/etc/systemd/system/{QWEN}.service"}


# --- a snapshot of a cut-over that died, and what came since ---


def test_a_cut_over_that_died_is_over_once_another_instance_was_deployed(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(hour: int) -> None:
        monkeypatch.setattr(snapshot, "now", lambda: f"2026-11-30T{hour}:00:00+00:00")

    at(10)
    take(host)
    cut_over(host)
    host.systemd.active.clear()  # and it died
    at(11)
    take(host, "kimi")
    cut_over(host, KIMI, off=QWEN)
    assert take(host).served == [KIMI]  # not concluded yet, but it serves
    host.systemd.active.clear()
    at(12)
    snapshot.mark(host.state / "kimi" / "snapshot.json", "serving")
    at(13)
    (host.state / "qwen" / "snapshot.json").unlink()
    snapshot.save(host.state / "qwen" / "snapshot.json", died_at(10))
    assert take(host).taken_at.startswith("2026-11-30T13")


def died_at(hour: int, *services: str) -> snapshot.Snapshot:
    """A snapshot of Qwen's cut-over that died."""
    names = services or (KIMI, QWEN)
    kept = tuple(snapshot.Service(UnitFiles(name), False, False) for name in names)
    return snapshot.Snapshot("qwen", "cutover", f"2026-11-30T{hour}:00:00+00:00", kept)


def test_what_was_concluded_before_or_of_other_services_leaves_it_as_it_is(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.systemd.active.clear()
    path = host.state / "qwen" / "snapshot.json"
    snapshot.save(path, died_at(10))
    for instance, services, hour in (("kimi", (KIMI,), 9), ("glm", ("sglang-glm",), 12)):
        monkeypatch.setattr(snapshot, "now", lambda hour=hour: f"2026-11-30T{hour:02}:00:00+00:00")
        other = host.state / instance / "snapshot.json"
        snapshot.save(other, died_at(8, *services))
        snapshot.mark(other, "serving")
    assert snapshot.under_way(path) == died_at(10)


def test_a_unit_that_was_changed_by_hand_since_and_serves_is_what_is_kept(host: Host) -> None:
    take(host)
    assert take(host).services[0].files.unit == File(FOREIGN)
    host.put(KIMI, FOREIGN + b"# tuned\n")
    host.systemd.active.clear()  # while it does not serve, what served is what the snapshot says
    assert take(host).services[0].files.unit == File(FOREIGN)
    host.systemd.active = {KIMI}
    assert take(host).services[0].files.unit == File(FOREIGN + b"# tuned\n")


def test_another_service_that_was_started_by_hand_since_is_what_is_kept(host: Host) -> None:
    host.systemd.active.clear()
    assert take(host).served == []
    host.systemd.active = {KIMI}
    assert take(host).served == [KIMI]
