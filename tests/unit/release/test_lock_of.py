# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock of packages a fleet has, and that each host finds it without a look at all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.release import release_lock_of


class Looked(Mapping[str, Mapping[str, Any]]):
    """Variables of hosts that count how often they are looked at, which is what costs Ansible time."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        self.hosts, self.times = hosts, 0

    def __getitem__(self, host: str) -> Mapping[str, Any]:
        self.times += 1
        return self.hosts[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)


def status(lock: str) -> dict[str, Any]:
    return {"sglang_build_release": {"lock": lock}}


@pytest.mark.parametrize(
    ("hosts", "lock"),
    [
        ({"a": status("one"), "b": status("two")}, "one"),
        ({"a": status(""), "b": status("two")}, "two"),
        ({"a": {}, "b": status("two")}, "two"),
        ({"a": {"sglang_build_lock_here": {"lock": "new"}}, "b": status("two")}, "two"),
        ({"a": status(""), "b": {**status(""), "sglang_build_lock_here": {"lock": "new"}}}, "new"),
        ({"a": {"sglang_build_release": {"id": "r"}}, "b": {"sglang_build_lock_here": {"skipped": True}}}, ""),
        ({}, ""),
    ],
)
def test_the_first_lock_that_a_host_has_is_the_fleets(hosts: dict[str, Any], lock: str) -> None:
    assert release_lock_of(list(hosts), hosts) == lock


def test_where_all_hosts_have_it_one_is_looked_at() -> None:
    hosts = Looked({f"h{number}": status("one") for number in range(100)})
    assert release_lock_of(list(hosts), hosts) == "one"
    assert hosts.times == 1
