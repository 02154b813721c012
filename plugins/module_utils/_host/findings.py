# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings: what preflight has to say of a host, and how it is told. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

BLOCKS, WARNS, INFORMS = "blocks", "warns", "informs"
ORDER = (BLOCKS, WARNS, INFORMS)

# Every finding there is, by its stable identifier: what it is about. Operators accept findings by these names.
CATALOGUE = {
    "architecture": "The host is not x86-64.",
    "checkpoint_present": "The checkpoint lies on the host already.",
    "commands": "A command that the deployment needs is not there.",
    "cuda_lane": "The driver is too old for the CUDA that the release is built with.",
    "disk": "Too little free space where releases or checkpoints go.",
    "foreign_unit": "A unit of the instance's name is there that this collection did not make.",
    "gpu_capability": "A card has another compute capability than the profile is made for.",
    "gpu_count": "There are fewer or more cards than the deployment uses.",
    "gpu_ecc": "A card counted uncorrectable memory errors since its driver was loaded.",
    "gpu_hardly_seen": "Cards were looked at too seldom, while they were measured, to tell whether they starve.",
    "gpu_link": "A card runs on fewer PCIe lanes, or in a lower generation, than it could.",
    "gpu_memory": "A card has less memory than the profile needs.",
    "gpu_mig": "A card is split up by MIG.",
    "gpu_mixed": "The cards are not alike.",
    "gpu_numa": "The cards of one engine are on several NUMA nodes.",
    "gpu_p2p": "Cards of one engine cannot read each other's memory.",
    "gpu_persistence": "Persistence mode is off.",
    "gpu_power_limit": "A card's power limit is below its default.",
    "gpu_processes": "Somebody else's processes hold GPU memory.",
    "gpu_starved": "Cards were fully used at a low share of their power limit while they were measured.",
    "gpu_topology": "nvidia-smi does not tell how the cards are connected.",
    "gpu_unexplained": "GPU memory is in use that no listed process accounts for.",
    "gpu_xid": "The kernel's log has Xid errors of a card.",
    "iommu_acs": "Traffic between cards goes through the IOMMU, or up to the root complex by access control (ACS).",
    "listen_address": "The host cannot listen on the wanted address.",
    "memory_fit": "How weights and KV cache fit into the cards.",
    "multicast": "What needs multicast and the cards' having it do not go together.",
    "no_unit_file": "A service that is to be stopped has no unit file that it could be started from again.",
    "nvidia_smi": "nvidia-smi is missing, fails, or does not answer.",
    "os_release": "The operating system is none that the collection is made for.",
    "path": "A folder that the deployment uses cannot be used.",
    "peer_loads": "Kernels that load from another card are slow on this topology.",
    "port": "The wanted port is held by somebody else.",
    "python": "The Python for the release is missing, too old, or cannot make virtual environments.",
    "ram": "Main memory is less than the launch arguments ask for, or than the checkpoint.",
    "replaced_missing": "A service that is to be replaced does not exist.",
    "shm": "/dev/shm is missing or small.",
    "systemd": "systemd does not run, or does not answer.",
    "tensor_parallel": "The parallel sizes do not fit the cards or the model.",
    "time_sync": "The clock is not synchronised.",
    "triggered": "Another unit would start a service again that is to be stopped.",
}


@dataclass(frozen=True)
class Finding:
    """One thing found. `evidence` is what was seen, `advice` the next step."""

    id: str
    severity: str
    message: str
    evidence: str = ""
    advice: str = ""
    accepted: bool = False

    def __post_init__(self) -> None:
        if self.id not in CATALOGUE or self.severity not in ORDER:
            raise ValueError(f"unknown finding {self.id!r} or severity {self.severity!r}")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        advice = f" {self.advice}" if self.advice else ""
        return f"[{self.id}] {self.message}{advice}"


def sort(findings: Iterable[Finding]) -> list[Finding]:
    """Blocking ones first, then by identifier."""
    return sorted(findings, key=lambda one: (ORDER.index(one.severity), one.id, one.message))


def accept(findings: Iterable[Finding], accepted: Collection[str]) -> list[Finding]:
    """Mark the findings whose identifiers the operator accepts; ValueError names an identifier there is not."""
    unknown = sorted(set(accepted) - set(CATALOGUE))
    if unknown:
        raise ValueError(
            f"there is no finding named {', '.join(unknown)}; those that can be accepted are: {', '.join(CATALOGUE)}"
        )
    return [Finding(**{**one.as_dict(), "accepted": one.id in accepted}) for one in findings]


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """Those that keep a deployment from going on."""
    return [one for one in findings if one.severity == BLOCKS and not one.accepted]


def report(findings: Iterable[Finding]) -> str:
    """All blocking findings as one readable text; empty if there are none."""
    left = blocking(findings)
    if not left:
        return ""
    head = "One thing has" if len(left) == 1 else f"{len(left)} things have"
    names = ", ".join(sorted({one.id for one in left}))
    lines = [f"{number}. {one.describe()}" for number, one in enumerate(left, 1)]
    tail = f"Nothing was touched. To go on regardless, accept by identifier: {names} (sglang_accepted_findings)."
    return "\n".join([f"{head} to be put right on this host first:", *lines, tail])
