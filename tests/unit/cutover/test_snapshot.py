# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host served comes back byte for byte, whoever takes over half-way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import condition, snapshot, units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

from tests.unit.cutover.host import FOREIGN, Host, Systemd, make, ours

OURS = ours()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """A host on which a foreign sglang-kimi serves and comes back after a reboot."""
    return make(tmp_path, monkeypatch)


@pytest.fixture
def systemd(host: Host) -> Systemd:
    """Its systemctl."""
    return host.systemd


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


def watch(monkeypatch: pytest.MonkeyPatch, systemd: Systemd) -> list[list[str]]:
    """What a boot would start, after each link that is made or removed."""
    seen: list[list[str]] = []

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            done = real(*given, **more)
            now = sorted(systemd.enabled)
            if not seen or seen[-1] != now:
                seen.append(now)
            return done

        return call

    monkeypatch.setattr(units, "link", watched(units.link))
    monkeypatch.setattr(Path, "unlink", watched(Path.unlink))
    return seen


def test_a_power_cut_in_a_rollback_never_leaves_no_service_for_the_next_boot(
    systemd: Systemd, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take(path)
    systemd.enabled = {"sglang-qwen"}
    order = watch(monkeypatch, systemd)
    snapshot.switch_back(taken)
    assert order == [["sglang-kimi", "sglang-qwen"], ["sglang-kimi"]]


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


def test_what_runs_already_is_not_started_again(systemd: Systemd, path: Path) -> None:
    taken = take(path)
    systemd.told.clear()
    assert snapshot.start_again(taken) == []
    assert "start" not in [words[0] for words in systemd.told]


# --- the prepared unit, after a cut-over that failed ---


def prepare(path: Path, content: bytes) -> tuple[Path, Path]:
    """A prepared unit, and where it would be kept when it is rejected."""
    prepared = path.parent / "next" / "sglang-qwen.service"
    File(content).write(prepared)
    return prepared, path.parent / "rejected" / "sglang-qwen.service"


def test_the_unit_that_serves_again_is_the_prepared_one_and_the_rejected_one_is_kept(host: Host, path: Path) -> None:
    host.put("sglang-qwen", ours("qwen", "1"))
    host.serves("sglang-qwen")
    taken = take(path)
    prepared, rejected = prepare(path, ours("qwen", "2"))
    assert snapshot.set_aside(taken, prepared, rejected) == str(rejected)
    assert prepared.read_bytes() == ours("qwen", "1")
    assert rejected.read_bytes() == ours("qwen", "2")


def test_without_one_of_ours_to_go_back_to_nothing_stays_prepared(host: Host, path: Path) -> None:
    taken = take(path)
    prepared, rejected = prepare(path, ours("qwen", "2"))
    assert snapshot.set_aside(taken, prepared, rejected) == str(rejected)
    assert not prepared.exists()


def test_a_prepared_unit_that_is_in_force_was_not_rejected(host: Host, path: Path) -> None:
    host.put("sglang-qwen", ours("qwen", "1"))
    host.serves("sglang-qwen")
    taken = take(path)
    prepared, rejected = prepare(path, ours("qwen", "1"))
    assert snapshot.set_aside(taken, prepared, rejected) == ""
    assert not rejected.exists()


def test_on_demand_nothing_was_rejected(host: Host, path: Path) -> None:
    prepared, _rejected = prepare(path, ours("qwen", "2"))
    assert snapshot.set_aside(take(path), prepared, None) == ""
    assert not prepared.exists()


# --- when going back has failed ---


def test_the_state_of_the_host_is_told_service_by_service(host: Host, path: Path) -> None:
    taken = take(path)
    host.put("sglang-qwen", OURS)
    host.systemd.enabled, host.systemd.active = {"sglang-kimi"}, set()
    host.systemd.states = {"sglang-kimi": "failed", "sglang-qwen": "deactivating"}
    assert condition.describe(taken) == [
        "sglang-kimi.service: failed; it served before; its unit is as it was.",
        "sglang-qwen.service: deactivating; it did not serve before; its unit is the rejected one.",
        "A reboot would start sglang-kimi.",
    ]


def test_a_state_that_cannot_be_asked_for_is_said_to_be_unknown(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take(path)

    def broken(*_words: str, must: bool = True, timeout: float = 300) -> str:
        raise UnitError("it hangs")

    monkeypatch.setattr(units, "systemctl", broken)
    lines = condition.describe(taken)
    assert lines[0] == "sglang-kimi.service: cannot be told; it served before; its unit is as it was."
    assert lines[-1] == "What a reboot would start cannot be told."


def test_without_a_snapshot_nothing_was_touched() -> None:
    assert condition.describe(None) == [
        "Nothing is kept of what served before, and no service was touched by the rollback."
    ]
