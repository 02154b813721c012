# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a benchmark measured and of what, one JSON line each in `<state>/<instance>/benchmarks.jsonl`. Private.

A line is one benchmark of one running instance, with all its shapes; a benchmark that fails leaves no line:

    {"schema": 1,
     "id": "20261130T103000Z-3f9c01",       names the benchmark in trials.jsonl and in reports
     "at": "2026-11-30T10:30:00+00:00",     when it began, UTC
     "seconds": 141.2,                      how long it took
     "reason": "asked",                     asked | rollout | baseline | trial
     "host": "gpu-07",
     "instance": "qwen", "service": "sglang-qwen", "profile": "qwen3_5_397b_nvfp4", "model": "qwen3.5-397b-a17b",
     "checkpoint": "nvidia/Qwen3.5-397B-A17B-NVFP4@<revision>",
     "state": "<LLMFLEET_STATE of the process that was measured>", "main_pid": 4711,
     "release": "0.5.23-ff542dc8f-0c39ca6572f313f0", "commit": "<40 hex>", "version": "0.5.23",
     "patch_sets": ["sm120"],
     "patches": [{"patch_set": "sm120", "id": "symm_mem_max_sizes", "state": "present",
                  "file": "sglang/…/all_reduce_utils.py", "digest": "<SHA-256 of the patched file>"}],
     "paths": [{"id": "fusion", "asked": true, "active": false, "evidence": "<a line of the log>", "source": "…",
                "by": {"patch_sets": ["sm120_fusion"], "arguments": ["…"], "environment": []}}],
     "arguments": {"tp-size": "8", "sleep-on-idle": true},
     "arguments_digest": "<SHA-256>",       over arguments and environment
     "resolved": {"tp-size": 8},            what /server_info says of these arguments, where it tells
     "environment": {"NCCL_P2P_LEVEL": "SYS"},       what the deployment sets; values that may be secrets are "***"
     "tried": {"NCCL_P2P_LEVEL": "as asked"},        of each variable on trial: as asked | another value | absent
     "packages": {"torch": "2.14.1", "flashinfer_python": "0.7.2"}, "python": "3.11.2", "cuda": "13.0",
     "tensor_parallel": 8,
     "topology": "8 x NVIDIA RTX PRO 6000 …, SYS, NVLink none", "driver": "580.159.04",
     "quality": 1.0,                        share of right answers before it, null if nobody asked
     "shapes": [{"input_tokens": 1024, "output_tokens": 512, "concurrency": 32, "requests": 128,
                 "cold": 1,                 so many of the first runs are left out of every verdict
                 "runs": [{"output_tokens_per_second": 3740.1, "total_tokens_per_second": 11220.3, "seconds": 17.5,
                           "ttft_ms": 812.0, "tpot_ms": 8.1}]}],     medians over the run's requests
     "samples": [{"second": 12.0,           since the benchmark began
                  "cards": [{"uuid": "GPU-…", "utilisation": 99.0, "draw": 412.0, "limit": 600.0, "clock": 2400.0}]}],
     "findings": [{"id": "gpu_starved", "severity": "warns", "message": "…", "evidence": "…", "advice": "…"}],
     "baseline": "20261129T…",              the benchmark that it was held against; "" for none
     "verdict": {"result": "better",        better | same | worse | no verdict | no baseline | inert; null: not judged
                 "reason": "…", "arithmetic": ["…"], "change": 0.12, "low": 0.1, "high": 0.14, "threshold": 0.1,
                 "recorded": true}}    a trial took a recorded benchmark for its baseline; left out where it did not

Percent, W and MHz; null where nvidia-smi has no answer. There are at most MOST_SAMPLES samples.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import lines

NAME = "benchmarks.jsonl"
MOST_SAMPLES = 40  # of eight cards some 35 kB, which is most of a line
NO_GPU = "no GPU"  # the topology of a host without cards
REASONS = ("asked", "rollout", "baseline", "trial")


@dataclass(frozen=True)
class Shape:
    """What is asked for: tokens in and out of each request, requests at a time, and requests in all."""

    input_tokens: int
    output_tokens: int
    concurrency: int
    requests: int

    @property
    def name(self) -> str:
        """The shape in words; part of what has to be equal between two measurements."""
        return (
            f"{self.input_tokens} tokens in, {self.output_tokens} out, {self.concurrency} at a time, "
            f"{self.requests} in all"
        )


@dataclass(frozen=True)
class Run:
    """One run of bench_serving: tokens a second, seconds, and the medians of its requests in ms (None: not told)."""

    output_tokens_per_second: float
    total_tokens_per_second: float
    seconds: float
    ttft_ms: float | None = None
    tpot_ms: float | None = None


@dataclass(frozen=True)
class Measured:
    """The runs of one shape in the order in which they were made; the first `cold` count for nothing."""

    shape: Shape
    cold: int
    runs: tuple[Run, ...]

    @property
    def warm(self) -> list[float]:
        """Output tokens a second of the runs that count."""
        return [run.output_tokens_per_second for run in self.runs[self.cold :]]

    @property
    def median(self) -> float:
        """The median of the warm runs; 0 without any."""
        return statistics.median(self.warm) if self.warm else 0.0


@dataclass(frozen=True)
class Card:
    """One card at one moment: percent, W, W, MHz."""

    uuid: str
    utilisation: float | None
    draw: float | None
    limit: float | None
    clock: float | None = None


@dataclass(frozen=True)
class Sample:
    """All cards at one moment. second: since the benchmark began."""

    second: float
    cards: tuple[Card, ...]

    @property
    def draw(self) -> float | None:
        """W of all cards together; None where none tells."""
        known = [card.draw for card in self.cards if card.draw is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class Benchmark:
    """One line; the module's docstring says what each field holds."""

    id: str
    at: str
    seconds: float
    instance: str
    profile: str
    release: str
    tensor_parallel: int
    topology: str
    shapes: tuple[Measured, ...]
    reason: str = "asked"
    host: str = ""
    service: str = ""
    model: str = ""
    checkpoint: str = ""
    state: str = ""
    main_pid: int = 0
    commit: str = ""
    version: str = ""
    patch_sets: tuple[str, ...] = ()
    patches: tuple[Mapping[str, Any], ...] = ()
    paths: tuple[Mapping[str, Any], ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    arguments_digest: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    tried: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    cuda: str = ""
    driver: str = ""
    quality: float | None = None
    samples: tuple[Sample, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)
    baseline: str = ""
    verdict: Mapping[str, Any] | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """What makes two benchmarks comparable, the shapes aside."""
        return {
            "profile": self.profile,
            "tensor parallel size": self.tensor_parallel,
            "topology": self.topology,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return it as a line holds it, without `schema`."""
        content = asdict(self)
        content["shapes"] = [
            {**asdict(one.shape), "cold": one.cold, "runs": [asdict(run) for run in one.runs]} for one in self.shapes
        ]
        plain: dict[str, Any] = json.loads(json.dumps(content))
        return plain

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Benchmark:
        """Read what `as_dict` returned; a field that is not known is left out. Raises ValueError."""
        try:
            return cls(**_fields(value))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is no benchmark: {error}") from error


_TUPLES = ("patch_sets", "patches", "paths", "findings")


# What a field has to be, by how it is declared. JSON has no tuples, and a whole number of seconds is a number too.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "Mapping[str, Any] | None": (dict, type(None)),
    "Mapping[str, Any]": (dict,),
    "Mapping[str, str]": (dict,),
}


def _checked(name: str, value: Any) -> Any:
    """Return a field's value. Raises ValueError where it is of another kind than declared."""
    declared = str(Benchmark.__dataclass_fields__[name].type)
    fits = isinstance(value, _KINDS.get(declared, (list, tuple))) and not isinstance(value, bool)
    if not fits:
        raise ValueError(f"{name} is {value!r}")
    if declared.startswith("tuple[Mapping") and not all(isinstance(one, Mapping) for one in value):
        raise ValueError(f"{name} is no list of maps")
    return value


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: _checked(name, value[name]) for name in Benchmark.__dataclass_fields__ if name in value}
    known.update({name: tuple(known[name]) for name in _TUPLES if name in known})
    known["shapes"] = tuple(_measured(one) for one in value["shapes"])
    known["samples"] = tuple(
        Sample(_figure("second", one["second"]), tuple(_card(card) for card in one["cards"]))
        for one in value.get("samples", [])
    )
    if any("id" not in one or "message" not in one for one in known.get("findings", ())):
        raise ValueError("a finding has no id or no message")
    return known


def _measured(value: Mapping[str, Any]) -> Measured:
    shape = Shape(*(int(value[name]) for name in ("input_tokens", "output_tokens", "concurrency", "requests")))
    cold = int(value["cold"])
    if cold < 0:
        raise ValueError(f"cold is {cold}")
    return Measured(shape, cold, tuple(_run(one) for one in value["runs"]))


def _run(value: Mapping[str, Any]) -> Run:
    speed = (_figure(name, value[name]) for name in ("output_tokens_per_second", "total_tokens_per_second", "seconds"))
    told = ((name, value.get(name)) for name in ("ttft_ms", "tpot_ms"))
    return Run(*speed, *(None if one is None else _figure(name, one) for name, one in told))


def _card(value: Mapping[str, Any]) -> Card:
    figures = {name: one if one is None else _figure(name, one) for name, one in value.items() if name != "uuid"}
    return Card(str(value["uuid"]), **figures)


def _figure(name: str, value: Any) -> float:
    """Return a figure as it is. Raises ValueError for what cannot have been measured."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value


def read(path: Path) -> tuple[list[Benchmark], list[str]]:
    """Return the benchmarks of a file, the oldest first, and a sentence for each line that cannot be read."""
    rows, problems = lines.read(path)
    found: list[Benchmark] = []
    for row in rows:
        try:
            found.append(Benchmark.from_dict(row))
        except ValueError as error:
            problems.append(f"the benchmark {row.get('id', '(without id)')} in {path} is left out: {error}")
    return found, problems


def append(path: Path, benchmark: Benchmark) -> None:
    """Add a benchmark to a file. Raises OSError."""
    lines.append(path, benchmark.as_dict())


def digest(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Identify how an instance was started: SHA-256 over arguments and environment in a fixed order."""
    return hashlib.sha256(json.dumps([dict(arguments), dict(environment)], sort_keys=True).encode()).hexdigest()


def thinned(samples: Sequence[Sample], most: int = MOST_SAMPLES) -> tuple[Sample, ...]:
    """Return at most so many samples, evenly over the time."""
    if len(samples) <= most:
        return tuple(samples)
    return tuple(samples[round(number * (len(samples) - 1) / (most - 1))] for number in range(most))
