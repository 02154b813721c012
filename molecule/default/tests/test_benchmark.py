# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One benchmark with the engine's own bench_serving: figures with provenance, no secret, and nothing restarted."""

from __future__ import annotations

import json
from pathlib import Path

from testinfra.host import Host

from tests.fleet.control import playbook
from tests.fleet.hosts import API_KEY, SERVED_MODEL, limit, name, root, serving

RECORD = "/var/lib/llmfleet/qwen"
SHORT = {
    "sglang_profile": "qwen3_5_397b_nvfp4",
    "sglang_benchmark_runs": 4,
    "sglang_benchmark_shapes": [{"input_tokens": 16, "output_tokens": 8, "concurrency": 2, "requests": 4}],
}


def test_what_serves_is_measured_and_recorded(node: Host, tmp_path: Path) -> None:
    before = serving(node)
    report = tmp_path / "measured.json"
    variables = {**SHORT, "sglang_benchmark_to": str(report)}
    run = playbook("playbooks/benchmark.yml", limit([node]), variables=variables, timeout=600).must_pass()
    text = root(node, f"tail -n 1 {RECORD}/benchmarks.jsonl")
    line, record = json.loads(text), json.loads(root(node, f"cat {RECORD}/record.json"))
    [shape] = line["shapes"]
    assert len(shape["runs"]) == 4 and all(one["output_tokens_per_second"] > 0 for one in shape["runs"])
    assert (line["release"], line["commit"], line["state"]) == (record["release"], record["commit"], record["state"])
    assert line["checkpoint"] == record["checkpoint"] != ""
    assert line["model"] == SERVED_MODEL and line["patch_sets"] == ["sm120"] and line["patches"][0]["digest"]
    assert line["topology"].startswith("8 x ") and line["driver"] and line["samples"][0]["cards"][0]["draw"]
    assert line["resolved"]["max-total-tokens"] == 2048  # /server_info, which wants the key, was asked
    assert API_KEY not in text and API_KEY not in run.output
    told = json.loads(report.read_text())["benchmarks"][-1]
    assert (told["host"], told["id"]) == (name(node), line["id"])
    assert serving(node) == before
    assert root(node, "ls -d /tmp/llmfleet-benchmark-* 2>/dev/null || true") == ""
