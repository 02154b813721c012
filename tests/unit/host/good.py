# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with nothing the matter, and a deployment for it; tests spoil one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Gpu, GpuProcess, Reading
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.kernel import Kernel
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import View
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.pci import Slot
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import Matrix
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.facts import Facts, Interpreter, Space
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import Process
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.sockets import Listener
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import Unit
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.wanted import Wanted
from ansible_collections.llmfleet.sglang.tests.unit.host.fakes import CARD

GB = 10**9
COMMIT, REVISION = "c" * 40, "a" * 40
WANTED = Wanted(
    service="sglang-qwen",
    replaces=("sglang-kimi",),
    address="10.77.0.11",
    port=30000,
    paths={"root": "/opt/sglang", "models": "/models"},
    python="/usr/bin/python3",
    sglang_version="0.5.23",
    gpu_count=8,
    compute_capability="12.0",
    gpu_memory_mib=97887,
    root_bytes=30 * GB,
    models_bytes=223 * GB,
    commit=COMMIT,
)
CARDS = tuple(
    Gpu(index, f"GPU-{index}", CARD, 97887, 90000, "12.0", mig="Disabled", ecc_errors=0, persistence="Enabled")
    for index in range(8)
)
KIMI = Process(10, 1, 1, "S", "python3 -m sglang.launch_server", "sglang-kimi.service")
READING = Reading("ok", gpus=CARDS, processes=tuple(GpuProcess(10, card.uuid, 89500, "python3") for card in CARDS))
# Eight cards on one host bridge each, passed through the IOMMU, that can all read each other.
VIEW = View(
    reading=READING,
    cuda="13.0",
    topology=Matrix({f"GPU{one}": {f"GPU{other}": "PHB" for other in range(8)} for one in range(8)}),
    p2p=Matrix({f"GPU{one}": {f"GPU{other}": "OK" for other in range(8)} for one in range(8)}),
    kernel=Kernel("open", {"RegistryDwords": ""}, ("iommu=pt",), (), True),
    slots={card.uuid: Slot(f"0000:{card.index:02x}:00.0", 0, "passthrough", 16, 16) for card in CARDS},
)
GOOD = Facts(
    os_id="debian",
    os_version="12",
    os_name="Debian GNU/Linux 12 (bookworm)",
    architecture="x86_64",
    kernel="6.1.0",
    memory_total=512 * GB,
    memory_available=400 * GB,
    systemd=True,
    view=VIEW,
    gpu_owners={10: KIMI},
    spaces={
        "root": Space("/opt/sglang", "/opt", 1, 100 * GB, 10**7),
        "models": Space("/models", "/models", 2, 500 * GB, 10**7),
    },
    listeners=(Listener("0.0.0.0", 30000, 1, 10, KIMI.command, KIMI.unit),),
    bind_problem="",
    commands={"git": "/usr/bin/git", "rsync": "/usr/bin/rsync", "systemctl": "/usr/bin/systemctl"},
    interpreter=Interpreter("/usr/bin/python3", (3, 11, 2)),
    units={
        "sglang-qwen.service": Unit("sglang-qwen.service"),
        "sglang-kimi.service": Unit("sglang-kimi.service", "loaded", "active", "running"),
    },
    unit_problem="",
    foreign_unit="",
    checkpoint_bytes=0,
    releases={},
    shm=Space("/dev/shm", "/dev/shm", 3, 200 * GB, 10**6, total=256 * GB),
    clock_synchronised=True,
    model={},
)


def seen(**changes: Any) -> Facts:
    """The good host with these facts changed; `gpus` is what nvidia-smi tells of the cards."""
    if "gpus" in changes:
        changes["view"] = replace(GOOD.view, reading=changes.pop("gpus"))
    return replace(GOOD, **changes)


def cards(**changes: Any) -> Reading:
    """The cards with the third one changed."""
    gpus = list(CARDS)
    gpus[2] = replace(gpus[2], **changes)
    return replace(GOOD.gpus, gpus=tuple(gpus))
