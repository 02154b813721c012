# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a run cannot begin: Ansible is too old, or no host takes part. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence

# meta/runtime.yml says the same, of which Ansible makes a warning.
OLDEST = (2, 19)


def too_old(version: str) -> str:
    """Say that Ansible is too old; "" where it is not. version: that of ansible-core, such as 2.19.14 or 2.21.0rc1."""
    if tuple(map(int, re.findall(r"[0-9]+", version)[:2])) >= OLDEST:
        return ""
    return (
        f"This collection needs ansible-core {'.'.join(map(str, OLDEST))} or later, and this is {version}. "
        "Nothing was done."
    )


def nobody(pattern: str, sources: Sequence[str], limit: str) -> str:
    """Say that no host takes part. sources: the inventories, as they were given; limit: that of --limit."""
    where = f"the inventory {', '.join(sources)}" if sources else "the inventory"
    within = f" within --limit {limit}" if limit else ""
    return (
        f"No host matches '{pattern}'{within} in {where}. Nothing was done. Hosts that serve belong in the group "
        "sglang; -e sglang_hosts=PATTERN takes others. `ansible-inventory -i INVENTORY --graph` shows what there is."
    )
