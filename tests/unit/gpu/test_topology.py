# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from how cards are connected, and that no answer, however odd, breaks the readers."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Gpu
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.kernel import parse_parameters, parse_xids
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.pci import redirects
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import (
    DISTANCES,
    Matrix,
    multicast,
    parse_matrix,
    refused,
)
from ansible_collections.llmfleet.sglang.tests.unit.gpu.eight import Eight
from hypothesis import given
from hypothesis import strategies as st


def _two(link: str) -> Matrix:
    return Matrix({"GPU0": {"GPU0": "X", "GPU1": link}, "GPU1": {"GPU0": link, "GPU1": "X"}})


@pytest.mark.parametrize(
    ("link", "capability", "fabric", "expected"),
    [
        ("NV18", "9.0", ("Completed", "Success"), "yes"),
        ("NV18", "10.0", ("Completed", "Success"), "yes"),
        ("NV18", "9.0", ("In Progress", ""), "no"),
        ("NV18", "9.0", ("Completed", "Failed"), "no"),
        ("NV18", "9.0", ("", ""), "unknown"),
        ("NV12", "8.0", ("", ""), "no"),
        ("PHB", "12.0", ("", ""), "no"),
        ("", "12.0", ("", ""), "no"),
    ],
)
def test_multicast(link: str, capability: str, fabric: tuple[str, str], expected: str) -> None:
    gpus = [
        Gpu(number, str(number), "card", 1, 0, capability, fabric_state=fabric[0], fabric_status=fabric[1])
        for number in range(2)
    ]
    assert multicast(_two(link), gpus)[0] == expected


def test_multicast_is_unknown_without_a_topology() -> None:
    gpus = [Gpu(number, str(number), "card", 1, 0, "9.0") for number in range(2)]
    assert multicast(Matrix(), gpus)[0] == "unknown"
    assert multicast(Matrix(), gpus[:1])[0] == "no"


def test_some_nvlinks_are_not_all(eight: Eight) -> None:
    matrix = Matrix(
        {
            "GPU0": {"GPU1": "NV4", "GPU2": "SYS"},
            "GPU1": {"GPU0": "NV4", "GPU2": "SYS"},
            "GPU2": {"GPU0": "SYS", "GPU1": "SYS"},
        }
    )
    assert (matrix.nvlink, matrix.farthest()) == ("some", "SYS")


def test_pairs_that_cannot_reach_each_other(eight: Eight) -> None:
    eight.p2p = "CNS"
    pairs = refused(eight.look().p2p)
    assert len(pairs) == 28 and set(pairs.values()) == {"CNS"}


@pytest.mark.parametrize("text", ["", "Failed to initialize NVML: Unknown Error\n", "This simulation knows: topo -m\n"])
def test_an_answer_without_a_table_is_an_empty_matrix(text: str) -> None:
    assert parse_matrix(text).links == {}


@given(st.integers(2, 8), st.data())
def test_a_table_reads_back_as_it_was_written(cards: int, data: st.DataObject) -> None:
    word = st.sampled_from(["NV18", *DISTANCES[1:]])
    names = [f"GPU{number}" for number in range(cards)]
    links = {one: {other: "X" if one == other else data.draw(word) for other in names} for one in names}
    head = "\t\x1b[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"
    rows = ["\t".join([one, *(f" {link} " for link in links[one].values()), "0-7", "0", "", "N/A"]) for one in names]
    matrix = parse_matrix("\n".join([head, *rows, "", "Legend:", "", "  X    = Self"]))
    assert matrix.links == links and matrix.numa == dict.fromkeys(names, "0")
    assert matrix.nvlink == "all" or matrix.farthest() != "NV"


@given(st.text(alphabet=st.sampled_from("GPU01 \tNVX\n:\x1b[4m")))
def test_no_answer_breaks_the_readers(text: str) -> None:
    matrix = parse_matrix(text)
    assert isinstance(matrix.pairs(), dict) and matrix.nvlink in ("", "all", "some", "none")
    parse_parameters(text)
    parse_xids(text)


@given(st.binary(max_size=4096))
def test_no_configuration_space_breaks_its_reader(config: bytes) -> None:
    assert redirects(config) in (True, False, None)
    assert redirects(config.ljust(4096, b"\x01")) in (True, False)
