# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who gives to whom: the order, and a fleet played through in rounds with deaths and latecomers."""

from __future__ import annotations

import math
import random
import typing as t

import pytest
from ansible_collections.llmfleet.sglang.plugins.filter.checkpoint import checkpoint_lacking, checkpoint_plan
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import fanout
from hypothesis import given
from hypothesis import strategies as st

FLEETS = st.integers(1, 40)
TRANSFERS = st.integers(1, 4)


class Fleet:
    """Hosts by position; in each round those that wait ask in their order, and a host serves as many as it may."""

    def __init__(self, count: int, holders: int, transfers: int, seed: int = 0) -> None:
        self.count, self.holders, self.transfers = count, holders, transfers
        self.have = set(range(holders))
        self.dead: set[int] = set()
        self.late: set[int] = set()
        self.random = random.Random(seed)

    def round(self, dying: t.Iterable[int] = ()) -> list[tuple[int, int]]:
        """Plays one round, in the middle of which some die; returns who gave to whom."""
        free = {one: self.transfers for one in self.have - self.dead}
        waiting = [one for one in range(self.count) if one not in self.have | self.dead | self.late]
        self.random.shuffle(waiting)
        pairs = []
        for host in waiting:
            for source in fanout.sources(host, self.count, self.holders, self.transfers):
                if free.get(source):
                    free[source] -= 1
                    pairs.append((source, host))
                    break
        self.dead |= set(dying)
        done = [(source, host) for source, host in pairs if not {source, host} & self.dead]
        assert all(source in self.have for source, _host in pairs), "a host gave what it did not have"
        self.have |= {host for _source, host in done}
        return done

    @property
    def missing(self) -> set[int]:
        """Who is alive and lacks the files."""
        return set(range(self.count)) - self.have - self.dead - self.late


@given(count=FLEETS, holders=st.integers(1, 5), transfers=TRANSFERS, seed=st.integers(0, 99))
def test_all_get_it_in_as_few_rounds_as_can_be(count: int, holders: int, transfers: int, seed: int) -> None:
    holders = min(holders, count)
    fleet = Fleet(count, holders, transfers, seed)
    number = 0
    while fleet.missing:
        assert fleet.round()
        number += 1
    assert number == fanout.rounds(count, holders, transfers)
    if holders == 1:
        assert number == (math.ceil(math.log(count, transfers + 1) - 1e-9) if count > 1 else 0)


@given(count=FLEETS, transfers=TRANSFERS, seed=st.integers(0, 99), data=st.data())
def test_whoever_lives_gets_it_as_long_as_one_that_has_it_lives(
    count: int, transfers: int, seed: int, data: st.DataObject
) -> None:
    fleet = Fleet(count, 1, transfers, seed)
    fleet.late = data.draw(st.sets(st.integers(1, max(1, count - 1)), max_size=count // 2))
    for _round in range(200):
        if not fleet.missing:
            if not fleet.late:
                break
            fleet.late.pop()
        living = sorted(fleet.have - fleet.dead)
        spared = living[0]
        dying = data.draw(st.sets(st.sampled_from(range(count)), max_size=2)) - {spared} if _round < 20 else set()
        fleet.round(dying)
    assert not fleet.missing | fleet.late


@given(count=FLEETS, holders=st.integers(1, 5), transfers=TRANSFERS)
def test_the_order_names_everybody_once_and_the_parent_first(count: int, holders: int, transfers: int) -> None:
    for position in range(holders, count):
        order = fanout.sources(position, count, holders, transfers)
        assert sorted([*order, position]) == list(range(count))
        assert order[0] == fanout.parent(position, holders, transfers) < position


@given(count=FLEETS, holders=st.integers(1, 5), transfers=TRANSFERS)
def test_no_host_is_asked_first_by_more_than_it_serves_in_a_round(count: int, holders: int, transfers: int) -> None:
    have = holders
    while have < count:
        turn = range(have, min(count, have * (transfers + 1)))
        parents = [fanout.parent(position, holders, transfers) for position in turn]
        assert max(map(parents.count, parents)) <= transfers
        assert max(parents) < have
        have *= transfers + 1


def test_a_holder_takes_from_nobody() -> None:
    with pytest.raises(ValueError, match="has the files"):
        fanout.parent(0, 1)


# the filter


def variables(**hosts: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
    """Variables of hosts: what the look said, with changes; `seeded` is what a fetch said."""
    found = {}
    for number, (name, given_) in enumerate(hosts.items(), 11):
        result = {
            "complete": given_.pop("complete", False),
            "repository": "o/m",
            "revision": "a",
            "manifest_digest": "",
        }
        result["manifest_digest"] = "d" if result["complete"] else ""
        found[name] = {"ansible_host": f"192.0.2.{number}", "sglang_checkpoint_result": result, **given_}
    return found


SEEDED = {"sglang_checkpoint_seeded": {"complete": True, "manifest_digest": "d"}}


def test_the_first_host_of_each_site_fetches() -> None:
    hosts = variables(a={}, b={"sglang_site": "x"}, c={"sglang_site": "x"}, d={})
    plans = {one: checkpoint_plan(list(hosts), hosts, one) for one in hosts}
    assert [one for one in hosts if plans[one]["is_seed"]] == ["a", "b"]
    assert plans["c"]["sources"] == ["192.0.2.12"]
    assert plans["a"]["peers"] == ["192.0.2.14"]
    assert not plans["a"]["held"]
    assert plans["a"]["lacking"] == ["a", "d"]


def test_a_seed_that_is_gone_is_replaced() -> None:
    hosts = variables(a={}, b={}, c={})
    assert checkpoint_plan(["b", "c"], hosts, "b")["is_seed"]
    assert checkpoint_plan(["b", "c"], hosts, "c")["sources"] == ["192.0.2.12"]


@pytest.mark.parametrize("said", ["sglang_checkpoint_seeded", "sglang_checkpoint_installed"])
def test_a_seed_that_failed_is_replaced_although_it_still_counts_as_in_the_play(said: str) -> None:
    hosts = variables(a={said: {"failed": True}}, b={}, c={})
    assert checkpoint_plan(["a", "b", "c"], hosts, "b")["is_seed"]
    assert checkpoint_plan(["a", "b", "c"], hosts, "c")["sources"] == ["192.0.2.12"]


def test_a_host_that_has_it_gives_it_and_nobody_fetches() -> None:
    hosts = variables(a={}, b={"complete": True}, c={})
    plans = {one: checkpoint_plan(list(hosts), hosts, one) for one in hosts}
    assert (plans["b"]["is_seed"], plans["b"]["gives"], plans["b"]["held"]) == (True, True, True)
    assert plans["b"]["peers"] == ["192.0.2.11", "192.0.2.13"]
    assert plans["a"]["sources"][0] == "192.0.2.12"
    assert plans["a"]["manifest_digest"] == "d"


def test_receivers_know_how_much_it_is_from_who_has_it_or_asked_the_hub() -> None:
    seeded = {"sglang_checkpoint_seeded": {"complete": False, "bytes": 7, "manifest_digest": ""}}
    hosts = variables(a=seeded, b={})
    assert checkpoint_plan(["a", "b"], hosts, "b")["bytes"] == 7
    assert checkpoint_plan(["a", "b"], variables(a={}, b={}), "b")["bytes"] == 0


def test_what_was_fetched_counts() -> None:
    hosts = variables(a=dict(SEEDED), b={})
    plan = checkpoint_plan(["a", "b"], hosts, "b")
    assert (plan["held"], plan["gives"], plan["manifest_digest"]) == (True, False, "d")


def test_a_task_that_was_skipped_says_nothing() -> None:
    hosts = variables(a={"sglang_checkpoint_seeded": {"skipped": True}}, b={})
    assert not checkpoint_plan(["a", "b"], hosts, "b")["held"]


def test_hosts_of_another_revision_are_no_peers() -> None:
    hosts = variables(a={}, b={})
    hosts["b"]["sglang_checkpoint_result"]["revision"] = "b"
    assert checkpoint_plan(["a", "b"], hosts, "b")["is_seed"]


def test_an_address_of_the_fast_network_goes_before_that_of_ssh() -> None:
    hosts = variables(a={"sglang_checkpoint_address": "198.51.100.1"}, b={})
    plan = checkpoint_plan(["a", "b"], hosts, "b")
    assert (plan["sources"], plan["address"]) == (["198.51.100.1"], "192.0.2.12")


def test_a_host_alone_has_nobody_to_give_to() -> None:
    hosts = variables(a={})
    assert checkpoint_plan(["a"], hosts, "a")["peers"] == []


def test_each_hosts_variables_are_gathered_once() -> None:
    hosts = variables(a={"complete": True}, b={"complete": True}, c={})
    looked: list[str] = []

    class Looked(dict[str, t.Any]):
        def __getitem__(self, host: str) -> t.Any:
            looked.append(host)
            return super().__getitem__(host)

    assert checkpoint_plan(list(hosts), Looked(hosts), "b")["lacking"] == ["c"]
    assert sorted(looked) == ["a", "b", "c"]


def test_who_lacks_it_is_told_for_all_sites_at_once_and_each_host_is_looked_at_once() -> None:
    done, open_ = {"complete": True}, {"complete": False}
    hosts: dict[str, dict[str, t.Any]] = {
        "has": {"sglang_checkpoint_result": done},
        "lacks": {"sglang_checkpoint_result": open_, "sglang_site": "b"},
        "fetched": {"sglang_checkpoint_result": open_, "sglang_checkpoint_seeded": done},
        "another turn's": {},
        "skipped": {"sglang_checkpoint_result": {"skipped": True}},
    }
    looked: list[str] = []

    class Looked(dict[str, dict[str, t.Any]]):
        def __getitem__(self, name: str) -> dict[str, t.Any]:
            looked.append(name)
            return super().__getitem__(name)

    assert checkpoint_lacking(list(hosts), Looked(hosts)) == ["lacks"]
    assert looked == list(hosts)
