#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what the cards of a host are, and how they are connected."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Tell what a host's NVIDIA cards are, do, and how they are connected
version_added: 0.1.0
author: llmfleet engineers (@llmfleet)
description:
  - Asks C(nvidia-smi) each question once and all at the same time, and reads C(/proc), C(/sys) and the kernel's log. No
    Python package is needed on the host.
  - A host without C(nvidia-smi), or with one that hangs, is no failure. RV(status) says so.
  - What only root may read is unknown for others, namely the kernel's log (RV(xids)) and access control services
    (RV(acs)).
options:
  timeout:
    description:
      - Seconds that one call of C(nvidia-smi) may take. One that hangs is given up, and the others' answers stand.
    type: int
    default: 20
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Look at the cards
  llmfleet.sglang.gpu_info:
  become: true
  register: cards

- name: Say how far apart they are
  ansible.builtin.debug:
    msg: "{{ cards.gpus | length }} cards, farthest {{ cards.farthest }}, multicast {{ cards.multicast.supported }}"
"""

RETURN = r"""
status:
  description: One of V(ok), V(missing) (there is no C(nvidia-smi)), V(hung) and V(failed).
  returned: always
  type: str
message:
  description: What is the matter, if RV(status) is not V(ok).
  returned: always
  type: str
problems:
  description: Questions that were not answered though others were, a sentence each.
  returned: always
  type: list
  elements: str
gpus:
  description: The cards. A value that C(nvidia-smi) does not tell is null, or an empty text.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: Number that C(nvidia-smi) gives it.
      type: int
    name:
      description: Product name.
      type: str
    uuid:
      description: Identifier.
      type: str
    compute_capability:
      description: Compute capability.
      type: str
      sample: "12.0"
    driver:
      description: Version of the driver.
      type: str
    memory_total:
      description: MiB.
      type: int
    memory_used:
      description: MiB.
      type: int
    power_draw:
      description: Watts now.
      type: float
    power_limit:
      description: Watts at most.
      type: float
    power_limit_default:
      description: What that limit is by default.
      type: float
    utilisation:
      description: Percent of time in which a kernel ran.
      type: float
    temperature:
      description: Degrees Celsius.
      type: int
    clock_sm:
      description: MHz now.
      type: int
    clock_sm_max:
      description: MHz at most.
      type: int
    clock_memory:
      description: MHz now.
      type: int
    clocks_slowed_by:
      description: What holds the clocks down now, such as V(power limit). Idleness is none.
      type: list
      elements: str
    persistence:
      description: Persistence mode, V(Enabled) or V(Disabled).
      type: str
    mig:
      description: MIG mode, V(Enabled) or V(Disabled).
      type: str
    ecc:
      description: Whether memory is checked, V(Enabled) or V(Disabled).
      type: str
    ecc_errors:
      description: Uncorrectable errors since the driver was loaded.
      type: int
    ecc_corrected:
      description: Corrected errors since the driver was loaded.
      type: int
    ecc_errors_ever:
      description: Uncorrectable errors over the card's life.
      type: int
    xid_count:
      description: Xid errors in the kernel's log. Null if the log cannot be read.
      type: int
    bus_id:
      description: PCI address.
      type: str
    link_generation:
      description: PCIe generation now. An idle card lowers it.
      type: int
    link_generation_max:
      description: Generation that card and slot can do together.
      type: int
    link_generation_card:
      description: Generation that the card can do.
      type: int
    link_width:
      description: PCIe lanes now.
      type: int
    link_width_max:
      description: Lanes that card and slot can do together.
      type: int
    link_width_best:
      description: Lanes that the card has.
      type: int
    fabric_state:
      description: Whether it has joined an NVLink fabric.
      type: str
    fabric_status:
      description: How that went.
      type: str
    slot:
      description: What sysfs says of where it is plugged in.
      type: dict
    processes:
      description: Processes that hold its memory, each with C(pid), C(name) and C(memory) in MiB.
      type: list
      elements: dict
driver:
  description:
    - The driver's C(version), the newest C(cuda) that it runs, the kernel C(module) (V(open) or V(proprietary)), the
      C(parameters) that bear on how cards reach each other, and C(uvm_hmm).
  returned: always
  type: dict
topology:
  description: C(nvidia-smi topo -m) by card, namely C(links), C(cpus) and C(numa).
  returned: always
  type: dict
p2p:
  description: C(nvidia-smi topo -p2p r), whether one card may read another's memory.
  returned: always
  type: dict
farthest:
  description: The longest way between two cards.
  returned: always
  type: str
  sample: SYS
nvlink:
  description: Whether NVLinks join V(all) cards, V(some) or V(none).
  returned: always
  type: str
multicast:
  description:
    - Whether the cards have NVLink multicast, C(supported) being V(yes), V(no) or V(unknown), and the C(reason).
  returned: always
  type: dict
iommu:
  description:
    - What the IOMMU does with the cards, C(state) being V(off), V(passthrough), V(translated) or V(unknown), and the
      kernel's parameters on it (C(command_line)).
  returned: always
  type: dict
acs:
  description:
    - Bridges above the cards that send traffic between cards up to the root complex (C(redirecting)), and whether that
      is C(known).
  returned: always
  type: dict
xids:
  description: Xid errors by card and number. Null if the kernel's log cannot be read.
  returned: always
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import look
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import run


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"timeout": {"type": "int", "default": 20}}, supports_check_mode=True)
    module.exit_json(changed=False, **look(run, module.params["timeout"]).as_dict())


if __name__ == "__main__":
    main()
