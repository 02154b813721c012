# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cards and how they are connected: recordings of real hosts, and hosts made by hand."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import ALL_FIELDS, Gpu, parse_gpus, read_loads
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.kernel import (
    driver_kind,
    parse_parameters,
    parse_xids,
    read_log,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import CUDA, look
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.pci import address, redirects
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import (
    parse_matrix,
    refused,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import run as really_run
from ansible_collections.llmfleet.sglang.tests.unit.gpu.eight import BUSES, Eight, acs

RECORDINGS = Path(__file__).parent / "recordings"
TWO, ONE = RECORDINGS / "h200-x2", RECORDINGS / "h200-x1"
# The query of which h200-x1/all_fields.csv is the answer.
ASKED = [
    *("index", "uuid", "compute_cap", "driver_version", "memory.total", "memory.used", "power.draw", "power.limit"),
    *("power.default_limit", "power.max_limit", "utilization.gpu", "clocks.sm", "clocks.max.sm", "clocks.mem"),
    *("temperature.gpu", "persistence_mode", "mig.mode.current", "ecc.mode.current"),
    *("ecc.errors.uncorrected.volatile.total", "ecc.errors.corrected.volatile.total"),
    *("ecc.errors.uncorrected.aggregate.total", "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.gen.gpumax"),
    *("pcie.link.gen.hostmax", "pcie.link.width.current", "pcie.link.width.max", "clocks_event_reasons.active"),
    *("pci.bus_id", "fabric.state", "fabric.status", "name"),
]

# recordings ----------------------------------------------------------------------------------------------------


def test_every_field_that_is_asked_for_was_answered_by_a_real_driver() -> None:
    assert set(ALL_FIELDS) <= set(ASKED)
    (gpu,) = parse_gpus((ONE / "all_fields.csv").read_text(), ASKED)
    assert gpu == Gpu(
        index=0,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        name="NVIDIA H200",
        memory_total=143771,
        memory_used=0,
        compute_capability="9.0",
        driver="580.159.04",
        power_limit=700.0,
        persistence="Enabled",
        mig="Disabled",
        ecc_errors=0,
        link_width=16,
        link_width_max=16,
        bus_id="00000000:00:06.0",
        power_draw=79.36,
        power_limit_default=700.0,
        utilisation=0.0,
        temperature=33,
        clock_sm=345,
        clock_sm_max=1980,
        clock_memory=3201,
        clocks_slowed_by=(),
        ecc="Enabled",
        ecc_corrected=0,
        ecc_errors_ever=0,
        link_generation=5,
        link_generation_max=5,
        link_generation_card=5,
    )


def test_two_cards_on_nvlink() -> None:
    topology = parse_matrix((TWO / "topo_m.txt").read_text())
    assert topology.links == {"GPU0": {"GPU0": "X", "GPU1": "NV18"}, "GPU1": {"GPU0": "NV18", "GPU1": "X"}}
    assert (topology.cpus, topology.numa) == ({"GPU0": "0-31", "GPU1": "0-31"}, {"GPU0": "0", "GPU1": "0"})
    assert (topology.nvlink, topology.farthest()) == ("all", "NV")
    p2p = parse_matrix((TWO / "p2p_r.txt").read_text())
    assert p2p.pairs() == {("GPU0", "GPU1"): "OK"} and refused(p2p) == {}


def test_one_card_has_no_pairs() -> None:
    for name in ("topo_m.txt", "p2p_r.txt"):
        matrix = parse_matrix((ONE / name).read_text())
        assert matrix.links == {"GPU0": {"GPU0": "X"}}
        assert (matrix.pairs(), matrix.nvlink, matrix.farthest()) == ({}, "", "")


def test_the_csv_says_what_the_xml_of_the_same_host_says() -> None:
    tree = ElementTree.parse(TWO / "smi_q.xml").getroot()
    fields = (
        "index,name,uuid,compute_cap,driver_version,memory.total,memory.used,power.draw,power.limit,utilization.gpu,"
    )
    fields += "clocks.sm,pcie.link.gen.current,pcie.link.width.current,ecc.errors.uncorrected.volatile.total"
    gpus = parse_gpus((TWO / "query.csv").read_text(), fields.split(","))
    assert len(gpus) == len(tree.findall("gpu"))
    for gpu, told in zip(gpus, tree.findall("gpu")):
        assert gpu.uuid == told.findtext("uuid")
        assert f"{gpu.memory_total} MiB" == told.findtext("fb_memory_usage/total")
        assert f"{gpu.power_limit:.2f} W" == told.findtext("gpu_power_readings/current_power_limit")
        assert f"{gpu.link_width}x" == told.findtext("pci/pci_gpu_link_info/link_widths/current_link_width")
    for name in ("smi.txt", "smi_q.xml"):
        assert (tree.findtext("cuda_version"), "13.0") == ("13.0", _cuda((TWO / name).read_text()))
    assert _cuda((ONE / "version.txt").read_text()) == "13.0"


def _cuda(text: str) -> str:
    match = CUDA.search(text.replace("cuda_version>", "CUDA Version: "))
    return match[1] if match else ""


def test_driver_parameters_and_kind() -> None:
    parameters = parse_parameters((TWO / "params.txt").read_text())
    assert parameters["RegistryDwords"] == "" and parameters["DmaRemapPeerMmio"] == "1"
    assert "DeviceFileMode" not in parameters
    assert driver_kind((ONE / "driver_version.txt").read_text()) == "open"
    assert driver_kind("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14") == "proprietary"
    assert driver_kind("") == ""


def test_a_recorded_unknown_field_is_left_out(eight: Eight) -> None:
    answer = (ONE / "unknown_field.txt").read_text().replace("foo.bar", "fabric.status")

    def run(argv: Sequence[str], timeout: float) -> Outcome:
        return Outcome(tuple(argv), 2, answer) if "fabric.status" in " ".join(argv) else eight.run(argv, timeout)

    view = look(run, 5, str(eight.root / "proc"), str(eight.root / "sys"), str(eight.root / "kmsg"))
    assert len(view.reading.gpus) == 8 and view.reading.gpus[0].power_draw == 31.2


# eight cards ---------------------------------------------------------------------------------------------------


def test_eight_cards_on_two_sockets(eight: Eight) -> None:
    eight.processes = [(10, 2, "500", "python3"), (11, 2, "[N/A]", "other, with a comma")]
    view = eight.look()
    assert len(view.reading.gpus) == 8
    assert (view.cuda, view.kernel.module, view.iommu) == ("13.0", "open", "passthrough")
    assert view.kernel.command_line == ("iommu=pt", "amd_iommu=on")
    assert (view.topology.farthest(), view.topology.nvlink) == ("SYS", "none")
    assert len(view.topology.pairs()) == 28 and view.topology.numa["GPU7"] == "1"
    assert view.topology.links["GPU0"]["NIC0"] == "SYS" and view.topology.links["NIC0"]["NIC0"] == "X"
    assert view.multicast == ("no", "not all cards are joined by NVLinks")
    told = view.as_dict()
    assert told["gpus"][2]["processes"] == [
        {"pid": 10, "name": "python3", "memory": 500},
        {"pid": 11, "name": "other, with a comma", "memory": None},
    ]
    assert told["gpus"][7]["slot"]["numa_node"] == 1 and told["gpus"][0]["xid_count"] == 0
    assert told["acs"] == {"redirecting": [], "known": True} and told["problems"] == []


@pytest.mark.parametrize("word", ["PIX", "PXB", "PHB", "NODE", "SYS", "NV4"])
def test_one_kind_of_link_for_all(eight: Eight, word: str) -> None:
    eight.link = word
    view = eight.look()
    assert view.topology.farthest() == ("NV" if word == "NV4" else word)
    assert view.topology.nvlink == ("all" if word == "NV4" else "none")


def test_nvidia_smi_is_asked_each_question_once(eight: Eight) -> None:
    eight.look()
    assert sorted(" ".join(call[:2]).partition("=")[0] for call in eight.calls) == [
        "nvidia-smi --query-compute-apps",
        "nvidia-smi --query-gpu",
        "nvidia-smi --version",
        "nvidia-smi topo",
        "nvidia-smi topo",
    ]


def test_a_missing_card_is_not_made_up(eight: Eight) -> None:
    del eight.cards[3]
    view = eight.look()
    assert [gpu.index for gpu in view.reading.gpus] == [0, 1, 2, 4, 5, 6, 7]
    assert "GPU3" not in view.topology.links and len(view.topology.pairs()) == 21


def test_a_card_at_x4_is_held_against_what_the_card_itself_can(eight: Eight) -> None:
    # In a slot of four lanes nvidia-smi's maximum is four too: "possible with this GPU and system configuration".
    eight.cards[5] |= {"pcie.link.width.current": "4", "pcie.link.width.max": "4"}
    view = eight.look()
    card = view.reading.gpus[5]
    assert (card.link_width, card.link_width_max, view.link_width_best(card)) == (4, 4, 16)


def test_errors_in_the_kernels_log_are_counted_by_card(eight: Eight) -> None:
    eight.write(
        "kmsg",
        "6,1,1,-;NVRM: loading\n"
        "4,2,2,-;NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        " SUBSYSTEM=pci\n"
        "4,3,3,-;NVRM: Xid (PCI:0000:C1:00): 31, pid=99, name=python3, Ch 00000008\n"
        "4,4,4,-;NVRM: Xid (PCI:0000:c1:00): 31, pid=99, name=python3, Ch 00000009\n",
    )
    view = eight.look()
    assert [card["xid_count"] for card in view.as_dict()["gpus"]] == [0, 0, 1, 0, 0, 0, 2, 0]
    fell, fault = view.kernel.xids or ()
    assert (fell.number, fell.programs_own, fault.programs_own) == (79, False, True)
    assert "fallen off the bus" in fell.last and fault.last.endswith("Ch 00000009")


def test_a_log_that_cannot_be_read_is_unknown_and_not_clean(eight: Eight) -> None:
    (eight.root / "kmsg").unlink()
    view = eight.look()
    assert view.kernel.xids is None and view.as_dict()["gpus"][0]["xid_count"] is None


def test_a_pipe_in_the_place_of_the_log_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    assert read_log(str(tmp_path / "kmsg")) is None


def test_dmesg_reads_like_the_log() -> None:
    (xid,) = parse_xids("[   12.5] NVRM: Xid (PCI:0000:01:00): 48, pid=1, double bit error\n")
    assert (xid.address, xid.number, xid.count) == ("0000:01:00.0", 48, 1)


def test_translation_and_redirecting_bridges_are_seen(eight: Eight) -> None:
    eight.iommu(1, "DMA-FQ")
    eight.bridge(6, 0x1D)  # what Linux switches on with an IOMMU: SrcValid, ReqRedir, CmpltRedir, UpstreamFwd
    view = eight.look()
    assert (view.iommu, view.redirecting) == ("translated", ["0000:c0:01.1"])


def test_without_root_acs_is_unknown(eight: Eight) -> None:
    (eight.root / "sys/bus/pci/devices/0000:c0:01.1/config").write_bytes(bytes(64))
    view = eight.look()
    assert view.redirecting == [] and view.as_dict()["acs"]["known"] is False


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (b"", None),
        (bytes(64), None),
        (bytes(256), None),
        (bytes(4096), False),
        (acs(0), False),
        (acs(0x01), False),
        (acs(0x04), True),
        (acs(0x08), True),
        (bytes(0x100) + b"\x01\x00\x01\x10" * 8, False),  # a capability that names itself as the next
    ],
)
def test_access_control_in_configuration_space(config: bytes, expected: bool | None) -> None:
    assert redirects(config) is expected


def test_hosts_without_an_iommu_or_without_the_slot(eight: Eight) -> None:
    for number in range(8):
        group = next((eight.root / "sys/devices").glob(f"*/*/0000:{BUSES[number]}:00.0/iommu_group"))
        (group / "type").unlink()
        group.rmdir()
    assert eight.look().iommu == "off"
    (eight.root / "sys/class/iommu/dmar0").mkdir(parents=True)
    assert eight.look().iommu == "unknown"
    for link in (eight.root / "sys/bus/pci/devices").iterdir():
        link.unlink()
    view = eight.look()
    assert view.iommu == "unknown" and view.slot(view.reading.gpus[0]).width is None
    assert view.as_dict()["acs"] == {"redirecting": [], "known": False}


@pytest.mark.parametrize(
    ("told", "expected"), [("00000000:C1:00.0", "0000:c1:00.0"), ("0000:41:00", "0000:41:00.0"), ("", ""), ("?", "")]
)
def test_addresses_are_brought_to_one_form(told: str, expected: str) -> None:
    assert address(told) == expected


# what cannot be asked ------------------------------------------------------------------------------------------


def test_without_nvidia_smi_the_rest_is_still_told(eight: Eight) -> None:
    eight.problems["nvidia-smi"] = Outcome(("nvidia-smi",), None, problem="missing")
    view = eight.look()
    assert (view.reading.status, view.reading.message) == ("missing", "the command nvidia-smi is not there")
    assert view.kernel.module == "open" and view.problems == ()
    assert view.as_dict()["multicast"]["supported"] == "no"


def test_a_hung_nvidia_smi_is_told_as_such(eight: Eight) -> None:
    eight.hang()
    assert eight.look().reading.status == "hung"


def test_one_hung_question_leaves_the_others_answers(eight: Eight) -> None:
    eight.hang("topo -p2p")
    view = eight.look()
    assert view.reading.status == "ok" and view.topology.farthest() == "SYS"
    assert view.p2p.links == {} and view.problems == ("nvidia-smi topo -p2p did not end in time and was given up",)


def test_a_real_hanging_command_costs_one_timeout_and_not_five(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "nvidia-smi"
    stub.write_text("#!/bin/sh\nexec sleep 600\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    begun = time.monotonic()
    view = look(really_run, 2, str(tmp_path), str(tmp_path), str(tmp_path / "none"))
    assert view.reading.status == "hung"
    assert time.monotonic() - begun < 9  # five questions in turn would take ten


def test_an_old_driver_without_version_option_is_asked_for_its_table(eight: Eight) -> None:
    eight.problems["--version"] = Outcome(("nvidia-smi", "--version"), 2, "Invalid option --version\n")
    view = eight.look()
    assert view.cuda == "13.0" and view.problems == ()


def test_fields_without_an_answer(eight: Eight) -> None:
    for card in eight.cards.values():
        card.update({name: "[N/A]" for name in card if name not in ("name", "memory.total", "memory.used")})
    view = eight.look()
    gpu = view.reading.gpus[0]
    assert (gpu.power_draw, gpu.compute_capability, gpu.clocks_slowed_by, gpu.ecc) == (None, "", (), "")


def test_what_slows_the_clocks_is_told_in_words(eight: Eight) -> None:
    eight.cards[0]["clocks_event_reasons.active"] = "0x0000000000000024"
    assert eight.look().reading.gpus[0].clocks_slowed_by == ("power limit", "thermal limit")


def test_loads(eight: Eight) -> None:
    eight.cards[1] |= {"utilization.gpu": "100", "power.draw": "250.10"}
    loads = read_loads(eight.run, 5)
    assert (loads[1].utilisation, loads[1].draw, loads[1].limit) == (100.0, 250.1, 600.0)


def test_no_identifier_of_a_real_machine_is_in_the_recordings() -> None:
    for path in RECORDINGS.rglob("*.*"):
        for found in re.findall(r"GPU-[0-9a-f]{8}-[0-9a-f-]+", path.read_text()):
            assert found.startswith("GPU-00000000-0000-0000-0000-"), path
