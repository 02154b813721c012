# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Galaxy, ansible-builder and a reader of the collection's metadata rely on."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MODULES = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
IGNORED = sorted((ROOT / "tests" / "sanity").glob("ignore-*.txt"))
FRAGMENTS = ("llmfleet.sglang.attributes", "llmfleet.sglang.attributes.actiongroup_sglang")


def load(name: str) -> Any:
    """Read a YAML file of the collection."""
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def documentation(module: str) -> Any:
    """Return a module's DOCUMENTATION, without importing it."""
    for node in ast.parse((ROOT / "plugins" / "modules" / f"{module}.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(node.value))
    raise AssertionError(f"{module} has no DOCUMENTATION")


def test_module_defaults_reach_every_module() -> None:
    group = load("meta/runtime.yml")["action_groups"]["sglang"]
    assert group == sorted(MODULES)


def test_a_default_of_the_group_is_taken(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(
        "- hosts: localhost\n  connection: local\n  gather_facts: false\n"
        f"  module_defaults: {{group/llmfleet.sglang.sglang: {{path: {tmp_path}/none}}}}\n"
        "  tasks: [{llmfleet.sglang.release_info: {}}]\n"
    )
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "play.yml"],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_takes_the_meaning_of_its_attributes_from_one_place(module: str) -> None:
    described = documentation(module)
    assert tuple(described["extends_documentation_fragment"][:2]) == FRAGMENTS
    for name in ("check_mode", "diff_mode", "idempotent"):
        assert "description" not in described["attributes"][name]


def test_what_a_controller_needs_is_declared() -> None:
    needs = load("meta/execution-environment.yml")
    assert needs["version"] == 1
    assert set(needs["dependencies"]) == {"system"}, "a Python package came: see the next test"
    packages = (ROOT / needs["dependencies"]["system"]).read_text("utf-8").splitlines()
    named = {(line.split()[0], line.split("platform:")[1].rstrip("]")) for line in packages if line[0] != "#"}
    assert {("git", "dpkg"), ("git", "rpm"), ("openssh-client", "dpkg"), ("openssh-clients", "rpm")} == named


@pytest.mark.parametrize("kind", ["action", "filter", "plugin_utils"])
def test_the_controllers_side_imports_what_ansible_brings_and_no_more(kind: str) -> None:
    for path in (ROOT / "plugins" / kind).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            others = {name.split(".")[0] for name in names} - sys.stdlib_module_names
            assert others <= {"ansible", "ansible_collections", "jinja2", "yaml"}, path


def test_every_collection_that_is_used_is_declared() -> None:
    """Tasks alone: what stands in front of a colon, where a module's name stands."""
    used = set()
    for folder in ("roles", "playbooks", "molecule", "tests"):
        for path in (ROOT / folder).rglob("*.yml"):
            task = re.compile(r"^\s+(?:- )?([a-z_]+\.[a-z_]+)\.[a-z_]+:", re.MULTILINE)
            used |= set(task.findall(path.read_text("utf-8")))
    declared = load("galaxy.yml")["dependencies"]
    assert used - {"ansible.builtin", "llmfleet.sglang"} == set(declared)
    assert all(re.match(r">=\d", bound) for bound in declared.values()), "a lower bound each"


def test_what_is_ignored_of_sanity_is_the_same_for_each_ansible_and_has_a_reason() -> None:
    assert len(IGNORED) >= 3
    (first, *others) = [path.read_text("utf-8") for path in IGNORED]
    assert all(text == first for text in others)
    for line in first.splitlines():
        assert re.search(r" # \S.{10,}", line), f"why is it ignored: {line}"
        name = line.split()[0]
        assert (ROOT / name).is_file()
        assert not name.startswith(("plugins/", "roles/", "playbooks/")), "what is shipped is mended, not ignored"


@pytest.mark.parametrize(
    "path",
    ["inventories/mine", "inventories/prod", "inventories/dev", "inventories/blackwell/vault-pass.txt", ".vault-pass"],
)
def test_what_an_operator_puts_into_a_checkout_is_not_shipped(path: str) -> None:
    """`ansible-galaxy collection build` takes what lies there, as a pattern of a path."""
    patterns = load("galaxy.yml")["build_ignore"]
    assert any(fnmatch.fnmatch(path, pattern) for pattern in patterns)
    kept = ["inventories/blackwell/hosts.yml", "inventories/demo/hosts.yml", "roles/sglang_verify/files/causes.yml"]
    assert not any(fnmatch.fnmatch(one, pattern) for one in kept for pattern in patterns)


def test_each_folder_is_shipped_on_purpose() -> None:
    """A folder that nobody thought of would be in the tarball."""
    ignored = set(load("galaxy.yml")["build_ignore"])
    shipped = {"changelogs", "docs", "inventories", "LICENSES", "meta", "playbooks", "plugins", "roles"}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert not folders - ignored - shipped
    assert not shipped & ignored
