# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has for a build, compared with what the build needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Outcome, Runner
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import host
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import Needs, Tool

GIB = host.GIB


def says(**answers: str) -> Runner:
    """A host whose commands print these texts; a command that is not named is not there."""

    def run(argv: Sequence[str], _timeout: float) -> Outcome:
        name = Path(argv[0]).name.replace("-", "_")
        if name not in answers:
            return Outcome(tuple(argv), None, problem="missing")
        return Outcome(tuple(argv), 0, answers[name])

    return run


@pytest.mark.parametrize(
    ("capabilities", "archs"),
    [
        (["12.0"] * 8, "12.0a"),
        (["12.0", "9.0"], "9.0a 12.0a"),
        (["8.9", "10.3"], "8.9 10.3a"),
        (["", "[N/A]"], ""),
        ([], ""),
    ],
)
def test_what_is_compiled_for(capabilities: list[str], archs: str) -> None:
    assert host.arch_list(capabilities) == archs


def test_the_cards_are_asked() -> None:
    assert host.read_capabilities(says(nvidia_smi="12.0\n12.0\n")) == ["12.0", "12.0"]
    assert host.read_capabilities(says()) == []


@pytest.mark.parametrize(
    ("cores", "total", "jobs"), [(64, 512 * GIB, 64), (64, 32 * GIB, 8), (2, 512 * GIB, 2), (8, 3 * GIB, 1)]
)
def test_as_many_compilers_as_cores_and_memory_hold(cores: int, total: int, jobs: int) -> None:
    assert host.jobs(cores, host.Memory(total, total)) == jobs


def test_memory_is_read_from_the_kernel(tmp_path: Path) -> None:
    real = host.read_memory()
    assert 0 < real.available <= real.total
    (tmp_path / "meminfo").write_text("MemTotal:  1024 kB\n")
    with pytest.raises(ValueError, match="MemAvailable"):
        host.read_memory(tmp_path / "meminfo")


def test_too_little_memory_is_told_with_figures() -> None:
    assert host.memory_problem(host.Memory(64 * GIB, 3 * GIB)) == ""
    assert "1.0 GiB of memory are available" in host.memory_problem(host.Memory(64 * GIB, GIB))


@pytest.mark.parametrize("found", ["cpython 3.11.2 x86_64", "cpython 3.12.0 x86_64", "cpython 3.11 x86_64"])
def test_a_python_that_is_new_enough(found: str) -> None:
    assert host.python_problem(found, "/usr/bin/python3", Needs(python="3.11"), "0.5.23") == ""


def test_a_python_that_is_too_old_is_one_clear_message() -> None:
    assert host.python_problem("cpython 3.10.12 x86_64", "/usr/bin/python3", Needs(python="3.11"), "0.5.23") == (
        "SGLang 0.5.23 needs Python 3.11 or newer, and /usr/bin/python3 is 3.10.12: install one, and name it in "
        "sglang_python"
    )


def test_tools_of_the_build() -> None:
    tools = [Tool("cargo", "1.85", {"RUST": "none"}), Tool("protoc")]
    assert host.tool_problems(tools, {}, says(cargo="cargo 1.85.1 (abc 2025)", protoc="libprotoc 3.21.12")) == []
    old, missing = host.tool_problems(tools, {}, says(cargo="cargo 1.63.0"))
    assert old == (
        "the build needs cargo 1.85 or newer, and here is cargo 1.63.0, "
        "or build without it: sglang_build_environment RUST=none"
    )
    assert missing == "the build calls protoc, and the command protoc is not there: install it"
    assert host.tool_problems(tools[:1], {"RUST": "none"}, says()) == []


def test_the_toolkit_has_to_fit_the_packages() -> None:
    needs = Needs(cuda="13")
    nvcc = "Cuda compilation tools, release {}, V1\n"
    assert host.toolkit_problem(needs, "/usr/local/cuda", says(nvcc=nvcc.format("13.0"))) == ""
    assert "is of CUDA 12.8: let /usr/local/cuda be a CUDA 13 toolkit" in host.toolkit_problem(
        needs, "/usr/local/cuda", says(nvcc=nvcc.format("12.8"))
    )
    assert "install the CUDA 13 toolkit" in host.toolkit_problem(needs, "/usr/local/cuda", says())
