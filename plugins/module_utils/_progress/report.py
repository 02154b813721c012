# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small file that says how far a long task is, and one that keeps how long it took. Private to the collection.

The controller reads the first while the task runs (plugin_utils/_progress.py) and prints it; the second lies beside
what is made and holds the seconds of each phase the last time that it came to its end on this host.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Callable

from .._host.files import put

# A counted step is written at most this often, in seconds.
_INTERVAL = 1.0
_WORTH_KEEPING = 2.0
_SCHEMA = 1


def write_atomically(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON that everybody may read; the folder may be /tmp. Raises OSError."""
    put(path, json.dumps(content).encode(), durable=False)


class Durations:
    """How many seconds each phase took the last time that it came to its end, kept in a file; without one, nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seconds = self._read()
        self._ended: dict[str, float] = {}

    def last(self, phase: str) -> float | None:
        """Return how long a phase took the last time; None when nothing is known."""
        return self._seconds.get(phase)

    def ended(self, phase: str, seconds: float) -> None:
        """A phase has come to its end; one with nothing to do says nothing of the next time."""
        if seconds >= _WORTH_KEEPING:
            self._ended[phase] = round(seconds, 1)

    def keep(self) -> None:
        """Write what has ended to the file; that this may fail is nobody's concern."""
        if self._path and self._ended:
            with contextlib.suppress(OSError):
                write_atomically(self._path, {"schema": _SCHEMA, "seconds": {**self._read(), **self._ended}})

    def _read(self) -> dict[str, float]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8")) if self._path else {"seconds": {}}
            return {str(name): float(seconds) for name, seconds in kept["seconds"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


class Progress:
    """Says in the file `path` which phase a task is in and how far; telling may fail, the work never does for it.

    The file holds {phase, done, total, unit, started_at (epoch seconds of this host), last_seconds}; without a path
    nothing is written. durations: where the seconds of each phase that ended are kept. Several threads may tell.
    """

    def __init__(self, path: str | None, durations: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path) if path else None
        self._durations = Durations(durations)
        self._clock = clock
        self._lock = threading.RLock()
        self._content: dict[str, Any] = {}
        self._written = float("-inf")
        self._told = ""

    def phase(self, name: str, *, total: int = 0, unit: str = "", done: int = 0) -> None:
        """Begin a phase of `total` units; 0: how many is not known. The one before has come to its end."""
        with self._lock:
            self._end_phase()
            self._content = {
                "phase": name,
                "done": done,
                "total": total,
                "unit": unit,
                "started_at": self._clock(),
                "last_seconds": self._durations.last(name),
            }
            self._write()

    def switch(self, name: str, *, unit: str = "") -> None:
        """Begin a phase unless it is the one that is under way."""
        with self._lock:
            if self._content.get("phase") != name:
                self.phase(name, unit=unit)

    def at(self, done: int, total: int | None = None) -> None:
        """`done` units are done in all, of `total` where that became known."""
        with self._lock:
            self._content["done"] = done
            if total is not None:
                self._content["total"] = total
            if self._clock() - self._written >= _INTERVAL:
                self._write()

    def detail(self, text: str) -> None:
        """Say more of the phase in a line: what it waits for, what was logged last."""
        with self._lock:
            self._content["detail"] = text
            # Compared with what the file says: a text that came too soon after the last writing is still due.
            if text != self._told and self._clock() - self._written >= _INTERVAL:
                self._write()

    def close(self, *, ended: bool) -> None:
        """Remove the file; when the work has come to its end, keep how long its phases took."""
        with self._lock:
            if ended:
                self._end_phase()
                self._durations.keep()
            if self._path:
                with contextlib.suppress(OSError):
                    self._path.unlink()

    def _end_phase(self) -> None:
        if self._content:
            self._durations.ended(self._content["phase"], self._clock() - self._content["started_at"])
            self._content = {}

    def _write(self) -> None:
        self._written, self._told = self._clock(), str(self._content.get("detail", ""))
        if self._path:
            with contextlib.suppress(OSError):
                write_atomically(self._path, self._content)


@contextlib.contextmanager
def telling(path: str | None, durations: Path | None = None) -> Iterator[Progress]:
    """Tell the progress of a block; durations are kept when it ends without an exception."""
    progress = Progress(path, durations)
    ended = False
    try:
        yield progress
        ended = True
    finally:
        progress.close(ended=ended)


@contextlib.contextmanager
def counting(progress: Progress, count: Callable[[], int], every: float = _INTERVAL) -> Iterator[None]:
    """Tell, while a block runs, what `count` counts every so many seconds; it may raise OSError."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(every):
            with contextlib.suppress(OSError):
                progress.at(count())

    thread = threading.Thread(target=work, daemon=True, name="llmfleet-counting")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)
