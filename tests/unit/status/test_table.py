# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet on one screen."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.filter.status import status_report, status_table
from ansible_collections.llmfleet.sglang.plugins.module_utils._status.instances import Instance

GPUS = {"count": 8, "memory_used": 691000, "memory_total": 783096, "power_draw": 2400, "power_limit": 4800}

LOST = {"sglang_status": {"unreachable": True, "msg": "No route to host\n"}}


def told(*found: Instance, **gpus: Any) -> dict[str, Any]:
    return {"sglang_status": {"instances": [asdict(one) for one in found], "gpus": {**GPUS, "problem": "", **gpus}}}


QWEN = Instance(
    "qwen", "sglang-qwen", True, "active", True, 10, 1796000000, "qwen3.5", "0.5.23-abc-def", as_recorded=True,
    ready=True, running=3, queued=2, tokens_per_second=3740.5, commit="abcdef0123" * 4,
    patched=[{"id": "a", "state": "present"}, {"id": "b", "state": "upstream"}], verdict="the new service answered",
)  # fmt: skip


def test_two_lines_say_what_serves() -> None:
    head, row, more = status_table(["h1"], {"h1": told(QWEN)}).splitlines()
    assert " ".join(head.split()) == "HOST INSTANCE MODEL SINCE (UTC) STATE REQUESTS TOK/S GPU MEMORY POWER"
    assert " ".join(row.split()) == (
        "h1 qwen qwen3.5 2026-11-30 00:53 ready 3 + 2 queued 3740.5 675 of 765 GiB 2400 of 4800 W"
    )
    assert more == ("    0.5.23-abc-def, commit abcdef012, patches 2 of 2, last cut-over: the new service answered")


def test_a_usual_fleet_fits_120_columns() -> None:
    one = replace(QWEN, model="qwen3.5-397b-a17b", release="0.5.23-ff542dc8f-67c489c563b187eb")
    assert max(len(line) for line in status_table(["gpu01"], {"gpu01": told(one)}).splitlines()) <= 120


def test_an_edit_that_the_release_lacks_is_named() -> None:
    one = replace(QWEN, patched=[*QWEN.patched, {"id": "gate", "state": "not_found"}])
    assert "patches 2 of 3 (gate not_found)," in status_table(["h1"], {"h1": told(one)})


def test_of_an_instance_that_is_not_ours_nothing_is_claimed() -> None:
    foreign = Instance("sglang-kimi", "sglang-kimi", False, "active", True, 10, 1, "kimi", ready=True)
    assert status_table(["h1"], {"h1": told(foreign)}).splitlines()[2:] == ["    not ours"]


def test_what_is_wrong_stands_below_with_its_host() -> None:
    bad = Instance("kimi", "sglang-kimi", True, "failed", problems=["the unit has failed (oom-kill)"], release="r")
    bad.drift = [{"kind": "patched_file", "name": "a.py", "expected": "1", "found": "2"}]
    lines = status_table(
        ["h1", "h2", "h3"], {"h1": told(bad), "h2": LOST, "h3": told(count=0, problem="nvidia-smi hangs")}
    )
    assert "failed" in lines.splitlines()[1]
    assert lines.splitlines()[2] == "    r"
    assert lines.splitlines()[3].split()[:2] == ["h2", "?"]
    assert lines.splitlines()[4].split() == ["h3", "none"]
    assert lines.splitlines()[5:] == [
        "",
        "h1: sglang-kimi: the unit has failed (oom-kill)",
        "h1: sglang-kimi: a.py is not as it was built (patched_file: 2)",
        "h2: cannot be asked: No route to host",
        "h3: nvidia-smi hangs",
    ]


def test_a_running_instance_that_drifted_says_so_in_its_state() -> None:
    QWEN_DRIFTED = Instance("q", "sglang-q", True, "active", True, 10, 1, ready=False, as_recorded=False)
    assert "not ready, drifted" in status_table(["h1"], {"h1": told(QWEN_DRIFTED)})


def test_the_report_tells_an_unreachable_host_from_an_empty_one() -> None:
    report = status_report(["h1", "h2"], {"h1": told(), "h2": {"sglang_status": {"unreachable": True}}})
    assert report["h1"] == {
        "asked": True,
        "instances": [],
        "gpus": {**GPUS, "problem": ""},
        "lock": None,
        "drained": False,
    }
    assert report["h2"] == {"asked": False, "instances": [], "gpus": {}, "lock": None, "drained": False}
