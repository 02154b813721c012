# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cards do while they are measured: power, clocks and utilisation every few seconds. Private.

nvidia-smi alone is asked. A look that fails is left out, and the measurement goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable
from typing import Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Card, Sample
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Load
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.text import lines, real
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner

EVERY = 2.0
LIMIT = 10.0
FIELDS = "uuid,utilization.gpu,power.draw,power.limit,clocks.sm"


def look(run: Runner) -> tuple[Card, ...]:
    """Return what each card does now; empty when nvidia-smi cannot be asked."""
    outcome = run(["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"], LIMIT)
    rows = [[value.strip() for value in line.split(",")] for line in lines(outcome.stdout)] if outcome.ok else []
    return tuple(Card(row[0], *(real(value) for value in row[1:])) for row in rows if len(row) == 5)


Window = tuple[float, float]


def within(samples: Iterable[Sample], windows: Collection[Window]) -> list[Sample]:
    """Return the samples of these times, each from and to in seconds since the benchmark began."""
    return [one for one in samples if any(since <= one.second <= until for since, until in windows)]


def loads(samples: Collection[Sample]) -> list[list[Load]]:
    """Return samples as the finding on starved cards takes them."""
    return [[Load(card.uuid, card.utilisation, card.draw, card.limit) for card in one.cards] for one in samples]


class Sampler:
    """Looks at the cards every few seconds while a block runs.

    uuids: the cards that count, all of them when there are none; began: when the benchmark began, by `clock`.
    """

    def __init__(
        self,
        run: Runner,
        uuids: Collection[str] = (),
        began: float | None = None,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._uuids, self._every, self._clock = run, frozenset(uuids), every, clock
        self._began = clock() if began is None else began
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="llmfleet-sampling")
        self.samples: list[Sample] = []

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(LIMIT + 5)

    def _work(self) -> None:
        wait: Callable[[float], bool] = self._stopped.wait
        while not wait(self._every):
            cards = tuple(card for card in look(self._run) if not self._uuids or card.uuid in self._uuids)
            if cards:
                self.samples.append(Sample(round(self._clock() - self._began, 1), cards))
