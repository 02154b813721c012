# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests of faults have passed at a commit, kept in pytest's cache, so that a long run can be gone on with."""

from __future__ import annotations

import subprocess

import pytest

from tests.fleet.control import PROJECT

KEPT = "llmfleet/faults"


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def faults_of(item: pytest.Item) -> int:
    """How many faults a test tries: one, or what its mark `faults` says."""
    mark = item.get_closest_marker("faults")
    return int(mark.args[0]) if mark else 1


class Passed:
    """Remembers each test that passed with its seconds; with --resume those are left out.

    Nothing is remembered of a checkout with changes that are not committed: no commit says what was tested then.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)  # pytest can be told to keep none
        self._resume = bool(config.option.resume)
        self._commit = _git("rev-parse", "HEAD")
        self._clean = not _git("status", "--porcelain")
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._wanted: list[str] = []
        self._faults: dict[str, int] = {}
        self._now: dict[str, float] = {}
        self._before = self._earlier()

    def _earlier(self) -> dict[str, float]:
        kept = self._cache.get(KEPT, {}) if self._cache is not None and self._clean and self._resume else {}
        return dict(kept.get("passed", {})) if kept.get("commit") == self._commit else {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        self._wanted = [item.nodeid for item in items]
        self._faults = {item.nodeid: faults_of(item) for item in items}
        done = [item for item in items if item.nodeid in self._before]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self._before]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up a test's phases; one of which none failed has passed, and is written down at once."""
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if not report.passed:
            self._failed.add(name)
        if report.when == "teardown" and name not in self._failed:
            self._now[name] = round(self._seconds[name], 1)
            if self._clean and self._cache is not None:
                self._cache.set(KEPT, {"commit": self._commit, "passed": {**self._before, **self._now}})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """With everything passed earlier there is nothing to run, which is no failure."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._wanted:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many passed at which commit, in how long."""
        passed = {**{name: self._before[name] for name in self._wanted if name in self._before}, **self._now}
        tree = "" if self._clean else " with changes that are not committed"
        terminalreporter.write_line(
            f"faults at commit {self._commit}{tree}: {len(passed)} of {len(self._wanted)} passed"
            f" ({len(passed) - len(self._now)} of them in earlier runs), {sum(passed.values()):.0f} s in all"
        )
        tried = sum(self._faults[name] for name in {*passed, *self._failed} & set(self._faults))
        terminalreporter.write_line(f"faults: {tried} tried, {sum(self._faults[name] for name in passed)} survived")
