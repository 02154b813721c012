# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has for a build: interpreter, tools, memory, cards. Private to the collection."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner, run
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs, Tool

GIB = 1 << 30
# nvcc takes up to this much for one of FlashInfer's kernels.
JOB_BYTES = 4 * GIB
# What an install and the import test take, without any compiler.
LEAST_BYTES = 2 * GIB
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Memory:
    """Bytes of the host, as /proc/meminfo says."""

    total: int
    available: int


def read_memory(path: Path = Path("/proc/meminfo")) -> Memory:
    """Read the host's memory. Raises OSError and ValueError."""
    values = dict(re.findall(r"^(\w+):\s+(\d+) kB", path.read_text(encoding="ascii"), re.MULTILINE))
    try:
        return Memory(int(values["MemTotal"]) * 1024, int(values["MemAvailable"]) * 1024)
    except KeyError as error:
        raise ValueError(f"{path} does not say {error}") from error


def jobs(cores: int, memory: Memory) -> int:
    """Return how many compilers may run at once: one for each core, as far as the memory holds them."""
    return max(1, min(cores, memory.total // JOB_BYTES))


def arch_list(capabilities: Sequence[str]) -> str:
    """Return the architectures to compile for, such as "12.0a", from compute capabilities such as "12.0".

    From 9.0 on kernels use instructions of one generation, which nvcc gives to the names with an "a" alone. FlashInfer
    takes a name with a letter as it is (its compilation_context.py), and torch knows it (TORCH_CUDA_ARCH_LIST).
    """
    found = sorted(
        {tuple(int(part) for part in one.split(".")) for one in capabilities if re.fullmatch(r"\d+\.\d+", one)}
    )
    return " ".join(f"{major}.{minor}{'a' if major >= 9 else ''}" for major, minor in found)


def read_capabilities(runner: Runner = run) -> list[str]:
    """Return the compute capability of each card; none where there is no driver to ask."""
    asked = runner(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], _TIMEOUT)
    return [line.strip() for line in asked.stdout.splitlines()] if asked.ok else []


def numbers(text: str) -> tuple[int, ...]:
    """Return the first dotted number in a text: (1, 85, 0) of "cargo 1.85.0 (d73d2caf9 2024-12-31)"; () without one."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def python_problem(description: str, python: str, needs: Needs, version: str) -> str:
    """Say that an interpreter ("cpython 3.10.12 x86_64", at the path `python`) is too old; "" when it is not."""
    if not needs.python or numbers(description) >= numbers(needs.python):
        return ""
    found = ".".join(str(number) for number in numbers(description))
    return (
        f"SGLang {version} needs Python {needs.python} or newer, and {python} is {found}: install one, and name it in "
        "sglang_python"
    )


def tool_problems(tools: Sequence[Tool], flags: Mapping[str, str], runner: Runner = run) -> list[str]:
    """Say which commands of a build are missing or too old, a sentence each."""
    problems = []
    for tool in tools:
        if any(flags.get(name) == value for name, value in tool.unless.items()):
            continue
        asked = runner([tool.name, "--version"], _TIMEOUT)
        instead = "".join(
            f", or build without it: sglang_build_environment {name}={v}" for name, v in tool.unless.items()
        )
        if not asked.ok:
            least = f" {tool.least} or newer" if tool.least else ""
            problems.append(f"the build calls {tool.name}, and {asked.describe()}: install it{least}{instead}")
        elif tool.least and numbers(asked.stdout) < numbers(tool.least):
            said = asked.stdout.strip().splitlines()[0]
            problems.append(f"the build needs {tool.name} {tool.least} or newer, and here is {said}{instead}")
    return problems


def toolkit_problem(needs: Needs, cuda_home: str, runner: Runner = run) -> str:
    """Say that the CUDA compiler is missing or of another major version than the packages; "" when it fits."""
    nvcc = f"{cuda_home}/bin/nvcc"
    asked = runner([nvcc, "--version"], _TIMEOUT)
    wanted = f"SGLang compiles kernels at its first start, with the nvcc of CUDA {needs.cuda}"
    if not asked.ok:
        return f"{wanted}, and {asked.describe()}: install the CUDA {needs.cuda} toolkit"
    release = re.search(r"release (\d+)\.(\d+)", asked.stdout)
    if needs.cuda and release and release[1] != needs.cuda:
        return (
            f"{wanted}, and {nvcc} is of CUDA {release[1]}.{release[2]}: let {cuda_home} be a CUDA {needs.cuda} toolkit"
        )
    return ""


def memory_problem(memory: Memory) -> str:
    """Say that there is too little memory to build beside what serves; "" when there is enough."""
    if memory.available >= LEAST_BYTES:
        return ""
    return (
        f"{memory.available / GIB:.1f} GiB of memory are available, and building beside what serves takes "
        f"{LEAST_BYTES / GIB:.0f} GiB"
    )


def cores() -> int:
    """Return how many cores the host has."""
    return os.cpu_count() or 1
