# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's tests do on the controller: run playbooks as an operator would, and read what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
# The tests of faults may be given another node of the fleet, in an inventory of its own.
INVENTORY = Path(os.environ.get("LLMFLEET_FAULT_INVENTORY") or PROJECT / "inventories" / "demo").resolve()
DEPLOY = PROJECT / "playbooks" / "deploy_qwen.yml"
LINK = ".collections/ansible_collections/llmfleet/sglang"

_RECAP = re.compile(r"^(\S+)\s+: (ok=\d+ .*)$", re.MULTILINE)
# Ansible shows each failure once as "[ERROR]: ...", then where it comes from, then the whole result.
_ERROR = re.compile(r"^\[ERROR\]: (.*?)(?=^Origin: |^fatal: |^\n)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Run:
    """One command's end: exit status and everything that it printed."""

    command: str
    rc: int
    output: str

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """The play recap: counts by host."""
        rows = _RECAP.findall(self.output.rpartition("PLAY RECAP")[2])
        return {host: {key: int(n) for key, n in (word.split("=") for word in words.split())} for host, words in rows}

    @property
    def changed(self) -> dict[str, int]:
        """How many tasks changed something, by host."""
        return {host: counts["changed"] for host, counts in self.recap.items()}

    @property
    def errors(self) -> list[str]:
        """The messages of the failures, in order."""
        return [message.strip() for message in _ERROR.findall(self.output)]

    def must_pass(self) -> Run:
        """Return the run, or fail the test with all that it printed."""
        assert self.rc == 0, f"{self}\n{self.output}"
        return self

    def __str__(self) -> str:
        return f"{self.command}\n-> rc {self.rc}"


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what molecule sets for Ansible, and with `changes`."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MOLECULE_", "PYTEST_"))
    }
    own = {"ANSIBLE_NOCOLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{BIN}:{os.environ['PATH']}"}
    return {**kept, **own, **(changes or {})}


def run(
    words: list[str | Path], cwd: Path = PROJECT, env: Mapping[str, str] | None = None, timeout: float = 240
) -> Run:
    """Run a command of the virtual environment (or of the system) to its end, at most `timeout` seconds."""
    argv = [str(word) for word in words]
    done = subprocess.run(
        argv,
        check=False,
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return Run(f"{' '.join(argv)}  (in {cwd})", done.returncode, done.stdout)


def playbook(
    book: Path | str,
    *options: str,
    variables: Mapping[str, Any] | None = None,
    cwd: Path = PROJECT,
    env: Mapping[str, str] | None = None,
    timeout: float = 240,
) -> Run:
    """Run a playbook on the demo inventory from the checkout at `cwd`, with `variables` as extra variables."""
    extra = ["--extra-vars", json.dumps(dict(variables))] if variables else []
    return run(["ansible-playbook", book, "-i", INVENTORY, *options, *extra], cwd, env, timeout)


def module(host: str, module_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run one module of the checkout on a node as root; its result, whether it `failed`, and all that was `said`."""
    words: list[str | Path] = ["ansible", host, "-i", INVENTORY, "--become", "-m", f"llmfleet.sglang.{module_name}"]
    done = run([*words, "-a", json.dumps(dict(arguments))], env={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    start, end = done.output.find(" => {"), done.output.rfind("}")
    assert start >= 0, f"{done}\n{done.output}"
    result = json.loads(done.output[start + len(" => ") : end + 1])
    assert isinstance(result, dict)
    return {**result, "failed": done.rc != 0, "said": done.output}


def copy_of_checkout(target: Path) -> Path:
    """A second checkout at `target`: what git has or would take of this one, set up as `make setup` does it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source = PROJECT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    run(["make", "--silent", LINK], cwd=target).must_pass()
    assert (target / LINK).resolve() == target.resolve()
    return target


def installed(target: Path, checkout: Path = PROJECT) -> Path:
    """Build the collection's tarball from `checkout` and install it below `target`, a collections path."""
    built = target.parent / f"{target.name}-tarball"
    run(["ansible-galaxy", "collection", "build", "--output-path", built], cwd=checkout).must_pass()
    [tarball] = built.glob("llmfleet-sglang-*.tar.gz")
    words: list[str | Path] = ["ansible-galaxy", "collection", "install", "--offline", "--no-deps", tarball]
    run([*words, "--collections-path", target], cwd=target.parent).must_pass()
    place = target / "ansible_collections" / "llmfleet" / "sglang"
    assert (place / "MANIFEST.json").is_file()
    return place
