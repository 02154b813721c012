# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when a service was ready that came up by itself, after the run that had stopped the old one died."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import times
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import ready_since
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome

# Times here are seconds since the boot, which systemd counts from; the logic has them since 1970.
BOOT = time.time() - time.monotonic()
PROBE = "{ path=/opt/python ; argv[]=/opt/python -I ready.py http://10.77.0.11:30000/health 4711 ; }"


class Systemd:
    """systemctl and journalctl of a host. entered: when the unit became active; 0: it never did."""

    def __init__(self, *logged: tuple[float, str], entered: float = 0.0, probe: str = PROBE, state: str = "active"):
        self.logged, self.entered, self.probe, self.state = logged, entered, probe, state
        self.asked: list[list[str]] = []
        self.deaf = ""

    def run(self, argv: Sequence[str], _timeout: float) -> Outcome:
        self.asked.append(list(argv))
        if argv[0] == self.deaf:
            return Outcome(tuple(argv), None, problem="hung")
        if argv[0] == "systemctl":
            shown = {
                "ExecStartPost": self.probe,
                "ActiveState": self.state,
                "ActiveEnterTimestampMonotonic": round(self.entered * 1e6),
            }
            return Outcome(tuple(argv), 0, "".join(f"{name}={value}\n" for name, value in shown.items() if value))
        rows = [
            {"__REALTIME_TIMESTAMP": str(int((BOOT + at) * 1e6)), "JOB_RESULT": result} for at, result in self.logged
        ]
        return Outcome(tuple(argv), 0, "".join(json.dumps(row) + "\n" for row in rows) + '{"torn')


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        # systemd has started it again since: the newest start would count an hour as down.
        (Systemd((171.0, "done"), (3700.0, "done"), entered=3700.0), 171.0),
        (Systemd((90.0, "done"), (171.5, "done")), 171.5),  # the first one was before the stop
        (Systemd((120.0, "failed"), (171.0, "done")), 171.0),
        (Systemd(entered=171.0), 171.0),  # a journal that is not kept
        (Systemd(entered=171.0, state="activating"), None),
        (Systemd(), None),
        (Systemd((171.0, "done"), entered=171.0, probe=""), None),  # that it was started proves nothing
    ],
)
def test_the_first_time_that_the_probe_came_off(host: Systemd, expected: float | None) -> None:
    found = ready_since.first_ready(host.run, "sglang-qwen", BOOT + 100.4)
    assert found == (None if expected is None else pytest.approx(BOOT + expected, abs=0.2))


def test_the_journal_is_asked_by_fields_for_what_systemd_itself_says() -> None:
    host = Systemd()
    ready_since.first_ready(host.run, "sglang-qwen", 100.4)
    assert host.asked[-1][-4:] == [
        "--since=@100",
        "_PID=1",
        "UNIT=sglang-qwen.service",
        "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf",
    ]


@pytest.mark.parametrize(("deaf", "expected"), [("systemctl", None), ("journalctl", 171.0)])
def test_what_cannot_be_asked_is_no_failure(deaf: str, expected: float | None) -> None:
    host = Systemd((150.0, "done"), entered=171.0)
    host.deaf = deaf
    found = ready_since.first_ready(host.run, "sglang-qwen", BOOT + 100.0)
    assert found == (None if expected is None else pytest.approx(BOOT + expected, abs=0.2))


def test_only_after_an_earlier_runs_stop_is_anything_asked(tmp_path: Path) -> None:
    host, path = Systemd((171.0 - BOOT, "done")), tmp_path / "qwen" / times.NAME
    path.parent.mkdir()

    def since(now: float = 3600.0, where: Path | None = path, service: str = "sglang-qwen") -> float | None:
        return ready_since.ready_since(host.run, where, service, now)

    def keep(**changes: Any) -> None:
        steps = [{"step": "begin", "at": 90.0}, {"step": "stop", "at": 95.0, "ended": 100.0}]
        path.write_text(json.dumps({"schema": 1, "run": "a", "first_run": "a", "steps": steps, **changes}))

    assert since() is None and host.asked == []
    keep(first_run="")
    assert since() is None and host.asked == []  # no run holds the host, and none had
    keep()
    assert since(where=None) is None and since(service="") is None and host.asked == []
    assert since() == pytest.approx(171.0, abs=0.2)
    assert since(now=170.0) is None  # it came up while it was asked: then its first answer counts
    keep(steps=[{"step": "stop"}])
    assert since() is None
