#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: measure what an instance serves."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: benchmark
short_description: Measure how fast an instance serves, and record it on its host
version_added: 0.1.0
author:
  - llmfleet engineers (@llmfleet)
description:
  - Runs the engine's own C(bench_serving) on random token ids from the release that serves, as the service user, each
    shape several times. The first runs are cold and count for nothing.
  - Power, clocks and utilisation of the cards are sampled meanwhile.
  - Adds one line with figures and provenance to C(benchmarks.jsonl) in the host record of the instance. A benchmark
    that fails adds none. The failure says what the service died of, if it did, else what C(bench_serving) said last.
  - Ends within seconds once nobody waits for its answer any more, as after Ctrl-C, the end of the run or a connection
    that was lost; also once another run holds the lock of M(llmfleet.sglang.host_lock) in O(state_folder).
  - Requests of others slow it down and are slowed down, so take the host out of the load balancer first.
options:
  service:
    description: Service of the instance, without C(.service).
    type: str
    required: true
  instance:
    description: Name of the instance.
    type: str
    required: true
  profile:
    description: Name of the model profile. Benchmarks of different profiles are never compared.
    type: str
    required: true
  root:
    description: Folder above C(releases).
    type: path
    required: true
  state_folder:
    description: Folder of the host records.
    type: path
    required: true
  host:
    description: Address that the server listens on. A wildcard is measured on the loopback address.
    type: str
    required: true
  port:
    description: TCP port of the server.
    type: int
    required: true
  user:
    description: Whose process measures. An empty text takes the user that the module runs as.
    type: str
    default: ""
  api_key:
    description: Key of the API, if the server wants one. It goes to C(bench_serving) by the environment.
    type: str
    default: ""
  shapes:
    description: What to ask for.
    type: list
    elements: dict
    required: true
    suboptions:
      input_tokens:
        description: Tokens of each request's prompt.
        type: int
        required: true
      output_tokens:
        description: Tokens of each answer.
        type: int
        required: true
      concurrency:
        description: Requests at a time.
        type: int
        required: true
      requests:
        description: Requests in all, of each run.
        type: int
        required: true
  runs:
    description: How often each shape is measured.
    type: int
    default: 6
  cold:
    description: How many of the first runs count for nothing.
    type: int
    default: 1
  timeout:
    description: Seconds that all of it may take.
    type: int
    default: 3600
  visible_gpus:
    description: The cards of the instance, as C(nvidia-smi) counts them. All of the host's, if empty.
    type: list
    elements: int
    default: []
  paths:
    description:
      - Paths of the engine of which its log says whether it takes them. The role C(sglang_benchmark) has a list, which
        says what each field means.
    type: list
    elements: dict
    default: []
  causes:
    description:
      - What the end of a service is explained by that dies while it is measured, as M(llmfleet.sglang.completion) takes
        them. The role C(sglang_verify) has a list.
    type: list
    elements: dict
    default: []
  quality:
    description: Share of right answers from 0 to 1, if somebody asked. Fewer than all are C(worse) at any speed.
    type: float
  reason:
    description: Why it is measured, for the record.
    type: str
    choices: [asked, rollout, baseline, trial]
    default: asked
  against:
    description:
      - What to judge it against. An empty text judges nothing.
      - V(before) is the last benchmark of what served before, else the last one of another deployment, of the same
        profile, tensor parallel size, topology and shape.
      - Everything else is the C(id) of a benchmark.
    type: str
    default: ""
  recorded:
    description: Whether a trial took O(against) from the record instead of measuring it, for whoever reads the verdict.
    type: bool
    default: false
  change:
    description:
      - What is on trial, with C(patch_sets), C(arguments) and C(environment). Where the engine leaves out a path that
        this asks for, the verdict is V(inert).
    type: dict
    default: {}
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.progress
attributes:
  check_mode:
    support: full
    details: Measures nothing, and reports that it was skipped.
  diff_mode:
    support: none
    details: A line is added to a record, which is returned.
  idempotent:
    support: none
    details: Each benchmark adds a line.
"""

EXAMPLES = r"""
- name: Measure what serves
  llmfleet.sglang.benchmark:
    service: sglang-qwen
    instance: qwen
    profile: qwen3_5_397b_nvfp4
    root: /opt/sglang
    state_folder: /var/lib/llmfleet
    host: 10.77.0.11
    port: 30000
    user: sglang
    shapes:
      - {input_tokens: 1024, output_tokens: 512, concurrency: 32, requests: 128}
  become: true
"""

RETURN = r"""
benchmark:
  description:
    - The line that was added to C(benchmarks.jsonl); C(docs/benchmark.md) says what it holds. With O(against), its
      C(verdict) has C(result), C(reason) and C(arithmetic).
  type: dict
  returned: if something was measured
against:
  description: The benchmark that it was judged against; null where there is none.
  type: dict
  returned: if something was measured
path:
  description: The file that the line was added to.
  type: str
  returned: success
problems:
  description: Lines of the record that cannot be read, a sentence each.
  type: list
  elements: str
  returned: if something was measured
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge, paths, record, running, shapes
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.asker import Asker, Over
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import Abandoned, BenchFailed
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.measure import Machine, Request, benchmark
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis import causes
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.systemd import SystemdError
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress

STANDARD_OUTPUT = 1
LOCK = "lock.json"
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def request_of(params: dict[str, Any]) -> Request:
    """The module's arguments as the logic takes them. Raises ValueError."""
    if not 0 <= params["cold"] < params["runs"]:
        raise ValueError(f"of {params['runs']} runs {params['cold']} cannot be cold")
    return Request(
        service=params["service"],
        instance=params["instance"],
        profile=params["profile"],
        root=Path(params["root"]),
        state=Path(params["state_folder"]),
        host=LOOPBACK.get(params["host"], params["host"]),
        port=params["port"],
        shapes=shapes.read(params["shapes"]),
        runs=params["runs"],
        cold=params["cold"],
        timeout=params["timeout"],
        user=params["user"],
        api_key=params["api_key"],
        reason=params["reason"],
        visible=tuple(params["visible_gpus"]),
        paths=paths.read(params["paths"]),
        causes=causes.read(params["causes"]),
        quality=params["quality"],
        tried=params["change"].get("environment") or {},
    )


def baseline_in(kept: list[record.Benchmark], found: record.Benchmark, params: dict[str, Any], state: str) -> Any:
    """The benchmark to judge against; None if there is none. Raises ValueError for an id that is not there."""
    if params["against"] == "before":
        return judge.baseline_of(kept, found, before=state, failed=judge.lost(kept))
    named = [one for one in kept if one.id == params["against"]]
    if not named:
        raise ValueError(f"there is no benchmark {params['against']} in the record")
    return named[-1]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "instance": {"type": "str", "required": True},
            "profile": {"type": "str", "required": True},
            "root": {"type": "path", "required": True},
            "state_folder": {"type": "path", "required": True},
            "host": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "user": {"type": "str", "default": ""},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "shapes": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {key: {"type": "int", "required": True, "no_log": False} for key in shapes.KEYS},
            },
            "runs": {"type": "int", "default": 6},
            "cold": {"type": "int", "default": 1},
            "timeout": {"type": "int", "default": 3600},
            "visible_gpus": {"type": "list", "elements": "int", "default": []},
            "paths": {"type": "list", "elements": "dict", "default": []},
            "causes": {"type": "list", "elements": "dict", "default": []},
            "quality": {"type": "float"},
            "reason": {"type": "str", "default": "asked", "choices": list(record.REASONS)},
            "against": {"type": "str", "default": ""},
            "recorded": {"type": "bool", "default": False},
            "change": {"type": "dict", "default": {}},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    folder = Path(params["state_folder"]) / params["instance"]
    place = folder / record.NAME
    if module.check_mode:
        module.exit_json(changed=True, skipped=True, path=str(place), msg="Check mode: nothing was measured.")
    progress = Progress(params["progress_file"], folder / "benchmark-durations.json")
    ended = False
    try:
        request = request_of(params)
        kept, problems = record.read(place)
        state = str(running.host_record(folder / "record.json").get("state", ""))
        machine = Machine(progress=progress, over=Over(Asker(STANDARD_OUTPUT), request.state / LOCK))
        found = benchmark(request, machine)
        before = None
        if params["against"]:
            before = baseline_in(kept, found, params, state)
            judged = judge.with_paths(
                judge.verdict(found, before),
                [one.id for one in request.paths if paths.concern(one, params["change"])],
                found.paths,
            )
            recorded = {"recorded": True} if params["recorded"] else {}
            told = {**judge.as_dict(judged), **recorded}
            found = replace(found, baseline=before.id if before else "", verdict=told)
        over = machine.over()
        if over:
            raise Abandoned(f"the figures were thrown away, for {over}")
        record.append(place, found)
        ended = True
    except (BenchFailed, running.NotServing, SystemdError, ValueError, OSError) as error:
        module.fail_json(msg=f"The benchmark failed, and nothing was recorded: {error}")
    finally:
        progress.close(ended=ended)
    module.exit_json(
        changed=True,
        benchmark=found.as_dict(),
        against=before.as_dict() if before else None,
        path=str(place),
        problems=problems,
    )


if __name__ == "__main__":
    main()
