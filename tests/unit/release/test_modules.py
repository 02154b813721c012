# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the build, run as Ansible runs them: what they answer, and that check mode leaves all as it is."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import keep, record
from ansible_collections.llmfleet.sglang.plugins.modules import (
    release_prune,
    release_record,
    release_requirements,
    release_source,
    source_bundle,
    source_mirror,
)

from tests.unit.release.repository import Repository

RULES = yaml.safe_load((Path(__file__).parents[3] / "roles/sglang_build/files/builds.yml").read_text())
COMMIT = "ff542dc8" * 5


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a module in this process, whose priority stays as it is, and return what it answers."""

    def run(module: ModuleType, *, check: bool = False, **given: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "build_gives_way", lambda: None, raising=False)
        with patch_module_args({**given, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            module.main()
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    return run


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first in PATH, for commands that the host shall have."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def command(path: Path, says: str) -> None:
    """Make a command that prints a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    path.chmod(0o755)


def requirements(**changes: Any) -> dict[str, Any]:
    """Arguments of release_requirements for a host with everything."""
    given = {"version": "0.5.23", "rules": RULES, "commit": COMMIT, "describe": "v0.5.23", "python": sys.executable}
    return {**given, **changes}


def test_flags_and_compilers_for_the_cards_that_are_there(answer: Any, commands: Path, tmp_path: Path) -> None:
    command(commands / "nvidia-smi", "12.0\n12.0")
    command(tmp_path / "cuda/bin/nvcc", "Cuda compilation tools, release 13.0, V13.0.88")
    said = answer(release_requirements, **requirements(cuda_home=str(tmp_path / "cuda")))
    assert said["flags"] == {
        "SGLANG_BUILD_RUST_EXTS": "none",
        "TORCH_CUDA_ARCH_LIST": "12.0a",
        "FLASHINFER_CUDA_ARCH_LIST": "12.0a",
    }
    jobs = said["compilers"].pop("MAX_JOBS")
    assert int(jobs) >= 1
    assert said["compilers"] == {"TORCH_CUDA_ARCH_LIST": "12.0a", "FLASHINFER_CUDA_ARCH_LIST": "12.0a"}


def test_what_the_operator_set_wins_and_jobs_are_no_part_of_the_release(
    answer: Any, commands: Path, tmp_path: Path
) -> None:
    command(commands / "nvidia-smi", "12.0")
    command(tmp_path / "cuda/bin/nvcc", "release 13.0, V13.0.88")
    flags = {"MAX_JOBS": 3, "TORCH_CUDA_ARCH_LIST": "12.0"}
    said = answer(release_requirements, **requirements(cuda_home=str(tmp_path / "cuda"), flags=flags))
    assert said["flags"]["TORCH_CUDA_ARCH_LIST"] == "12.0"
    assert "MAX_JOBS" not in said["flags"]
    assert said["compilers"]["MAX_JOBS"] == "3"


def test_an_engine_on_the_cpu_needs_no_toolkit(answer: Any) -> None:
    said = answer(release_requirements, **requirements(device="cpu", cuda_home="/nowhere"))
    assert said["flags"] == {"SGLANG_BUILD_RUST_EXTS": "none"}


def test_without_a_tag_the_build_is_told_its_version(answer: Any) -> None:
    said = answer(release_requirements, **requirements(device="cpu", describe="", version="0.5.23-14-gff542dc8f"))
    assert said["flags"]["SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SGLANG"] == "0.5.23+gff542dc8f"


def test_all_that_is_missing_is_told_at_once(answer: Any, commands: Path) -> None:
    rules = [{"id": "x", "python": "3.99", "cuda": "13", "tools": [{"name": "no-such-cargo"}]}]
    said = answer(release_requirements, **requirements(rules=rules, cuda_home="/nowhere"))
    assert said["failed"]
    lines = said["msg"].splitlines()
    assert lines[0] == "SGLang 0.5.23 cannot be built here, and nothing was stopped:"
    assert [line.split(",")[0] for line in lines[1:4]] == [
        "- SGLang 0.5.23 needs Python 3.99 or newer",
        "- the build calls no-such-cargo",
        "- SGLang compiles kernels at its first start",
    ]


def test_releases_go_for_real_and_in_check_mode_in_words(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc").mkdir()
    names = [f"0.5.23-abc-{number}" for number in (1, 2)]
    for name in names:
        (tmp_path / "releases" / name).mkdir(parents=True)
        (tmp_path / "releases" / name / "release.json").write_text(json.dumps({"id": name, "built_at": name}))
    places = partial(keep.Places, units=(), proc=tmp_path / "proc", caches=tmp_path / "caches")
    monkeypatch.setattr(release_prune, "keep", SimpleNamespace(**{**vars(keep), "Places": places}))
    given = {"root": str(tmp_path), "state": str(tmp_path / "state"), "keep": 1}
    foreseen = answer(release_prune, check=True, **given)
    assert (foreseen["changed"], foreseen["removed"]) == (True, names[:1])
    assert len(list((tmp_path / "releases").iterdir())) == 2
    assert answer(release_prune, **given)["removed"] == foreseen["removed"]
    again = answer(release_prune, **given)
    assert (again["changed"], again["kept"]) == (False, {names[1]: "among the newest"})
    assert "keep has to be 1 or more" in answer(release_prune, **{**given, "keep": 0})["msg"]


def test_a_source_tree_is_laid_out_once_and_never_where_there_is_no_room(answer: Any, tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    commit = upstream.commit("[project]\n")
    mirror = {"repository": upstream.url, "path": str(tmp_path / "mirror.git"), "commit": commit}
    foreseen = answer(source_mirror, check=True, **mirror)
    assert (foreseen["changed"], foreseen["msg"]) == (True, f"would fetch {upstream.url}")
    assert not (tmp_path / "mirror.git").exists()
    assert answer(source_mirror, **mirror)["pyproject"] == "[project]\n"
    given = {"mirror": mirror["path"], "commit": commit, "path": str(tmp_path / "releases" / "id")}
    told = answer(release_source, **given, first_bytes=1 << 60)
    assert told["failed"] and "are missing" in told["msg"] and "nothing was stopped" in told["msg"]
    assert not Path(given["path"]).exists()
    foreseen = answer(release_source, check=True, **given)
    assert (foreseen["changed"], foreseen["laid_out"]) == (True, False)
    assert not Path(given["path"]).exists()
    assert answer(release_source, **given)["laid_out"]
    shutil.rmtree(tmp_path / "mirror.git")
    (tmp_path / "releases/id/release.json").write_text(json.dumps({"id": "id"}))
    assert answer(release_source, **given)["changed"] is False


def test_a_record_says_where_the_release_is_from_without_passwords(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"python": "3.11.2", "torch": "2.14.1", "cuda": "13.0", "packages": ["torch==2.14.1"]}
    monkeypatch.setattr(record, "probe", lambda *_given: found)
    monkeypatch.setattr(record, "settle", lambda _places: None)
    folder = tmp_path / "releases" / "id"
    (folder / "venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    given = {"path": str(folder), "inputs": {"commit": COMMIT}, "uv_version": "0.13.9", "link_mode": "symlink"}
    said = answer(release_record, **given, repository="https://me:secret@example.org/sglang.git")
    kept = json.loads((folder / "release.json").read_text())
    assert kept == said["record"]
    assert (kept["repository"], kept["uv_version"], kept["link_mode"]) == (
        "https://me:***@example.org/sglang.git",
        "0.13.9",
        "symlink",
    )
    assert (folder / "packages.json.gz").exists()


def test_the_source_goes_from_host_to_host_in_a_bundle(answer: Any, tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    commit = upstream.commit("[project]\n")
    has, lacks, bundle = tmp_path / "has.git", tmp_path / "lacks.git", tmp_path / "fleet.bundle"
    given = {"mirror": str(has), "commit": commit, "dest": str(bundle)}
    told = answer(source_bundle, **given)
    assert told["failed"] and f"This host has no commit {commit} in {has}" in told["msg"]
    assert "sglang_source_host" in told["msg"]
    answer(source_mirror, repository=upstream.url, path=str(has), commit=commit)
    assert answer(source_bundle, check=True, **given)["changed"] and not bundle.exists()
    assert answer(source_bundle, **given)["dest"] == str(bundle)
    nowhere = {"repository": "https://nowhere.invalid/x.git", "path": str(lacks), "commit": commit}
    said = answer(source_mirror, bundle=str(bundle), **nowhere)
    assert (said["changed"], said["pyproject"]) == (True, "[project]\n")
