# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of how a checkpoint goes from host to host."""

from __future__ import annotations


class ModuleDocFragment:
    """The options of taking files from other hosts, and of giving them."""

    DOCUMENTATION = r"""
options:
  peers:
    description: With O(source=peers), whom to take the files from.
    type: dict
    suboptions:
      addresses:
        description: Addresses in the order in which they are asked. One that dies is replaced by the next.
        type: list
        elements: str
        required: true
      port:
        description: The port that they serve on.
        type: int
        required: true
      secret:
        description: The secret of this deployment.
        type: str
        required: true
      manifest_digest:
        description: The RV(manifest_digest) of the host that fetched from the Hub; nothing else is taken.
        type: str
        required: true
      bytes:
        description: The RV(bytes) of that host, which check mode tells of; V(0) if they are not known.
        type: int
        default: 0
      timeout_stall:
        description: Seconds without a byte after which a host is given up and the next one asked.
        type: int
        default: 60
      patience:
        description: Seconds in which no host has anything for this one, neither bytes nor a queue, before it fails.
        type: int
        default: 600
  serve:
    description:
      - Once the checkpoint is complete, gives it to others with rsync, read-only, as a user without rights, in a
        transient systemd unit (see M(llmfleet.sglang.checkpoint_server), which ends it).
    type: dict
    suboptions:
      address:
        description: The address to listen on.
        type: str
        required: true
      port:
        description: The port to listen on.
        type: int
        required: true
      peers:
        description: Addresses that may ask.
        type: list
        elements: str
        required: true
      secret:
        description: What they have to know.
        type: str
        required: true
      seconds:
        description: Seconds after which it ends in any case.
        type: int
        default: 14400
      transfers:
        description: How many hosts are served at the same time.
        type: int
        default: 1
      limit:
        description: Bytes a second for all transfers together; V(0) is no limit.
        type: int
        default: 0
"""
