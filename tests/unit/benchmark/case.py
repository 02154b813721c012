# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Made-up benchmarks, and a host on which an instance of ours serves, for the tests of benchmarks and trials."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import paths, record
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.bench import Target
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.measure import Machine, Request
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark, Measured, Run, Shape
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import MANIFEST
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis import causes
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.cards import Reading, read_gpus
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.look import View
from ansible_collections.llmfleet.sglang.plugins.module_utils._gpu.topology import Matrix

from tests.unit.host.fakes import FakeHost

ROOT = Path(__file__).resolve().parents[3]
PATHS = paths.read(yaml.safe_load((ROOT / "roles/sglang_benchmark/files/paths.yml").read_text("utf-8")))
CAUSES = causes.read(yaml.safe_load((ROOT / "roles/sglang_verify/files/causes.yml").read_text("utf-8")))
SHAPE = Shape(1024, 512, 32, 128)
ALONE = Shape(1024, 512, 1, 4)
RELEASE = "0.5.23-ff542dc8f-0123456789abcdef"
KEY = "sk-very-secret-1"
TOPOLOGY = "8 x RTX PRO 6000, SYS, NVLink none"
PACKAGES = ["torch==2.14.1", "flashinfer_python==0.7.2", "idna==3.0"]


def runs(*figures: float) -> tuple[Run, ...]:
    """Runs with these tokens a second."""
    return tuple(Run(one, 3 * one, 10.0, 100.0, 8.0) for one in figures)


def made(*figures: float, **changes: Any) -> Benchmark:
    """A benchmark of one shape with these runs, of which the first is cold."""
    given: dict[str, Any] = {
        "id": f"b-{changes.get('state', 'old')}",
        "at": "2026-11-30T10:00:00+00:00",
        "seconds": 60.0,
        "host": "gpu-07",
        "instance": "qwen",
        "profile": "qwen3_5_397b_nvfp4",
        "release": RELEASE,
        "version": "0.5.23",
        "commit": "ff542dc8fc4d2be4fb5846a2276de42f17fc644b",
        "tensor_parallel": 8,
        "topology": TOPOLOGY,
        "state": "old",
        "quality": 1.0,
        "shapes": (Measured(SHAPE, 1, runs(*figures)),),
        **changes,
    }
    return Benchmark(**given)


FAST = (3000.0, 3740.0, 3755.0, 3725.0, 3748.0, 3731.0)
SLOW = (180.0, 236.0, 238.0, 235.0, 237.0, 236.0)


class Serving:
    """A host on which sglang-qwen of ours serves on two cards."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeHost(folder)
        self.root, self.state = folder / "root", folder / "state"
        place = self.root / "releases" / RELEASE
        python = place / "venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        self.write(place / "release.json", release())
        self.write(
            self.state / "qwen" / "record.json", {"state": "s0", "checkpoint": "nvidia/Q@old", "release": RELEASE}
        )
        self.weights = folder / "models" / "q"
        self.write(self.weights / MANIFEST, {"format": 1, "repository": "nvidia/Q", "revision": "9f", "files": []})
        self.environ = {
            "HOME": "/var/lib/sglang-qwen",
            "LLMFLEET_STATE": "s1",
            "NCCL_P2P_LEVEL": "SYS",
            "MY_API_TOKEN": "hunter2",
            "HTTPS_PROXY": "http://me:pass@proxy:3128",
        }
        self.command = (
            f"{python} -m sglang.launch_server --model-path {self.weights} --tp-size 2 --sleep-on-idle "
            "--served-model-name qwen3.5 --config /run/credentials/sglang.yaml"
        )
        self.start(10)
        self.fake.loads = {0: ("99", "410.00"), 1: ("98", "400.00")}
        self.figures = iter(FAST * 4)
        self.asked: list[tuple[Target, Shape, int]] = []
        self.info: Mapping[str, Any] | None = {"tp_size": 2, "api_key": KEY, "sleep_on_idle": True}

    def start(self, pid: int, **environ: str) -> None:
        """Start the process, with these variables over its own."""
        self.fake.add_process(pid, self.command, unit="sglang-qwen.service", env={**self.environ, **environ})
        self.fake.add_unit("sglang-qwen.service", main_pid=pid)

    @staticmethod
    def write(path: Path, value: Any) -> None:
        """Write JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def measure(self, target: Target, shape: Shape, seed: int, timeout: float) -> Run:
        """Stands for bench_serving."""
        self.asked.append((target, shape, seed))
        return Run(next(self.figures), 9000.0, 10.0, 100.0, 8.0)

    def machine(self, **changes: Any) -> Machine:
        """The host, as the logic reaches it."""
        given: dict[str, Any] = {
            "run": self.fake.run,
            "proc": self.fake.proc,
            "look": lambda run, limit: view(read_gpus(run, limit)),
            "measure": self.measure,
            "info": lambda url, key: self.info,
            "patience": 0.0,
            **changes,
        }
        return Machine(**given)

    def request(self, **changes: Any) -> Request:
        """What is asked for."""
        given: dict[str, Any] = {
            "service": "sglang-qwen",
            "instance": "qwen",
            "profile": "qwen3_5_397b_nvfp4",
            "root": self.root,
            "state": self.state,
            "host": "127.0.0.1",
            "port": 30000,
            "shapes": (SHAPE,),
            "runs": 6,
            "cold": 1,
            "timeout": 60.0,
            "api_key": KEY,
            "paths": PATHS,
            "causes": CAUSES,
            **changes,
        }
        return Request(**given)


def view(reading: Reading) -> View:
    """What is seen of cards that are all as far from each other as can be."""
    names = [f"GPU{gpu.index}" for gpu in reading.gpus]
    return View(reading, topology=Matrix({one: {other: "SYS" for other in names if other != one} for one in names}))


def release(patch_sets: Sequence[str] = ("sm120",)) -> dict[str, Any]:
    """A release's record with one edit of each patch set."""
    return {
        "id": RELEASE,
        "inputs": {
            "commit": "ff542dc8fc4d2be4fb5846a2276de42f17fc644b",
            "version": "0.5.23",
            "patch_sets": [{"name": name, "edits": [{"id": f"edit_of_{name}"}]} for name in patch_sets],
        },
        "patched": [{"id": f"edit_of_{name}", "state": "present", "file": "sglang/x.py"} for name in patch_sets],
        "digests": {"src/python/sglang/x.py": "5f0c"},
        "packages": PACKAGES,
        "python": "3.11.2",
        "cuda": "13.0",
    }


def kept(place: Path) -> list[Benchmark]:
    """The benchmarks of a file, of which every line has to be readable."""
    found, problems = record.read(place)
    assert problems == []
    return found
