# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small file that says how far the work is. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import threading
import time
import typing as t

from . import words

_WINDOW = 30.0
_INTERVAL = 1.0


class Progress:
    """Writes {phase, bytes_done, bytes_total, bytes_per_second, seconds_left, updated_at} to `path`,
    atomically and at most once a second. It may be told from several threads. Without a path it only counts.
    """

    def __init__(self, path: str | None, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: collections.deque[tuple[float, int]] = collections.deque()
        self._phase, self._done, self._total = "", 0, 0
        self._written = 0.0

    def start(self, phase: str, total: int, done: int = 0) -> None:
        """A new phase with `total` bytes to do, `done` of them done already."""
        with self._lock:
            self._phase, self._total, self._done = phase, total, done
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

    def end(self) -> None:
        """The work is done: the file is gone."""
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
            "updated_at": words.now(),
        }
        fresh = f"{self._path}.new"
        try:
            with open(fresh, "w", encoding="utf-8") as stream:
                json.dump(content, stream)
            os.replace(fresh, self._path)
        except OSError:
            # to tell of the work must never stop the work
            remove(fresh)


def remove(path: str) -> None:
    """Removes a file that may be gone already."""
    with contextlib.suppress(OSError):
        os.unlink(path)
