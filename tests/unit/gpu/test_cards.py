# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi's words: recorded ones, and the odd ones that hosts print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import (
    Gpu,
    GpuProcess,
    Reading,
    parse_gpus,
    parse_processes,
    read_gpus,
    unexplained,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import FakeHost

RECORDED = Path(__file__).parent / "recordings" / "h200-x2"
QUERY = [
    "index",
    "name",
    "uuid",
    "compute_cap",
    "driver_version",
    "memory.total",
    "memory.used",
    "power.draw",
    "power.limit",
    "utilization.gpu",
    "clocks.sm",
    "pcie.link.gen.current",
    "pcie.link.width.current",
    "ecc.errors.uncorrected.volatile.total",
]


def test_a_recorded_query() -> None:
    gpus = parse_gpus((RECORDED / "query.csv").read_text(), QUERY)
    assert [gpu.index for gpu in gpus] == [0, 1]
    assert gpus[1].uuid == "GPU-00000000-0000-0000-0000-000000000001"
    assert (gpus[0].name, gpus[0].compute_capability, gpus[0].driver) == ("NVIDIA H200", "9.0", "580.159.04")
    assert (gpus[0].memory_total, gpus[0].memory_used, gpus[0].power_limit) == (143771, 0, 700.0)
    assert (gpus[0].link_width, gpus[0].link_width_max, gpus[0].ecc_errors) == (16, None, 0)


def test_recorded_processes() -> None:
    text = (RECORDED / "compute_apps.csv").read_text()
    found = parse_processes(text, ["pid", "process_name", "used_memory", "gpu_uuid"])
    assert found[0] == GpuProcess(569, "GPU-00000000-0000-0000-0000-000000000000", 874, "python3")
    assert len(found) == 2


def test_fields_without_an_answer_are_unknown() -> None:
    text = "0, GPU-1, [N/A], [Not Supported], [Unknown Error], NVIDIA Thing, with a comma\n"
    fields = ["index", "uuid", "memory.total", "memory.used", "ecc.errors.uncorrected.volatile.total", "name"]
    (gpu,) = parse_gpus(text, fields)
    assert (gpu.memory_total, gpu.memory_used, gpu.ecc_errors) == (None, None, None)
    assert gpu.name == "NVIDIA Thing, with a comma"


def test_colour_codes_and_blank_lines_are_passed_over() -> None:
    assert parse_processes("\n\x1b[4m7, GPU-1, 5, python3\x1b[0m\n\nNo running processes found\n") == [
        GpuProcess(7, "GPU-1", 5, "python3")
    ]


@pytest.mark.parametrize("line", ["0, GPU-1", "x, GPU-1, 5, 6, card", "Unable to determine the device handle"])
def test_a_line_that_does_not_fit_is_an_error_and_not_a_missing_card(line: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        parse_gpus(line, ["index", "uuid", "memory.total", "memory.used", "name"])


def test_a_reading_of_a_host(host: FakeHost) -> None:
    host.add_process(10, gpu=500)
    host.stray_memory = 30
    reading = read_gpus(host.run, 5)
    assert (reading.status, len(reading.gpus), len(reading.processes)) == ("ok", 2, 2)
    assert reading.gpus[0].memory_used == 530
    assert reading.card("GPU-0000-1") == "GPU 1" and reading.card("GPU-9") == "GPU-9"


@pytest.mark.parametrize(
    ("problem", "status"), [("missing", "missing"), ("hung", "hung"), ("NVIDIA-SMI has failed", "failed")]
)
def test_what_keeps_nvidia_smi_from_answering(host: FakeHost, problem: str, status: str) -> None:
    host.gpu_problem = problem
    reading = read_gpus(host.run, 5)
    assert reading.status == status and "nvidia-smi" in reading.message


def test_fields_that_an_old_driver_does_not_know_are_left_out(host: FakeHost) -> None:
    asked: list[str] = []

    def run(argv: Sequence[str], timeout: float) -> Outcome:
        if "--query-gpu" in argv[1]:
            asked.append(argv[1])
            for field in ("pcie.link.width.max", "compute_cap"):
                if field in argv[1]:
                    return Outcome(tuple(argv), 2, f'Field "{field}" is not a valid field to query.\n')
        return host.run(argv, timeout)

    reading = read_gpus(run, 5)
    assert (reading.status, len(asked)) == ("ok", 3)
    assert reading.gpus[0].compute_capability == ""


def test_a_needed_field_that_is_not_known_fails() -> None:
    def run(argv: Sequence[str], timeout: float) -> Outcome:
        return Outcome(tuple(argv), 2, 'Field "memory.used" is not a valid field to query.\n')

    assert read_gpus(run, 5).status == "failed"


def test_memory_that_nobody_accounts_for() -> None:
    gpus = tuple(Gpu(index, f"GPU-{index}", "card", 1000, used) for index, used in enumerate((900, 500, None, 50)))
    processes = (
        GpuProcess(1, "GPU-0", 400, "a"),
        GpuProcess(2, "GPU-0", 100, "b"),
        GpuProcess(3, "GPU-1", None, "c"),
        GpuProcess(4, "GPU-3", 60, "d"),
    )
    assert unexplained(Reading("ok", gpus=gpus, processes=processes)) == {"GPU-0": 400, "GPU-3": 0}
