# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small file that says how far the work is. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import threading
import time
import typing as t

from .._progress.report import Durations, write_atomically
from . import words

_WINDOW = 30.0
_INTERVAL = 1.0


class Progress:
    """Writes {phase, bytes_done, bytes_total, bytes_per_second, seconds_left, seconds, last_seconds, updated_at} to
    `path`, atomically and at most once a second. It may be told from several threads. Without a path it only counts.

    durations: a file in which the seconds of each phase are kept, for the next time.
    """

    def __init__(
        self, path: str | None, clock: t.Callable[[], float] = time.monotonic, durations: str | None = None
    ) -> None:
        self._path = path
        self._durations = Durations(pathlib.Path(durations) if durations else None)
        self._began = 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: collections.deque[tuple[float, int]] = collections.deque()
        self._phase, self._done, self._total = "", 0, 0
        self._written = 0.0

    def start(self, phase: str, total: int, done: int = 0) -> None:
        """A new phase with `total` bytes to do, `done` of them done already."""
        with self._lock:
            self._end_phase()
            self._phase, self._total, self._done, self._began = phase, total, done, self._clock()
            self._samples.clear()
            self._samples.append((self._clock(), done))
            self._write()

    def add(self, count: int) -> None:
        """`count` more bytes are done."""
        with self._lock:
            self._set(self._done + count)

    def at(self, done: int) -> None:
        """`done` bytes are done in all; less than before counts as a step back (a file is fetched again)."""
        with self._lock:
            self._set(done)

    def keep(self) -> None:
        """The work has come to its end: how long it took is kept."""
        with self._lock:
            self._end_phase()
        self._durations.keep()

    def _end_phase(self) -> None:
        if self._phase:
            self._durations.ended(self._phase, self._clock() - self._began)
            self._phase = ""

    def end(self) -> None:
        """Whatever became of the work: the file is gone."""
        if self._path:
            remove(self._path)

    def _set(self, done: int) -> None:
        self._done = done
        now = self._clock()
        if now - self._written >= _INTERVAL:
            self._samples.append((now, done))
            while now - self._samples[0][0] > _WINDOW and len(self._samples) > 2:
                self._samples.popleft()
            self._write()

    def _rate(self) -> int:
        (first, least), (last, most) = self._samples[0], self._samples[-1]
        return max(0, int((most - least) / (last - first))) if last > first else 0

    def _write(self) -> None:
        self._written = self._clock()
        if not self._path:
            return
        rate = self._rate()
        content = {
            "phase": self._phase,
            "bytes_done": self._done,
            "bytes_total": self._total,
            "bytes_per_second": rate,
            "seconds_left": max(0, self._total - self._done) // rate if rate else None,
            "seconds": round(self._written - self._began, 1),
            "last_seconds": self._durations.last(self._phase),
            "updated_at": words.now(),
        }
        # to tell of the work must never stop the work
        with contextlib.suppress(OSError):
            write_atomically(pathlib.Path(self._path), content)


def remove(path: str) -> None:
    """Removes a file that may be gone already."""
    with contextlib.suppress(OSError):
        os.unlink(path)
