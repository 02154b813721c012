# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trial's outcome, one JSON line each in `<state>/<instance>/trials.jsonl`. Private to the collection.

{"schema": 1,
 "at": "2026-11-30T10:30:00+00:00",     when it was concluded, UTC
 "host": "gpu-07", "instance": "qwen", "profile": "qwen3_5_397b_nvfp4",
 "version": "0.5.23", "commit": "<40 hex>", "tensor_parallel": 8, "topology": "8 x …",
 "change": {"patch_sets": ["sm120_fusion"], "arguments": {"flashinfer-allreduce-fusion-backend": "trtllm"},
            "environment": {}},         values that may be secrets are "***"; null: argument or variable is taken out
 "gate": true,                          whether it opened the gate of FlashInfer's all-reduce fusion
 "result": "worse",                     better | same | worse | no verdict | inert | failed start | not measured
 "reason": "3740 became 236 (-93.7%), beyond …",    the verdict's, or the diagnosis of the failed start (which is also
                                        what was to stay and did not, for a later step failed)
 "verdict": {…},                        as in benchmarks.jsonl; null where nothing was measured
 "baseline": "<id of a benchmark>", "candidate": "<id of a benchmark, "" if it was not measured>",
 "baseline_figures": {"<shape>": 3740.0}, "candidate_figures": {"<shape>": 236.0},
 "baseline_release": "0.5.23-…", "candidate_release": "0.5.23-…",
 "kept": false,                         whether the host serves the change now
 "restored": true,                      whether it serves the baseline again; null where it was kept
 "facts": [{"what": "patch set sm120_fusion",
            "patched": ["fusion_gate: present in sglang/…/add_norm.py, 5f0c…"],
            "active": "no: <evidence>", "faster": "worse: 3740 became 236 (-93.7%), …"}]}
"""

from __future__ import annotations

NAME = "trials.jsonl"
FAILED_START, NOT_MEASURED = "failed start", "not measured"
