# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What building a version needs: the shipped data, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.needs import (
    Needs,
    build_requirements,
    lock_problems,
    needs_of,
)

RULES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[3] / "roles/sglang_build/files/builds.yml").read_text()
)
RUST_NONE = {"SGLANG_BUILD_RUST_EXTS": "none"}


@pytest.mark.parametrize(
    ("version", "python", "kernel", "cuda", "extras", "flags", "tools"),
    [
        ("0.4.6", "3.10", "sgl-kernel", "12", ("srt",), {}, []),
        ("0.5.2", "3.10", "sgl-kernel", "12", ("srt",), {}, []),
        ("0.5.3", "3.10", "sgl-kernel", "12", (), {}, []),
        ("0.5.9", "3.10", "sgl-kernel", "12", (), {}, []),
        ("0.5.10.post1", "3.10", "sglang-kernel", "12", (), {}, []),
        ("0.5.11", "3.10", "sglang-kernel", "13", (), {}, ["cargo", "protoc"]),
        ("0.5.16", "3.10", "sglang-kernel", "13", (), {}, ["cargo", "protoc"]),
        ("0.5.18", "3.10", "sglang-kernel", "13", (), RUST_NONE, ["cargo", "protoc"]),
        ("0.5.21", "3.10", "sglang-kernel", "13", (), RUST_NONE, ["cargo", "protoc"]),
        ("0.5.22", "3.11", "sglang-kernel", "13", (), RUST_NONE, ["cargo", "protoc"]),
        ("0.5.23", "3.11", "sglang-kernel", "13", (), RUST_NONE, ["cargo", "protoc"]),
        ("0.5.23-14-gff542dc8f", "3.11", "sglang-kernel", "13", (), RUST_NONE, ["cargo", "protoc"]),
    ],
)
def test_what_each_version_needs(
    version: str,
    python: str,
    kernel: str,
    cuda: str,
    extras: tuple[str, ...],
    flags: dict[str, str],
    tools: list[str],
) -> None:
    needs = needs_of(RULES, version)
    assert (needs.python, needs.kernel, needs.cuda, needs.extras) == (python, kernel, cuda, extras)
    assert needs.environment == flags
    assert [tool.name for tool in needs.tools] == tools


def test_every_row_says_where_it_is_known_from() -> None:
    assert all(row["source"] and row["id"] for row in RULES)
    assert len({row["id"] for row in RULES}) == len(RULES)


def test_rows_that_contradict_are_named() -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "python": "3.10"}, {"id": "b", "python": "3.11"}]
    with pytest.raises(ValueError, match="a and b both give python"):
        needs_of(rows, "0.5.23")
    rows = [{"id": "a", "environment": {"X": 1}}, {"id": "b", "environment": {"X": 2}}]
    with pytest.raises(ValueError, match="a and b both give X"):
        needs_of(rows, "0.5.23")


def test_a_misspelt_row_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown keys: pyhton"):
        needs_of([{"id": "a", "pyhton": "3.11"}], "0.5.23")


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ('[build-system]\nrequires = ["setuptools>=61.0", "wheel"]\n\n[project]\n', ["setuptools>=61.0", "wheel"]),
        (
            '[project]\nname = "x"\n[build-system]\nrequires = [\n  "setuptools>=61.0",  # why\n'
            '  "setuptools-scm>=8.0",\n]\nbuild-backend = "b"\n',
            ["setuptools>=61.0", "setuptools-scm>=8.0"],
        ),
        ("[build-system]\nrequires = ['torch[opt]==2.14.1']\n", ["torch[opt]==2.14.1"]),
        ('[project]\nrequires = ["not this"]\n', ["setuptools>=61.0"]),
        ("", ["setuptools>=61.0"]),
    ],
)
def test_what_the_build_itself_requires(text: str, required: list[str]) -> None:
    assert build_requirements(text) == required


def test_a_table_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        build_requirements("[build-system]\nrequires = [oops]\n")


NEEDS = Needs(kernel="sglang-kernel", cuda="13")
GOOD = "sglang-kernel==0.4.10 \\\n    --hash=sha256:aa\nflashinfer-python==0.7.2\nnvidia-cudnn-cu13==9.24.0.43\n"


def test_a_lock_that_fits_has_no_problems() -> None:
    assert lock_problems(GOOD, NEEDS) == []
    local = "flashinfer-cubin==0.7.2+cu130\nflashinfer-jit-cache==0.7.2+cu130torch2\n"
    assert lock_problems(GOOD + local, NEEDS) == []
    assert lock_problems("sglang-kernel==0.4.10\ntorch==2.14.1+cpu\n", NEEDS) == []


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (GOOD + "flashinfer-cubin==0.7.1\n", "flashinfer-cubin 0.7.1, flashinfer-python 0.7.2"),
        (GOOD + "sgl-kernel==0.3.21\n", "holds sgl-kernel"),
        (GOOD.replace("sglang-kernel", "sgl-kernel"), "lacks sglang-kernel"),
        (GOOD.replace("cu13==", "cu12=="), "for CUDA 12, and this version's is for CUDA 13"),
        (GOOD + "nvidia-cudnn-cu12==9.1\n", "for CUDA 12 and 13"),
    ],
)
def test_a_lock_that_does_not_fit_is_told(lock: str, said: str) -> None:
    assert any(said in problem for problem in lock_problems(lock, NEEDS))
