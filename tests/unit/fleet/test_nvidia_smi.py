# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated nvidia-smi: its output's form, and memory that follows processes."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fleet.config import FILES


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program as a module, with its files in a temporary folder and no processes of this machine."""
    loader = importlib.machinery.SourceFileLoader("nvidia_smi_simulated", str(FILES / "nvidia-smi"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module: ModuleType = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, loader.name, module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "SETTINGS", tmp_path / "settings.json")
    monkeypatch.setattr(module, "STATE", tmp_path / "state.json")
    monkeypatch.setattr(module, "as_root", lambda: None)
    monkeypatch.setattr(module, "processes", list)
    return module


def call(smi: Any, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nvidia-smi", *words])
    return int(smi.main())


def engine(smi: Any) -> list[Any]:
    return [
        smi.Process(10, "1", "python", dict.fromkeys(range(8), smi.MAIN_MIB)),
        smi.Process(11, "2", "sglang::scheduler", dict.fromkeys(range(8), smi.SCHEDULER_MIB)),
    ]


def used(smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[int]:
    assert call(smi, monkeypatch, "--query-gpu=memory.used", "--format=csv,noheader,nounits") == 0
    return [int(line) for line in capsys.readouterr().out.split()]


def test_a_query_has_the_real_one_s_form(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = "index,name,compute_cap,memory.total,power.limit,clocks.sm"
    assert call(smi, monkeypatch, f"--query-gpu={fields}", "--format=csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "index, name, compute_cap, memory.total [MiB], power.limit [W], clocks.current.sm [MHz]"
    assert lines[1] == "0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 12.0, 97887 MiB, 600.00 W, 180 MHz"
    assert len(lines) == 9


def test_an_unknown_field_ends_it_as_the_real_one(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        call(smi, monkeypatch, "--query-gpu=index,nonsense", "--format=csv")
    assert end.value.code == 2
    assert 'Field "nonsense" is not a valid field to query.' in capsys.readouterr().out


def test_processes_are_listed_on_every_card_with_their_memory(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(smi, "processes", lambda: engine(smi))
    query = "--query-compute-apps=pid,process_name,gpu_uuid,used_memory"
    assert call(smi, monkeypatch, query, "--format=csv,noheader") == 0
    rows = [line.split(", ") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 16
    assert len({row[2] for row in rows}) == 8
    assert {(row[0], row[3]) for row in rows} == {("10", "518 MiB"), ("11", "86016 MiB")}
    assert set(used(smi, monkeypatch, capsys)) == {518 + 86016 + smi.IDLE_MIB}


def test_memory_is_free_at_once_when_a_process_is_gone(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(smi, "processes", lambda: engine(smi))
    used(smi, monkeypatch, capsys)
    monkeypatch.setattr(smi, "processes", list)
    assert set(used(smi, monkeypatch, capsys)) == {smi.IDLE_MIB}


def test_memory_is_held_for_so_long_and_no_process_listed(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smi.SETTINGS.write_text(json.dumps({"hold_seconds": 20}))
    now = 1000.0
    monkeypatch.setattr(smi.time, "time", lambda: now)
    monkeypatch.setattr(smi, "processes", lambda: engine(smi))
    full = used(smi, monkeypatch, capsys)
    monkeypatch.setattr(smi, "processes", list)
    now = 5000.0  # long after it was last seen: the time counts from when it was first missed
    assert used(smi, monkeypatch, capsys) == full
    assert call(smi, monkeypatch, "--query-compute-apps=pid", "--format=csv,noheader") == 0
    assert capsys.readouterr().out == ""
    now = 5019.0
    assert used(smi, monkeypatch, capsys) == full
    now = 5021.0
    assert set(used(smi, monkeypatch, capsys)) == {smi.IDLE_MIB}


def test_cards_of_an_engine_can_be_fully_used_at_little_power(
    smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smi.SETTINGS.write_text(json.dumps({"waits_watts": 122}))
    query = ["--query-gpu=utilization.gpu,power.draw,power.limit", "--format=csv,noheader,nounits"]
    call(smi, monkeypatch, *query)
    assert "100" not in capsys.readouterr().out.split(",")[0]
    monkeypatch.setattr(smi, "processes", lambda: engine(smi))
    call(smi, monkeypatch, *query)
    assert capsys.readouterr().out.splitlines() == ["100, 122.00, 600.00"] * 8


def test_a_card_can_be_hidden(smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    smi.SETTINGS.write_text(json.dumps({"hidden": [3]}))
    assert call(smi, monkeypatch, "-L") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert not any(line.startswith("GPU 3:") for line in lines)


def test_topology_has_no_nvlink(smi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(smi, monkeypatch, "topo", "-m") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line.startswith("GPU")]
    assert len(rows) == 8
    assert rows[0][1:9] == [" X ", "PHB", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"]
    matrix = [row[1:9] for row in rows]
    assert all(matrix[i][j] == matrix[j][i] for i in range(8) for j in range(8))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("0,1:4096", {0: 4096, 1: 4096}), ("7", {7: 1024}), ("9", {}), ("all:5", dict.fromkeys(range(8), 5))],
)
def test_what_an_environment_asks_for(smi: Any, value: str, wanted: dict[int, int]) -> None:
    assert smi.wanted_memory(value) == wanted


@pytest.mark.parametrize(
    ("words", "mib"),
    [
        (["sglang::scheduler"], 86016),
        (["sglang::scheduler_TP0"], 86016),
        (["/opt/x/bin/python3.11", "-m", "sglang.launch_server", "--port", "1"], 518),
        (["python", "-m", "sglang.bench_serving"], None),
        (["grep", "-m", "sglang.launch_server"], None),
        (["sglang::detokenizer"], None),
    ],
)
def test_which_processes_use_cards(smi: Any, tmp_path: Path, words: list[str], mib: int | None) -> None:
    assert smi.memory_of(tmp_path, words).get(0) == mib


@pytest.mark.parametrize(
    ("own", "parents", "cards"),
    [
        (b"CUDA_VISIBLE_DEVICES=4,5,6,7\0A=1", b"", [4, 5, 6, 7]),
        (b"glang::scheduler\0", b"X=y\0CUDA_VISIBLE_DEVICES=0,1", [0, 1]),  # written over by its title
        (b"", b"", list(range(8))),
        (b"CUDA_VISIBLE_DEVICES=", b"", list(range(8))),
    ],
)
def test_an_engine_uses_the_cards_that_are_visible_to_it(
    smi: Any, tmp_path: Path, own: bytes, parents: bytes, cards: list[int]
) -> None:
    for pid, environ in ((7, own), (6, parents)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(environ)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) S {pid - 1} 1 1")
    assert list(smi.memory_of(tmp_path / "7", ["sglang::scheduler"])) == cards


def test_a_real_process_with_the_variable_is_seen_and_its_end_too() -> None:
    program = [
        sys.executable,
        "-B",
        str(FILES / "nvidia-smi"),
        "--query-compute-apps=pid,used_memory",
        "--format=csv,noheader",
    ]
    environment = {**os.environ, "LLMFLEET_SIM_AGAIN": "1"}
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={**os.environ, "LLMFLEET_SIM_GPU": "2:777"})
    try:
        seen = subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout
        assert f"{reader.pid}, 777 MiB" in seen.splitlines()
    finally:
        reader.communicate()
    gone = subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout
    assert f"{reader.pid}, 777 MiB" not in gone.splitlines()


def test_it_says_that_it_is_simulated() -> None:
    for word in ("--version", "-h"):
        command = [sys.executable, "-B", str(FILES / "nvidia-smi"), word]
        said = subprocess.run(command, check=False, capture_output=True, text=True)
        assert said.returncode == 0
        assert "SIMULATED" in said.stdout
