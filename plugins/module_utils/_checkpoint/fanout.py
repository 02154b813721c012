# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who gives a checkpoint to whom. PRIVATE to the collection: it can change at any time.

Every host that has the files serves them next, so that with each round the number of those that have them doubles
(transfers at a time + 1 times as many). There is no conductor: each host that lacks the files asks the others in an
order of its own, takes them from the first that has them and a place free, and goes on to the next when one dies. The
order is what makes a tree of it: while all goes well, no two hosts ask the same one first in the same round.
"""

from __future__ import annotations

import typing as t


def parent(position: int, holders: int, transfers: int = 1) -> int:
    """The position from which a host takes the files while all goes well.

    The first `holders` positions have the files from the start. With one transfer at a time and one holder this is the
    position without its highest bit. Raises ValueError for a holder's own position.
    """
    if position < holders:
        raise ValueError(f"position {position} has the files")
    have = _having(position, holders, transfers)
    return (position - have) % have


def sources(position: int, count: int, holders: int, transfers: int = 1) -> list[int]:
    """All other positions in the order in which a host asks them: its parent, those that have the files when it is
    its turn, starting after the parent so that the load is spread, then those that get them later.
    """
    have = _having(position, holders, transfers)
    first = parent(position, holders, transfers)
    earlier = [(first + step) % have for step in range(have)]
    return [*earlier, *(one for one in range(have, count) if one != position)]


def rounds(count: int, holders: int = 1, transfers: int = 1) -> int:
    """How many rounds it takes until all `count` hosts have the files, if nothing goes wrong."""
    have, number = holders, 0
    while have < count:
        have *= transfers + 1
        number += 1
    return number


def _having(position: int, holders: int, transfers: int) -> int:
    """How many have the files before the round in which the host gets them."""
    have = holders
    while have * (transfers + 1) <= position:
        have *= transfers + 1
    return have


class Plan(t.NamedTuple):
    """One host's part. site: its hosts in order; lacking: those without the files; seed: who fetches; held: whether any
    of them has the files; gives: whether this host has them, or fetches them, and takes none; sources: whom to take
    from, addresses in order; peers: addresses that may take from this host; rounds: of the whole site.
    """

    site: list[str]
    lacking: list[str]
    seed: str
    is_seed: bool
    held: bool
    gives: bool
    sources: list[str]
    peers: list[str]
    rounds: int

    def as_dict(self) -> dict[str, t.Any]:
        return self._asdict()


def plan(
    host: str, hosts: t.Sequence[str], addresses: t.Mapping[str, str], complete: t.Container[str], transfers: int = 1
) -> Plan:
    """The part of `host` among the `hosts` of its site that are still in the play.

    complete: the hosts that have the files. Where there is none, the first host is the seed; a seed that is gone is
    therefore replaced by the next one.
    """
    holders = [one for one in hosts if one in complete]
    order = [*(holders or hosts[:1]), *(one for one in hosts if one not in (holders or hosts[:1]))]
    have = len(holders) or 1
    position = order.index(host)
    lacking = order[have:]
    taken = sources(position, len(order), have, transfers) if position >= have else []
    return Plan(
        site=order,
        lacking=[one for one in order if one not in holders],
        seed=order[0],
        is_seed=position == 0,
        held=bool(holders),
        gives=position < have,
        sources=[addresses[order[one]] for one in taken],
        peers=[addresses[one] for one in lacking if one != host],
        rounds=rounds(len(order), have, transfers),
    )
