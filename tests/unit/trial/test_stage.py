# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real trial playbook on a host where a process stands for the engine, and stand-ins for the roles."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import record
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words
from ansible_collections.llmfleet.sglang.tests.unit.rollout.stage import Rollout, Stage

from tests.unit.benchmark.case import FAST, SHAPE, made

HOST = "h01"
TRIAL = {"environment": {"NCCL_P2P_LEVEL": "PHB"}}
SHAPES = [{name: getattr(SHAPE, name) for name in ("input_tokens", "output_tokens", "concurrency", "requests")}]
PARTS = {"interpreter": "cpython 3.11.2 x86_64", "lock": [], "patch_sets": [], "environment": {}}


class Served:
    """A stage on which the deployment of the inventory serves, from a release of these parts."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder, [HOST])
        self.given: dict[str, Any] = {"sglang_root": str(folder / "root"), "sglang_benchmark_shapes": SHAPES}
        self.deployment = self._resolved()
        self.built = {"id": "r0", "interpreter": PARTS["interpreter"], "missing": [], "inputs": PARTS}
        self.parts = {**PARTS, "commit": self.deployment["build"]["commit"]}
        self.parts["patch_sets"] = [{"name": one["name"]} for one in self.deployment["patch_sets"]]
        self.process = self._start()
        self._roles()

    def _resolved(self) -> dict[str, Any]:
        """What the inventory describes."""
        place = self.stage.folder / "resolved.json"
        content = "{{ sglang_deployment | to_json }}"
        told = {"ansible.builtin.copy": {"content": content, "dest": str(place), "mode": "0600"}}
        play = {"name": "Tell", "hosts": "sglang", "gather_facts": False, "tasks": [told]}
        resolves = {"ansible.builtin.import_playbook": "llmfleet.sglang.resolve"}
        (self.stage.folder / "tell.yml").write_text(yaml.safe_dump([resolves, play]))
        run = self.stage.play(str(self.stage.folder / "tell.yml"), **self.given)
        assert run.rc == 0, run.output
        found: dict[str, Any] = json.loads(place.read_text())
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process, and have systemctl name it."""
        folder = self.stage.folder / "root" / "releases" / "r0"
        python = folder / "venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        (folder / "release.json").write_text(json.dumps({"id": "r0", "inputs": self.parts}))
        launch = self.deployment["launch"]
        words = [word for group in launch_words(launch["arguments"]) for word in group]
        environ = {**launch["environment"], "LLMFLEET_STATE": "s1"}
        process = subprocess.Popen([str(python), "-c", "import time; time.sleep(1200)", *words], env=environ)
        told = f"Id=sglang-qwen.service\\nLoadState=loaded\\nActiveState=active\\nMainPID={process.pid}\\n"
        (self.stage.bin(HOST) / "systemctl").write_text(f"#!/bin/sh\nprintf '{told}'\n")
        return process

    def _roles(self) -> None:
        """Have the build look, and the benchmark measure: first the baseline, then the change, which is recorded."""
        roles = self.stage.folder / "ansible_collections" / "llmfleet" / "sglang" / "roles"
        look = {"name": "Look", "ansible.builtin.set_fact": {"sglang_build_release": "{{ built }}"}}
        (roles / "sglang_build" / "tasks" / "look.yml").write_text(json.dumps([look]))
        place = self.stage.folder / "state" / HOST / "qwen"
        place.mkdir(parents=True)
        verdict = {"result": "same", "reason": "no change", "arithmetic": []}
        for name, more in (("baseline", {}), ("trial", {"verdict": verdict})):
            record.append(place / record.NAME, made(*FAST, id=name, state=name, reason=name, **more))
        measures = {
            "name": "Measure",
            "ansible.builtin.set_fact": {
                "sglang_benchmark_result": {
                    "benchmark": {"id": "{{ sglang_benchmark_reason }}", "reason": "{{ sglang_benchmark_reason }}"}
                }
            },
        }
        path = roles / "sglang_benchmark" / "tasks" / "main.yml"
        path.write_text(json.dumps([*yaml.safe_load(path.read_text()), measures]))

    def trial(self, host: dict[str, Any] | None = None, **variables: Any) -> Rollout:
        """Try the change."""
        told = {"built": self.built, **(host or {})}
        return self.stage.play("trial", {HOST: told}, **{**self.given, "sglang_trial": TRIAL, **variables})

    def recorded(self) -> dict[str, Any]:
        """The last trial's line."""
        place = self.stage.folder / "state" / HOST / "qwen" / "trials.jsonl"
        found: dict[str, Any] = json.loads(place.read_text().splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all: a run takes seconds, and what it leaves is no other's concern."""
    found = Served(tmp_path_factory.mktemp("trial"))
    yield found
    found.process.kill()
    found.process.wait(20)


def test_a_change_is_tried_on_the_very_release_that_serves(served: Served) -> None:
    run = served.trial(sglang_trial_same="keep")
    assert run.rc == 0, run.output
    assert run.came_to("measure") == [HOST, HOST]
    told = served.recorded()
    assert (told["baseline"], told["candidate"], told["result"], told["kept"]) == ("baseline", "trial", "same", True)


def test_another_release_is_refused_before_anything_is_built(served: Served) -> None:
    run = served.trial({"built": {**served.built, "id": "r1", "interpreter": "cpython 3.12.9 x86_64"}})
    assert run.rc == 2 and "deploy it first" in run.output
    assert "it runs on cpython 3.11.2 x86_64, and the deployment's sglang_python is cpython 3.12.9 x86_64" in run.output
    assert run.came_to("preflight") == [HOST] and run.came_to("build") == [] and run.came_to("measure") == []
    assert served.stage.locked() == []


def test_of_a_change_that_did_not_start_the_baselines_figures_are_not_its_own(served: Served) -> None:
    run = served.trial({"fails_in": "start"})
    assert run.rc == 2 and run.came_to("measure") == [HOST]
    told = served.recorded()
    assert (told["result"], told["candidate"], told["candidate_figures"]) == ("failed start", "", {})


def test_a_step_that_fails_after_the_verdict_is_no_success(served: Served) -> None:
    run = served.trial({"fails_in": "record"}, sglang_trial_same="keep")
    assert run.rc == 2, run.output
    told = served.recorded()
    assert told["result"] == "failed start" and told["reason"].endswith("and did not stay: The record failed.")
