# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What preflight makes of the ways between the cards. PRIVATE to the collection.

All of it is about engines on several cards; one on the CPU or on one card has nothing to say here.
"""

from __future__ import annotations

from .._gpu.look import View
from .._gpu.pci import TRANSLATED
from .._gpu.topology import NO, YES, refused
from .facts import Facts
from .findings import INFORMS, WARNS, Finding
from .wanted import Launch, Wanted

FORCED_P2P = "ForceP2P"
FUSED = ("enable-flashinfer-allreduce-fusion", "flashinfer-allreduce-fusion-backend")
MULTICAST_ONLY = ("enable-torch-symm-mem", "enable-symm-mem", "enable-nccl-nvls")


def check_fabric(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Findings on topology, peer to peer, IOMMU and ACS, NUMA nodes and multicast."""
    return check_ways(facts.view, wanted.launch) if wanted.gpu_count else []


def check_ways(view: View, launch: Launch) -> list[Finding]:
    """Return the same for an engine that is started, or runs, so."""
    if not launch.on_cards or launch.ranks < 2 or len(view.reading.gpus) < 2:
        return []
    return [
        *_topology(view),
        *_p2p(view, launch),
        *_iommu_acs(view, launch),
        *_numa(view),
        *_peer_loads(view, launch),
        *_multicast(view, launch),
    ]


def _topology(view: View) -> list[Finding]:
    if view.topology.links and view.p2p.links:
        return []
    why = "; ".join(view.problems) or "its answer has no table"
    message = f"How the cards reach each other could not be learnt, and was not judged: {why}."
    return [Finding("gpu_topology", INFORMS, message, why, "Run nvidia-smi topo -m and topo -p2p r by hand.")]


def _p2p(view: View, launch: Launch) -> list[Finding]:
    bad = refused(view.p2p)
    if not bad or launch.switched_on("NCCL_P2P_DISABLE"):
        return []
    first, word = next(iter(bad.items()))
    message = (
        f"{len(bad)} of {len(view.p2p.pairs())} pairs of cards cannot read each other's memory, such as "
        f"{' and '.join(first)} ({word}): every exchange goes through main memory."
    )
    evidence = ", ".join(f"{one}-{other} {why}" for (one, other), why in bad.items())
    advice = "Take NVIDIA's open kernel module, and look at the firmware's settings for peer to peer, IOMMU and ACS."
    return [Finding("gpu_p2p", WARNS, message, evidence, advice)]


def _iommu_acs(view: View, launch: Launch) -> list[Finding]:
    """Seen on this kind of host: both together, and the first NCCL all-reduce never ends (NVIDIA/nccl issue 1999)."""
    if view.topology.nvlink == "all" or launch.switched_on("NCCL_P2P_DISABLE"):
        return []
    words, advice = [], []
    if view.iommu == TRANSLATED:
        words.append("the IOMMU translates for the cards (no iommu=pt, or not in effect)")
        advice.append("boot with iommu=pt, or switch the IOMMU off in the firmware")
    if view.redirecting:
        words.append(f"access control (ACS) redirects on the bridges {', '.join(view.redirecting)}")
        advice.append("switch ACS off in the firmware, or clear its redirect bits at boot")
    if not words:
        return []
    end = "NCCL was seen to hang with both." if len(words) > 1 else "Peer to peer is slower than it could be."
    steps = " and ".join(advice)
    return [
        Finding(
            "iommu_acs",
            WARNS,
            f"On the way between the cards, {' and '.join(words)}. {end}",
            f"iommu: {view.iommu}, command line: {' '.join(view.kernel.command_line) or 'nothing on it'}",
            f"{steps[:1].upper()}{steps[1:]}; or set NCCL_P2P_DISABLE to 1 in sglang_environment.",
        )
    ]


def _numa(view: View) -> list[Finding]:
    nodes: dict[str, list[int]] = {}
    for gpu in view.reading.gpus:
        node = view.slot(gpu).numa_node
        told = view.topology.numa.get(f"GPU{gpu.index}", "") if node is None else str(node)
        if told.isdigit():
            nodes.setdefault(told, []).append(gpu.index)
    if len(nodes) < 2 or view.topology.nvlink == "all":
        return []
    seen = ", ".join(f"GPUs {', '.join(map(str, cards))} on node {node}" for node, cards in sorted(nodes.items()))
    message = f"The cards are on {len(nodes)} NUMA nodes, so that every all-reduce crosses the sockets: {seen}."
    advice = "Measure tensor parallel within a node beside it; what helps on one node may lose across two."
    return [Finding("gpu_numa", INFORMS, message, seen, advice)]


def _peer_loads(view: View, launch: Launch) -> list[Finding]:
    """Loads that kernels issue themselves were 15 times slower than NCCL on boards of this kind (rtx6kpro wiki)."""
    registry = "".join(value for name, value in view.kernel.parameters.items() if name.startswith("RegistryDwords"))
    if view.topology.farthest() not in ("NODE", "SYS") or FORCED_P2P in registry or not view.kernel.parameters:
        return []
    asked = [name for name in FUSED if launch.has(name)]
    asked += [name for name in ("SGLANG_ENABLE_PCIE_IPC_ALLREDUCE",) if launch.switched_on(name)]
    here = f" {', '.join(asked)} asks for such kernels." if asked else " This deployment asks for none."
    return [
        Finding(
            "peer_loads",
            WARNS if asked else INFORMS,
            "Custom and fused all-reduce will be slow here: cards are connected beyond one host bridge "
            f"({view.topology.farthest()}), and the driver may stage loads from another card through main memory "
            f"(RegistryDwords without ForceP2P).{here}",
            f"topology: {view.topology.farthest()}, RegistryDwords: {registry or 'empty'}",
            "Leave the all-reduce to NCCL, or try the other on one host against a measured baseline.",
        )
    ]


def _multicast(view: View, launch: Launch) -> list[Finding]:
    supported, why = view.multicast
    asked = [name for name in MULTICAST_ONLY if launch.has(name)]
    fused = [name for name in FUSED if launch.has(name)]
    kernels = ["multimem kernels (sglang_multimem_world_sizes)"] if launch.multimem else []
    if supported == NO and asked + fused + kernels:
        return [
            Finding(
                "multicast",
                WARNS,
                f"{', '.join(asked + fused + kernels)}: this needs multicast, which the cards have not ({why}). SGLang "
                "leaves the path out, or fails at the start.",
                why,
                "Take it out; or try it on one host, with the way back armed, and see that it starts and answers.",
            )
        ]
    if supported == YES and "sm120" in launch.patch_sets and not launch.multimem:
        message = "The cards have multicast, and the patch set sm120 gives them no world sizes for multimem kernels."
        advice = "Set sglang_multimem_world_sizes to [4, 6, 8], as the neighbouring capability has it."
        return [Finding("multicast", INFORMS, message, why, advice)]
    return []
