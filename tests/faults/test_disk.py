# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk that is full when the unit, or the host record, has to be written."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from tests.faults.breaking import RECORD, SERVES_AGAIN, another, converges, deploy, refused, restored
from tests.fleet.hosts import Serving, root, serving

# Puts a folder's content on a file system of its own, and fills that to the last byte.
FILL = """
set -e
cp --archive %s /run/llmfleet-test-copy
mount -t tmpfs -o size=1m,mode=0755 none %s
cp --archive /run/llmfleet-test-copy/. %s
rm -r /run/llmfleet-test-copy
dd if=/dev/zero of=%s/.full bs=4k 2>/dev/null || true
dd if=/dev/zero of=%s/.full bs=1 oflag=append conv=notrunc count=4096 2>/dev/null || true
"""


def fill(host: Host, folder: str) -> None:
    """Fill the disk that a folder is on."""
    root(host, FILL % ((folder,) * 5))


def space(host: Host, folder: str) -> None:
    """Take the full disk away; the folder is as it was before."""
    root(host, f"umount --lazy {folder}")


@pytest.mark.parametrize("folder", [f"{RECORD}/next", RECORD])
def test_full_where_the_unit_is_prepared_or_the_record_kept(node: Host, deployed: Serving, folder: str) -> None:
    wanted = another()
    fill(node, folder)
    message = refused(deploy(wanted))
    assert "No space left on device" in message
    assert serving(node) == deployed  # the same process: nothing was stopped
    space(node, folder)
    converges(node, wanted)


def test_full_where_the_unit_is_put_in_force(node: Host, deployed: Serving) -> None:
    wanted = another()
    fill(node, "/etc/systemd/system")
    message = refused(deploy(wanted))
    assert "sglang-qwen.service cannot be put in force" in message and "No space left on device" in message
    assert SERVES_AGAIN in message
    restored(node, deployed)
    assert root(node, "find /etc/systemd/system -name '.sglang*'") == ""  # no half-written file
    space(node, "/etc/systemd/system")
    root(node, "systemctl daemon-reload")
    converges(node, wanted)
