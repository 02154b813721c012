# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds that die, on a real node: killed in the middle, a full disk; and the next run goes on.

A demo fleet has to be up (make fleet). The builds go to a folder of their own on one node (LLMFLEET_FAULT_NODE, else
node2), and what serves there is not touched.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleet import config, source
from tests.fleet.control import BIN, INVENTORY, PROJECT, Run, environment, run

NODE = os.environ.get("LLMFLEET_FAULT_NODE", "node2")
PROFILE = "qwen3_5_397b_nvfp4"
ROOT = "/srv/llmfleet-fault"
PLAY = PROJECT / "tests" / "faults" / "build.yml"
CHOICES = INVENTORY / "group_vars" / "sglang"
REPOSITORY = yaml.safe_load((CHOICES / "main.yml").read_text())["sglang_repository"]
COMMIT = yaml.safe_load((CHOICES / "pins.yml").read_text())["sglang_commit"]
# Signals the first process whose command line matches; waits for one at most five minutes.
SIGNAL = """python3 - '{pattern}' <<'END'
import os, re, signal, sys, time
for _ in range(6000):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{{pid}}/cmdline", "rb").read().replace(b"\\0", b" ").decode()
            status = open(f"/proc/{{pid}}/status").read()
        except OSError:
            continue
        if re.match(sys.argv[1], line):
            for one in {whom}:
                os.kill(one, signal.{what})
            print("{what}")
            sys.exit()
    time.sleep(0.05)
sys.exit("no such process")
END
"""


PARENT = "int(re.search(r'PPid:[^0-9]+([0-9]+)', status)[1])"


def killing(pattern: str) -> str:
    """The script that kills a process and whoever started it."""
    return SIGNAL.format(pattern=pattern, whom=f"({PARENT}, int(pid))", what="SIGKILL")


def node(script: str, timeout: float = 120) -> str:
    """What a shell script prints as root on the node; fails the test when it fails."""
    words = [str(BIN / "python"), "-m", "fleet", "ssh", NODE, "sudo", "bash", "-s"]
    done = subprocess.run(
        words, cwd=PROJECT, input=script, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{script!r} -> rc {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def words(*options: str | Path, **variables: object) -> list[str | Path]:
    """The command that builds, with these options and variables."""
    given = {"sglang_profile": PROFILE, "sglang_root": ROOT, "sglang_root_free_bytes": 1, **variables}
    return [BIN / "ansible-playbook", PLAY, "-i", INVENTORY, f"--limit={NODE}", *options, "-e", json.dumps(given)]


def build(*options: str | Path, **variables: object) -> Run:
    """Build to the end."""
    return run(words(*options, **variables), timeout=600)


def killed(pattern: str) -> str:
    """Build, and kill what matches on the node together with its parent; return what the playbook printed."""
    command = [str(word) for word in words()]
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as playbook:
        try:
            assert node(killing(pattern), timeout=400) == "SIGKILL"
            output, _none = playbook.communicate(timeout=120)
        finally:
            playbook.kill()
    assert playbook.returncode != 0, output
    return output


def finished() -> list[str]:
    """The finished releases on the node."""
    return node(f"ls {ROOT}/releases/*/release.json 2>/dev/null || true").split()


def folders() -> list[str]:
    """Every release's folder on the node."""
    return node(f"ls -d {ROOT}/releases/*/ 2>/dev/null || true").split()


def serving() -> str:
    """The main process of whatever serves."""
    return node("systemctl show --property=MainPID --value sglang-kimi.service sglang-qwen.service")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """An empty folder for the builds, before and after."""
    wipe = f"mountpoint -q {ROOT} && umount {ROOT}; rm -rf {ROOT}; mkdir -p {ROOT}"
    node(wipe, timeout=600)
    before = serving()
    yield
    assert serving() == before, "what serves was touched"
    node(f"{wipe}; rmdir {ROOT}", timeout=600)


def converges(**variables: object) -> None:
    """The next run builds one finished release and leaves nothing else; the one after changes nothing."""
    build(**variables).must_pass()
    assert len(finished()) == len(folders()) == 1
    assert build(**variables).must_pass().changed == {NODE: 0}


@pytest.mark.parametrize("pattern", [f"git --git-dir {ROOT}.*worktree add", f"{ROOT}/.*uv pip sync"])
def test_a_build_that_is_killed_is_cleaned_up_by_the_next(pattern: str) -> None:
    killed(pattern)
    assert finished() == []
    assert len(folders()) == 1
    converges()


LEFT = f"pgrep -f '^{ROOT}/tools/.*uv pip sync' || true"


def test_what_a_dead_controller_left_running_is_ended_by_the_next_run() -> None:
    with subprocess.Popen(
        [str(word) for word in words()], cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL
    ) as playbook:
        try:
            freeze = SIGNAL.format(pattern=f"{ROOT}/.*uv pip sync", whom="(int(pid),)", what="SIGSTOP")
            assert node(freeze, timeout=400) == "SIGSTOP"
        finally:
            playbook.kill()
    assert node(LEFT), "the build was to be left running"
    told = build().must_pass()
    assert "a build before had been left running, and was ended: pid" in " ".join(told.output.split())
    assert node(LEFT) == ""
    assert build().must_pass().changed == {NODE: 0}


def test_a_mirror_that_was_lost_is_fetched_again_and_the_release_stays() -> None:
    build().must_pass()
    releases = finished()
    node(f"mv {ROOT}/mirror/sglang.git {ROOT}/lost.git")
    build().must_pass()
    told = build().must_pass()
    assert told.changed == {NODE: 0}
    assert "is not as it was built" not in told.output
    assert finished() == releases


def test_a_full_disk_is_told_and_the_next_run_goes_on() -> None:
    node(f"mount -t tmpfs -o size=260m,mode=0755 none {ROOT}")
    told = build()
    assert told.rc != 0
    assert "No space left on device" in told.output
    assert f"It is about the file system {ROOT} with 0.0 GB free" in " ".join(told.output.split())
    assert finished() == []
    node(f"mount -o remount,size=2g {ROOT}")
    converges()


def test_a_disk_that_is_too_small_is_refused_with_figures() -> None:
    node(f"mount -t tmpfs -o size=260m,mode=0755 none {ROOT}")
    told = build(sglang_root_free_bytes=2_000_000_000)
    assert told.rc != 0
    [error] = told.errors
    assert "the release needs 2.0 GB" in error
    assert "nothing was stopped" in error
    assert folders() == []


def test_a_release_comes_from_the_controllers_bundle(tmp_path: Path) -> None:
    bundle = tmp_path / "sglang.bundle"
    repository = source.repository(config.cache_folder()) / "sglang.git"
    subprocess.run(["git", "-C", str(repository), "bundle", "create", "--quiet", str(bundle), "--all"], check=True)
    converges(sglang_source_bundle=str(bundle), sglang_repository="https://nowhere.invalid/sglang.git")
    assert "controller.bundle" not in node(f"ls {ROOT}/mirror")


TWIN = """---
# A second name of the node, for a host with folders of its own that has the source.
sglang:
  hosts:
    {node}:
      sglang_root: {root}/own
    twin:
      ansible_host: "{{{{ hostvars['{node}'].ansible_host }}}}"
      sglang_root: {root}/twin
"""


def test_a_release_comes_from_another_host_of_the_fleet(tmp_path: Path) -> None:
    inventory = tmp_path / "twin.yml"
    inventory.write_text(TWIN.format(node=NODE, root=ROOT))
    given = {"sglang_profile": PROFILE, "sglang_root_free_bytes": 1}
    nowhere = {"sglang_source_host": "twin", "sglang_repository": "https://nowhere.invalid/sglang.git"}

    def on(host: str, **variables: object) -> Run:
        options: list[str | Path] = [
            "-i",
            INVENTORY,
            "-i",
            inventory,
            f"--limit={host}",
            "-e",
            json.dumps({**given, **variables}),
        ]
        return run([BIN / "ansible-playbook", PLAY, *options], timeout=600)

    told = on(NODE, **nowhere)
    assert told.rc != 0
    assert f"This host has no commit {COMMIT} in {ROOT}/twin/mirror/sglang.git" in told.errors[0]
    node(f"mkdir -p {ROOT}/twin/mirror && chown -R sglang-build {ROOT}/twin")
    node(f"sudo -u sglang-build git clone --quiet --mirror {REPOSITORY} {ROOT}/twin/mirror/sglang.git")
    on(NODE, **nowhere).must_pass()
    assert on(NODE, **nowhere).must_pass().changed == {NODE: 0}
    assert node(f"ls {ROOT}/own/mirror {ROOT}/twin/mirror | grep -c bundle || true") == "0"
    assert not list(Path(tempfile.gettempdir()).glob("llmfleet-source-*"))


def test_what_was_changed_by_hand_is_said_by_the_next_run() -> None:
    build().must_pass()
    [record] = finished()
    release = Path(record).parent
    node(f"echo '# by hand' >> {release}/src/python/sglang/launch_server.py")
    node(f"mv {release}/venv/lib/python3*/site-packages/einops-*.dist-info {release}/")
    node(f"cd {release}/venv/lib/python3*/site-packages/einops; cp -L __init__.py x; mv x __init__.py; touch ../x.pth")
    told = build().must_pass()
    assert told.changed == {NODE: 0}
    said = " ".join(told.output.split())
    assert "tree src/python/sglang/launch_server.py: expected as the commit has it, found edited" in said
    assert re.search(r"package einops: expected [0-9.]+, found not there", said)
    assert "site-packages/einops/__init__.py: expected as installed, found edited" in said
    assert "site-packages/x.pth: expected as installed, found not of the build" in said


def test_old_releases_go_and_the_newest_stay() -> None:
    for number in range(3):
        build(sglang_build_environment={"LLMFLEET_TEST": str(number)}, sglang_keep_releases=2).must_pass()
    assert len(finished()) == len(folders()) == 2
