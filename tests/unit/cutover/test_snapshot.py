# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host served comes back byte for byte, whoever takes over half-way."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

FOREIGN = b"[Unit]\nDescription=by hand  \r\n[Service]\nExecStart=/opt/kimi/run.sh\n"
OURS = b"[Unit]\nX-Llmfleet=qwen\n"


class Systemd:
    """Stands in for systemctl: which services are enabled and active, and all that it was told."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.active: set[str] = set()
        self.told: list[tuple[str, ...]] = []

    def __call__(self, *words: str, must: bool = True, timeout: float = 300) -> str:
        self.told.append(words)
        verb, name = words[0], words[-1].removesuffix(".service")
        if verb == "is-enabled":
            return "enabled" if name in self.enabled else "disabled"
        if verb == "is-active":
            return "active" if name in self.active else "inactive"
        if verb == "enable":
            self.enabled.add(name)
        if verb == "disable":
            self.enabled.discard(name)
        if verb == "start":
            self.active.add(name)
        return ""


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Systemd:
    """A host on which a foreign sglang-kimi serves and comes back after a reboot."""
    fake = Systemd()
    fake.enabled.add("sglang-kimi")
    fake.active.add("sglang-kimi")
    folder = tmp_path / "units"
    folder.mkdir()
    (folder / "sglang-kimi.service").write_bytes(FOREIGN)
    (folder / "sglang-kimi.service.d").mkdir()
    (folder / "sglang-kimi.service.d" / "10-limits.conf").write_bytes(b"[Service]\nLimitNOFILE=4096\n")
    monkeypatch.setattr(units, "systemctl", fake)
    read, write = UnitFiles.read.__func__, UnitFiles.write  # type: ignore[attr-defined]
    monkeypatch.setattr(UnitFiles, "read", classmethod(lambda cls, name: read(cls, name, folder)))
    monkeypatch.setattr(UnitFiles, "write", lambda self: write(self, folder))
    return fake


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the snapshot is kept."""
    return tmp_path / "state" / "snapshot.json"


def take(path: Path, instance: str = "qwen") -> snapshot.Snapshot:
    """Keep what sglang-kimi and sglang-qwen are now."""
    path.parent.mkdir(exist_ok=True)
    return snapshot.keep(path, instance, ["sglang-kimi", "sglang-qwen"])


def test_a_snapshot_survives_the_disk(systemd: Systemd, path: Path) -> None:
    taken = take(path)
    assert snapshot.load(path) == taken
    assert taken.served == ["sglang-kimi"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_everything_comes_back_byte_for_byte(systemd: Systemd, path: Path, tmp_path: Path) -> None:
    taken = take(path)
    folder = tmp_path / "units"
    (folder / "sglang-kimi.service").write_bytes(OURS)
    (folder / "sglang-kimi.service.d" / "10-limits.conf").unlink()
    (folder / "sglang-qwen.service").write_bytes(OURS)
    systemd.enabled = {"sglang-qwen"}
    systemd.active = set()

    snapshot.put_back(taken)
    snapshot.switch_back(taken)
    assert snapshot.start_again(taken) == ["sglang-kimi"]

    assert (folder / "sglang-kimi.service").read_bytes() == FOREIGN
    assert (folder / "sglang-kimi.service.d" / "10-limits.conf").read_bytes() == b"[Service]\nLimitNOFILE=4096\n"
    assert not (folder / "sglang-qwen.service").exists()
    assert systemd.enabled == {"sglang-kimi"}
    assert systemd.active == {"sglang-kimi"}


def test_a_cut_over_that_died_keeps_what_served_before_it(systemd: Systemd, path: Path) -> None:
    first = take(path)
    systemd.active = {"sglang-qwen"}  # the first run died after the start; a second one comes along
    assert take(path) == first


@pytest.mark.parametrize("phase", ["serving", "restored"])
def test_a_cut_over_that_ended_makes_room_for_the_next(systemd: Systemd, path: Path, phase: str) -> None:
    take(path)
    assert snapshot.mark(path, phase)
    assert not snapshot.mark(path, phase)
    systemd.active = {"sglang-qwen"}
    assert take(path).served == ["sglang-qwen"]


def test_a_power_cut_in_a_rollback_never_leaves_two_services_for_the_next_boot(systemd: Systemd, path: Path) -> None:
    taken = take(path)
    systemd.enabled = {"sglang-qwen"}
    systemd.told.clear()
    snapshot.switch_back(taken)
    told = [words[0] for words in systemd.told if words[0] in ("enable", "disable")]
    assert told == ["enable"] or told == ["disable", "enable"]


def test_an_adopted_unit_is_kept_for_good(systemd: Systemd, path: Path) -> None:
    take(path, instance="kimi")
    snapshot.mark(path, "serving")
    adopted = snapshot.load(path.with_name("adopted.json"))
    assert adopted is not None
    assert adopted.services[0].files.unit == File(FOREIGN)


def test_a_snapshot_that_cannot_be_read_is_no_snapshot_to_guess_from(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(UnitError, match="cannot be read"):
        snapshot.load(path)
    path.write_text('{"schema": 99}')
    with pytest.raises(UnitError, match="schema 99"):
        snapshot.load(path)


def test_ours_is_told_from_foreign() -> None:
    assert UnitFiles("a", File(OURS)).ours
    assert not UnitFiles("a", File(FOREIGN)).ours
    assert not UnitFiles("a").ours


def test_writing_the_same_again_writes_nothing(tmp_path: Path) -> None:
    wanted = UnitFiles("sglang-x", File(OURS), {"10.conf": File(b"[Service]\n")})
    assert wanted.write(tmp_path)
    assert not wanted.write(tmp_path)
    assert UnitFiles.read("sglang-x", tmp_path) == wanted
