# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache, commands, names, source and recipe of the fleet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tomllib

from fleet import checkpoint, config, faults, network, source
from fleet.cache import artefact, key_of, prune, remove
from fleet.shell import FleetError, alive, contained, end, exclusive, run, wait_for
from fleet.wheels import Pin, sha256_of


def test_an_artefact_is_made_once(tmp_path: Path) -> None:
    calls = []

    def build(target: Path) -> None:
        calls.append(target)
        (target / "file").write_text("x")

    one = artefact(tmp_path, "kind", {"a": 1}, build)
    assert artefact(tmp_path, "kind", {"a": 1}, build) == one
    assert (one / "file").read_text() == "x"
    assert artefact(tmp_path, "kind", {"a": 2}, build) != one
    assert len(calls) == 2


def test_a_build_that_fails_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    def fails(target: Path) -> None:
        (target / "half").write_text("x")
        raise FleetError("no")

    with pytest.raises(FleetError):
        artefact(tmp_path, "kind", 1, fails)
    assert [path.name for path in tmp_path.iterdir()] == [f".kind-{key_of(1)}.partial"]
    seen: list[Path] = []
    artefact(tmp_path, "kind", 1, lambda target: seen.extend(target.iterdir()))
    assert seen == [], "what the failed build left must not get into the next"


def test_pruning_removes_older_artefacts_and_halves_of_the_same_kinds(tmp_path: Path) -> None:
    for name in ("base-1", "base-2", "other-1", ".base-3.partial", "ssh"):
        (tmp_path / name).mkdir()
    prune(tmp_path, [tmp_path / "base-2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base-2", "other-1", "ssh"]


def test_removing_what_is_not_there_is_fine_and_links_are_not_followed(tmp_path: Path) -> None:
    remove(tmp_path / "none")
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove(tmp_path / "link")
    assert (tmp_path / "kept").is_dir()


def test_a_command_that_fails_is_named_with_what_it_said() -> None:
    with pytest.raises(FleetError, match=r"(?s)exit status 3: sh -c .*it broke"):
        run(["sh", "-c", "echo it broke; exit 3"])
    with pytest.raises(FleetError, match="not installed"):
        run(["no-such-program-here"])
    with pytest.raises(FleetError, match="still running after 0 s"):
        run(["sleep", "30"], timeout=0.2)


def test_a_wait_ends() -> None:
    with pytest.raises(FleetError, match="waited 0 s for the impossible"):
        wait_for("the impossible", lambda: False, 0.1, interval=0.01)


def test_a_lock_is_held_against_another_holder(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "lock"),
        pytest.raises(FleetError, match="another fleet command is at work"),
        exclusive(tmp_path / "lock"),
    ):
        pass
    with exclusive(tmp_path / "lock"):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_what_a_build_started_ends_with_it() -> None:
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    inner = contained(["sh", "-c", "sleep 4711 & sleep 4711"])
    process = subprocess.Popen([sys.executable, "-c", script, *inner])

    def sleepers() -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "cmdline").read_bytes() == b"sleep\x004711\x00":
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    wait_for("both sleepers", lambda: len(sleepers()) == 2, 10)
    process.kill()
    process.wait()
    wait_for("the sleepers to end", lambda: not [pid for pid in sleepers() if alive(pid)], 10)


def test_ending_processes_waits_for_them() -> None:
    process = subprocess.Popen(["sleep", "600"])
    end([process.pid])
    assert not alive(process.pid)
    end([process.pid])


def test_nodes_have_names_addresses_and_devices_that_fit() -> None:
    nodes = config.nodes(config.MAX_NODES)
    assert [node.address for node in nodes[:3]] == ["10.77.0.11", "10.77.0.12", "10.77.0.13"]
    assert nodes[0].netns == "llmfleet-node1"
    assert all(len(node.veth) <= 15 for node in nodes), "the kernel allows 15 characters"
    assert len({network.mac(node.address.rsplit(".", 1)[1]) for node in nodes}) == len(nodes)
    with pytest.raises(ValueError, match="between 1 and"):
        config.nodes(0)


def test_the_cache_is_the_invoking_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMFLEET_CACHE", raising=False)
    monkeypatch.setenv("SUDO_USER", "daemon")
    assert config.cache_folder() == Path("/usr/sbin/.cache/llmfleet")
    monkeypatch.setenv("LLMFLEET_CACHE", "/elsewhere")
    assert config.cache_folder() == Path("/elsewhere")


METADATA = """Metadata-Version: 2.4
Name: sglang
Version: 0.5.23
Summary: Serving
Requires-Python: >=3.11
Requires-Dist: torch==2.14.1
Requires-Dist: av==16.1.0; sys_platform == "linux" and (platform_machine == "aarch64" or platform_machine == "arm64")
Provides-Extra: ray
Requires-Dist: ray[default]>=2.55.1; extra == "ray"
Provides-Extra: diffusion
Requires-Dist: st_attn==0.0.7; (platform_machine != "aarch64" and platform_machine != "arm64") and extra == "diffusion"

Text
"""
SCRIPTS = "[console_scripts]\nsglang = sglang.cli.main:main\n\n[other]\nx = y\n"


def test_the_pyproject_keeps_requirements_extras_and_scripts() -> None:
    data = tomllib.loads(source.pyproject(METADATA, SCRIPTS))
    project = data["project"]
    assert project["dependencies"] == [
        "torch==2.14.1",
        'av==16.1.0; sys_platform == "linux" and (platform_machine == "aarch64" or platform_machine == "arm64")',
    ]
    assert project["optional-dependencies"] == {
        "ray": ["ray[default]>=2.55.1"],
        "diffusion": ['st_attn==0.0.7; (platform_machine != "aarch64" and platform_machine != "arm64")'],
    }
    assert project["scripts"] == {"sglang": "sglang.cli.main:main"}
    assert (project["name"], project["version"]) == ("sglang", "0.5.23")


def test_the_repository_s_commit_is_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "wheel.whl"
    info = f"sglang-{config.ENGINE_VERSION}.dist-info"
    with zipfile.ZipFile(store, "w") as archive:
        archive.writestr("sglang/__init__.py", "__version__ = '0'\n")
        archive.writestr("sglang/data.txt", "a\r\nb\r\n")
        archive.writestr(f"{info}/METADATA", METADATA)
        archive.writestr(f"{info}/entry_points.txt", SCRIPTS)
        archive.writestr(f"{info}/licenses/LICENSE", "free")
    wheel = Pin("sglang", config.ENGINE_VERSION, sha256_of(store))
    monkeypatch.setattr(source, "WHEEL", wheel)
    monkeypatch.setattr(source, "download", lambda cache, pins: {wheel: store})
    commits = set()
    for name, umask in (("a", 0o022), ("b", 0o077)):
        home = tmp_path / f"home-{name}"
        home.mkdir()
        (home / ".gitconfig").write_text(f"[user]\nname = {name}\n[core]\nautocrlf = true\n[commit]\ngpgsign = true\n")
        monkeypatch.setenv("HOME", str(home))
        old = os.umask(umask)
        try:
            folder = source.repository(tmp_path / name)
        finally:
            os.umask(old)
        commits.add(source.commit_of(folder))
        bare = folder / "sglang.git"
        said = run(["git", f"--git-dir={bare}", "describe", "main"]).strip()
        assert said == f"v{config.ENGINE_VERSION}"
        assert (bare / "info/refs").exists(), "dumb HTTP needs it"
        assert run(["git", f"--git-dir={bare}", "show", "main:python/sglang/data.txt"]) == "a\r\nb\r\n"
    assert len(commits) == 1
    assert re.fullmatch(r"[0-9a-f]{40}", commits.pop())


def test_the_revision_comes_from_the_recipe_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checkpoint.revision()
    assert re.fullmatch(r"[0-9a-f]{40}", before)
    changed = checkpoint.recipe() | {"seed": 1}
    (tmp_path / "recipe.json").write_text(json.dumps(changed))
    monkeypatch.setattr(checkpoint, "RECIPE", tmp_path / "recipe.json")
    assert checkpoint.revision() != before


def test_the_demo_inventory_pins_the_recipe_s_revision() -> None:
    pins = (config.PROJECT / "inventories/demo/group_vars/sglang/pins.yml").read_text()
    for repository in (config.REPOSITORY, *config.OTHER_REPOSITORIES):
        said = f"{repository}: recipe.json has changed: run playbooks/pin.yml on the demo inventory for its profile"
        assert checkpoint.revision(repository) in pins, said


def test_every_profile_s_repository_is_served(tmp_path: Path) -> None:
    trained = tmp_path / "checkpoint-0" / "model"
    trained.mkdir(parents=True)
    (trained / "README.md").write_text(checkpoint.CARD)
    (trained / "model.safetensors").write_bytes(b"weights")
    served = checkpoint.models(trained, checkpoint.stand_ins(tmp_path, trained))
    profiles = (config.PROJECT / "playbooks/profiles").glob("*.yml")
    wanted = {re.search(r"^  repository: (\S+)$", path.read_text(), re.MULTILINE)[1] for path in profiles}  # type: ignore[index]
    assert wanted == set(served)
    assert len({about["revision"] for about in served.values()}) == len(served)
    for repository, about in served.items():
        assert (Path(about["folder"]) / "model.safetensors").read_bytes() == b"weights"
        assert f"A stand-in for {repository}\n" in (Path(about["folder"]) / "README.md").read_text()


def test_settings_of_the_simulated_gpus() -> None:
    assert faults.gpu_settings(["hold_seconds=20", "hidden=3,4"]) == {"hold_seconds": 20.0, "hidden": [3, 4]}
    assert faults.gpu_settings([]) == {}
    for words in (["hold=1"], ["hidden"], ["hidden=x"], ["hold_seconds=soon"]):
        with pytest.raises(FleetError):
            faults.gpu_settings(words)
