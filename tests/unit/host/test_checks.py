# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight makes of a host."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import GpuProcess, Reading
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.checks import check, least_python
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome, run
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.facts import (
    Interpreter,
    clock_synchronised,
    collect,
    finished_releases,
    folder_bytes,
    parse_os_release,
    read_interpreter,
    space,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.findings import Finding, accept, blocking, report
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.fit_checks import least_cuda
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.sockets import Listener
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import Unit
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import needs_of
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost
from ansible_collections.llmfleet.sglang.tests.unit.host.good import (
    CARDS,
    COMMIT,
    GB,
    GOOD,
    KIMI,
    REVISION,
    WANTED,
    cards,
    seen,
)


def test_a_good_host_has_nothing_to_say() -> None:
    assert check(GOOD, WANTED) == []
    assert report([]) == ""


# What is changed about the good host, the finding it makes, its severity, and words of the message.
BAD: list[tuple[dict[str, Any], str, str, str]] = [
    ({"os_id": "rocky", "os_version": "9.4", "os_name": "Rocky 9"}, "os_release", "blocks", "This is Rocky 9"),
    ({"architecture": "aarch64"}, "architecture", "blocks", "aarch64"),
    ({"systemd": False}, "systemd", "blocks", "/run/systemd/system is not there"),
    ({"unit_problem": "it hangs"}, "systemd", "blocks", "it hangs"),
    ({"commands": {"git": "", "rsync": ""}}, "commands", "blocks", "git, rsync"),
    ({"interpreter": Interpreter("/p", (3, 10, 4))}, "python", "blocks", "needs Python 3.11 or newer; /p is 3.10.4"),
    ({"interpreter": Interpreter("/p", (3, 11, 4), ("ensurepip",))}, "python", "blocks", "lacks ensurepip"),
    ({"interpreter": Interpreter("/p", problem="not there")}, "python", "blocks", "not there"),
    ({"bind_problem": "Cannot assign"}, "listen_address", "blocks", "cannot listen on 10.77.0.11: Cannot assign"),
    (
        {"listeners": (Listener("::", 30000, 1, 55, "nc -l", "thief.service"),)},
        "port",
        "blocks",
        "port 30000 on [::]: pid 55 (nc -l), unit thief.service",
    ),
    ({"gpus": Reading("hung", "nvidia-smi did not end in time")}, "nvidia_smi", "blocks", "did not end in time"),
    ({"gpus": replace(GOOD.gpus, gpus=CARDS[:7])}, "gpu_count", "blocks", "8 cards are needed and nvidia-smi shows 7"),
    ({"gpus": Reading("ok")}, "gpu_count", "blocks", "shows 0 (no cards)"),
    (
        {"gpus": replace(GOOD.gpus, gpus=(*CARDS, replace(CARDS[0], index=8, uuid="GPU-8", memory_used=0)))},
        "gpu_count",
        "informs",
        "8 cards are used of the 9",
    ),
    ({"gpus": cards(compute_capability="9.0")}, "gpu_capability", "blocks", "12.0, but GPU 2: 9.0"),
    ({"gpus": cards(mig="Enabled")}, "gpu_mig", "blocks", "GPU 2"),
    ({"gpus": cards(ecc_errors=3)}, "gpu_ecc", "warns", "GPU 2: 3"),
    ({"gpus": cards(link_width=4, link_width_max=16)}, "gpu_link", "warns", "GPU 2: x4 of x16"),
    ({"gpus": cards(persistence="Disabled")}, "gpu_persistence", "informs", "GPU 2"),
    ({"gpus": cards(memory_used=95000)}, "gpu_unexplained", "warns", "GPU 2: 5500 MiB"),
    ({"gpu_owners": {}}, "gpu_processes", "blocks", "pid 10 (python3) holds 89500 MiB on GPUs 0, 1"),
    (
        {"gpu_owners": {10: replace(KIMI, unit="training.service")}},
        "gpu_processes",
        "blocks",
        "unit training.service holds 89500 MiB on GPUs 0, 1, 2, 3, 4, 5, 6, 7",
    ),
    (
        {"spaces": {**GOOD.spaces, "root": replace(GOOD.spaces["root"], read_only=True)}},
        "path",
        "blocks",
        "/opt is mounted read-only",
    ),
    (
        {"spaces": {**GOOD.spaces, "models": replace(GOOD.spaces["models"], free=200 * GB)}},
        "disk",
        "blocks",
        "needed 223.0 GB for the checkpoint in /models, free 200.0 GB, short of 23.0 GB",
    ),
    (
        {"spaces": {name: replace(one, device=1, free=250 * GB) for name, one in GOOD.spaces.items()}},
        "disk",
        "blocks",
        "30.0 GB for a release in /opt/sglang plus 223.0 GB for the checkpoint in /models = 253.0 GB, free 250.0 GB",
    ),
    (
        {"units": {**GOOD.units, "sglang-kimi.service": Unit("sglang-kimi.service")}},
        "replaced_missing",
        "informs",
        "sglang-kimi.service",
    ),
    (
        {"foreign_unit": "/etc/systemd/system/sglang-qwen.service"},
        "foreign_unit",
        "blocks",
        "/etc/systemd/system/sglang-qwen.service was not made by this collection",
    ),
    (
        {"lost": ("sglang-kimi.service",)},
        "no_unit_file",
        "blocks",
        "sglang-kimi.service runs, and there is no unit file that it could be started from again",
    ),
    (
        {"triggers": {"sglang-kimi.service": ("sglang-kimi.path",), "sglang-qwen.service": ()}},
        "triggered",
        "blocks",
        "sglang-kimi.service has to be stopped, and sglang-kimi.path would start it again",
    ),
    ({"checkpoint_bytes": 5 * GB}, "checkpoint_present", "informs", "5.0 GB"),
    ({"clock_synchronised": False}, "time_sync", "warns", "not synchronised"),
    ({"gpus": cards(link_generation_max=3, link_generation_card=5)}, "gpu_link", "warns", "GPU 2: generation 3 of 5"),
]


@pytest.mark.parametrize(("changes", "name", "severity", "words"), BAD, ids=[f"{row[1]}-{row[2]}" for row in BAD])
def test_each_fault_makes_its_own_finding(changes: dict[str, Any], name: str, severity: str, words: str) -> None:
    found = check(seen(**changes), WANTED)
    assert [(one.id, one.severity) for one in found] == [(name, severity)] * len(found) and found
    assert words in found[0].message
    assert len(blocking(found)) == (1 if severity == "blocks" else 0)


def test_smaller_cards_are_mixed_ones_too() -> None:
    found = check(seen(gpus=cards(memory_total=48000, memory_used=40)), WANTED)
    assert [one.id for one in found] == ["gpu_memory", "gpu_mixed"]


def test_a_listener_on_another_address_is_nobodys_business() -> None:
    local = Listener("127.0.0.1", 30000, 1, 55, "nc", "")
    assert check(replace(GOOD, listeners=(local,)), WANTED) == []


def test_without_cards_wanted_none_are_looked_at() -> None:
    assert check(seen(gpus=Reading("missing")), replace(WANTED, gpu_count=0)) == []


def test_small_holders_of_memory_are_let_be() -> None:
    held = GpuProcess(4, CARDS[0].uuid, 60, "Xorg")
    gpus = replace(GOOD.gpus, processes=(*GOOD.gpus.processes, held))
    assert check(seen(gpus=gpus), WANTED) == []


def test_what_is_there_of_the_checkpoint_is_not_asked_for_again() -> None:
    spaces = {**GOOD.spaces, "models": replace(GOOD.spaces["models"], free=10 * GB)}
    found = check(replace(GOOD, spaces=spaces, checkpoint_bytes=223 * GB), WANTED)
    assert [one.id for one in found] == ["checkpoint_present"]
    found = check(replace(GOOD, spaces=spaces, checkpoint_bytes=200 * GB), WANTED)
    assert "23.0 GB for the checkpoint in /models (223.0 GB less 200.0 GB that is there)" in found[0].message


def test_a_deployed_host_with_a_full_disk_is_warned_and_not_stopped() -> None:
    spaces = {**GOOD.spaces, "root": replace(GOOD.spaces["root"], free=GB)}
    found = check(replace(GOOD, spaces=spaces, releases={COMMIT: ""}), WANTED)
    assert [(one.id, one.severity) for one in found] == [("disk", "warns")]
    assert [one.severity for one in check(replace(GOOD, spaces=spaces), WANTED)] == ["blocks"]


def test_a_host_low_on_inodes_is_warned() -> None:
    spaces = {**GOOD.spaces, "root": replace(GOOD.spaces["root"], free_inodes=1000)}
    assert [one.severity for one in check(replace(GOOD, spaces=spaces), WANTED)] == ["warns"]


def test_accepted_findings_block_no_more_and_stay_in_sight() -> None:
    bad = replace(GOOD, architecture="aarch64", os_id="rocky")
    found = accept(check(bad, WANTED), ["os_release"])
    assert [one.id for one in blocking(found)] == ["architecture"]
    assert [one.id for one in found if one.accepted] == ["os_release"]
    text = report(found)
    assert (
        text.startswith("One thing has to be put right")
        and "accept by identifier: architecture (sglang_accepted_findings)." in text
    )


def test_a_misspelt_acceptance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no finding named os_relase; .*os_release"):
        accept([], ["os_relase"])


def test_findings_outside_the_catalogue_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="unknown finding"):
        Finding("surprise", "blocks", "?")


@pytest.mark.parametrize(
    ("version", "least"),
    [("0.5.9", (3, 10)), ("0.5.21", (3, 10)), ("0.5.22", (3, 11)), ("v0.5.23", (3, 11)), ("main", (3, 11))],
)
def test_the_python_that_a_version_needs(version: str, least: tuple[int, int]) -> None:
    assert least_python(version) == least


# facts ---------------------------------------------------------------------------------------------------------


def test_one_look_at_a_host(host: FakeHost, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text('# x\nID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n')
    (tmp_path / "run" / "systemd" / "system").mkdir(parents=True)
    Path(host.proc, "meminfo").write_text("MemTotal: 1024 kB\nMemAvailable: 512 kB\nHugePages_Total: 0\n")
    host.add_unit("sglang-kimi.service", main_pid=10)
    host.add_process(10, unit="sglang-kimi.service", gpu=1000, listens=[("0.0.0.0", 30000), ("0.0.0.0", 1)])

    def runner(argv: Sequence[str], timeout: float) -> Outcome:
        return run(argv, timeout) if argv[0].startswith("/") else host.run(argv, timeout)

    wanted = replace(WANTED, address="127.0.0.1", paths={"root": str(tmp_path / "no" / "where")})
    facts = collect(wanted.question(20), runner, host.proc, str(tmp_path))
    assert (facts.os_id, facts.os_version, facts.memory_total) == ("debian", "12", 1024 * 1024)
    assert facts.systemd and facts.gpu_owners[10].unit == "sglang-kimi.service"
    assert [(one.port, one.unit) for one in facts.listeners] == [(30000, "sglang-kimi.service")]
    assert facts.units["sglang-kimi.service"].main_pid == 10 and not facts.units["sglang-qwen.service"].exists
    assert facts.lost == ("sglang-kimi.service",) and facts.triggers == {}
    assert facts.spaces["root"].parent == str(tmp_path) and facts.spaces["root"].free > 0
    assert facts.interpreter.version >= (3, 9)
    assert facts.commands["systemctl"].endswith("/systemctl")
    json.dumps(facts.as_dict())


def test_what_cannot_come_back_and_what_comes_back_by_itself(host: FakeHost, tmp_path: Path) -> None:
    file = tmp_path / "kimi.service"
    file.touch()
    host.add_unit("sglang-kimi.service", FragmentPath=str(file), TriggeredBy="kimi.path kimi.timer kimi.socket")
    host.add_unit("kimi.path", "inactive", UnitFileState="enabled")
    host.add_unit("kimi.timer", "active", UnitFileState="static")
    host.add_unit("kimi.socket", "inactive", UnitFileState="disabled")
    facts = collect(WANTED.question(20), host.run, host.proc, str(tmp_path))
    assert facts.lost == () and facts.triggers == {"sglang-kimi.service": ("kimi.path", "kimi.timer")}
    for change in ({"UnitFileState": "transient"}, {"LoadState": "not-found"}, {"FragmentPath": str(tmp_path / "no")}):
        host.add_unit("sglang-kimi.service", FragmentPath=str(file))
        host.units["sglang-kimi.service"].update(change)
        assert collect(WANTED.question(20), host.run, host.proc, str(tmp_path)).lost == ("sglang-kimi.service",)
    host.add_unit("sglang-kimi.service", "inactive", FragmentPath=str(tmp_path / "no"))
    assert collect(WANTED.question(20), host.run, host.proc, str(tmp_path)).lost == ()


def test_os_release_with_and_without_quotes() -> None:
    assert parse_os_release("A='x y'\nB=z\n\nC=\n") == {"A": "x y", "B": "z", "C": ""}


def test_space_is_measured_where_the_path_would_lie(tmp_path: Path) -> None:
    found = space(str(tmp_path / "a" / "b"))
    assert found.parent == str(tmp_path) and found.device == os.stat(tmp_path).st_dev
    (tmp_path / "file").write_text("")
    assert space(str(tmp_path / "file" / "below")).problem == f"{tmp_path}/file is no folder"


def test_an_interpreter_is_asked_and_not_guessed(tmp_path: Path) -> None:
    assert read_interpreter(str(tmp_path / "none"), run, 5).problem.endswith("is not there")
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho hello\n")
    fake.chmod(0o755)
    assert "unexpected" in read_interpreter(str(fake), run, 5).problem


def test_unfinished_downloads_do_not_count_as_there(tmp_path: Path) -> None:
    store = tmp_path / ".checkpoints" / "org--name"
    staging = f"../.staging/org--name--{REVISION}/files"
    store.mkdir(parents=True)
    for name, count in ((REVISION, 100), (staging, 30), ("b" * 40, 1000)):
        (store / name / ".cache").mkdir(parents=True)
        (store / name / "model.safetensors").write_bytes(b"x" * count)
        (store / name / "part.incomplete").write_bytes(b"x" * 5000)
        (store / name / ".cache" / "blob").write_bytes(b"x" * 5000)
    assert folder_bytes(str(store / REVISION)) == 100
    (tmp_path / "served").symlink_to(store / REVISION)
    checkpoint = {"path": str(tmp_path / "served"), "repository": "org/name", "revision": REVISION}
    wanted = replace(WANTED, checkpoint=checkpoint, python="/usr/bin/true")
    host = FakeHost(tmp_path / "host")
    assert collect(wanted.question(5), host.run, host.proc).checkpoint_bytes == 130


def test_only_finished_releases_count(tmp_path: Path) -> None:
    record = {"id": "a", "inputs": {"commit": COMMIT}, "cuda": "13.0"}
    for name, text in (("a", json.dumps(record)), ("b", "{}"), ("c", "not json")):
        (tmp_path / "releases" / name).mkdir(parents=True)
        (tmp_path / "releases" / name / "release.json").write_text(text)
    (tmp_path / "releases" / "debris").mkdir()
    assert finished_releases(str(tmp_path)) == {COMMIT: "13.0"}


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(("timedatectl",), 0, "yes\n"), True),
        (Outcome(("timedatectl",), 0, "no\n"), False),
        (Outcome(("timedatectl",), 0, "\n"), None),
        (Outcome(("timedatectl",), 1, "", "Failed to connect to bus"), None),
        (Outcome(("timedatectl",), None, problem="hung"), None),
    ],
)
def test_whether_the_clock_is_synchronised(outcome: Outcome, expected: bool | None) -> None:
    assert clock_synchronised(lambda argv, timeout: outcome, 5) is expected


@pytest.mark.parametrize(("container", "expected"), [(True, None), (False, False)])
def test_a_containers_clock_is_not_its_own(tmp_path: Path, container: bool, expected: bool | None) -> None:
    host = FakeHost(tmp_path / "host")
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    if container:
        (tmp_path / "run" / "systemd" / "container").write_text("systemd-nspawn")

    def runner(argv: Sequence[str], timeout: float) -> Outcome:
        return Outcome(tuple(argv), 0, "no\n") if argv[0] == "timedatectl" else host.run(argv, timeout)

    wanted = replace(WANTED, python="/usr/bin/true")
    assert collect(wanted.question(5), runner, host.proc, str(tmp_path)).clock_synchronised is expected


def test_python_and_cuda_are_what_the_build_asks_for() -> None:
    builds = Path(__file__).parents[3] / "roles" / "sglang_build" / "files" / "builds.yml"
    rules = yaml.safe_load(builds.read_text("utf-8"))
    for version in ("0.5.9", "0.5.10.post1", "0.5.11", "0.5.19", "0.5.21", "0.5.22", "0.5.23"):
        needs = needs_of(rules, version)
        assert ".".join(map(str, least_python(version))) == needs.python
        assert str(least_cuda(version, "12.0")[0]) == needs.cuda


def test_a_foreign_unit_is_taken_over_only_by_its_name_in_sglang_adopt() -> None:
    facts = replace(GOOD, foreign_unit="/etc/systemd/system/sglang-qwen.service")
    (found,) = [one for one in check(facts, WANTED) if one.id == "foreign_unit"]
    assert "add sglang-qwen to sglang_adopt" in found.advice
    assert [one for one in check(facts, replace(WANTED, adopt=True)) if one.id == "foreign_unit"] == []
