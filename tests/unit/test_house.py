# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The house is in order: what every module, role and file of the repository has to have, and must not have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# REUSE-IgnoreStart
LICENSE = "SPDX-License-Identifier: GPL-3.0-or-later"
# REUSE-IgnoreEnd


def _files() -> list[Path]:
    """Return every file that Git has or would take, and no link."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    paths = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


FILES = _files()
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())


def name(path: Path) -> str:
    """Name a file the way one would open it."""
    return str(path.relative_to(ROOT))


def load(path: Path) -> Any:
    """Read a YAML file; None where there is none."""
    return yaml.safe_load(path.read_text("utf-8")) if path.exists() else None


def constants(module: Path) -> dict[str, str]:
    """Return the texts that a module assigns at its top level, without importing it."""
    tree = ast.parse(module.read_text("utf-8"))
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def test_there_is_something_to_look_at() -> None:
    assert len(FILES) > 100
    assert len(MODULES) > 10
    assert len(ROLES) > 5


# --- modules and other Python ---


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_says_what_it_supports(module: Path) -> None:
    documentation = yaml.safe_load(constants(module)["DOCUMENTATION"])
    assert documentation["module"] == module.stem
    assert documentation["version_added"] in ("0.1.0", load(ROOT / "galaxy.yml")["version"])
    assert documentation["author"] in ("llmfleet engineers (@llmfleet)", ["llmfleet engineers (@llmfleet)"])
    attributes = documentation["attributes"]
    for attribute in ("check_mode", "diff_mode", "idempotent"):
        assert attributes[attribute]["support"] in ("full", "partial", "none", "N/A"), attribute
        if attributes[attribute]["support"] == "partial":
            assert attributes[attribute].get("details"), f"{attribute}: what is not supported?"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_has_examples_that_use_it_and_says_what_it_returns(module: Path) -> None:
    texts = constants(module)
    tasks = yaml.safe_load(texts["EXAMPLES"])
    assert [task for task in tasks if f"llmfleet.sglang.{module.stem}" in task]
    assert isinstance(yaml.safe_load(texts["RETURN"]), dict)


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_modules_options_are_the_documented_ones(module: Path) -> None:
    """The names in argument_spec, written there or in a constant of the module, and those in DOCUMENTATION."""
    documentation = yaml.safe_load(constants(module)["DOCUMENTATION"])
    documented = set(documentation.get("options") or {})
    for fragment in documentation["extends_documentation_fragment"]:
        file = fragment.removeprefix("llmfleet.sglang.").partition(".")[0]
        shared = (ROOT / "plugins" / "doc_fragments" / f"{file}.py").read_text("utf-8")
        documented |= set(yaml.safe_load(shared.split('r"""')[1].split('"""')[0])["options"])
    assert _argument_names(module) == documented


def _argument_names(module: Path) -> set[Any]:
    """Return the names of argument_spec: of the module, or of its action where that does all of it."""
    places = [module, ROOT / "plugins" / "action" / module.name]
    places += sorted((ROOT / "plugins" / "module_utils").glob("*/arguments.py"))
    trees = [ast.parse(path.read_text("utf-8")) for path in places if path.exists()]
    named = {
        target.id: node.value
        for tree in reversed(trees)
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    specs = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "argument_spec"
    ]
    spec = named[specs[0].id] if isinstance(specs[0], ast.Name) else specs[0]
    assert isinstance(spec, ast.Dict)
    return {key.value for key in spec.keys if isinstance(key, ast.Constant)}


PYTHON = [path for path in FILES if path.suffix == ".py"]


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_a_python_file_is_short_enough_to_be_read(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


SHIPPED = [path for path in PYTHON if path.is_relative_to(ROOT / "plugins") and path.read_bytes()]


@pytest.mark.parametrize("path", SHIPPED, ids=name)
def test_what_is_shipped_has_its_licence_and_an_explanation(path: Path) -> None:
    text = path.read_text("utf-8")
    assert LICENSE in "\n".join(text.splitlines()[:6])
    if path in MODULES:
        return  # DOCUMENTATION is a module's explanation
    explanation = ast.get_docstring(ast.parse(text))
    assert explanation
    if "module_utils" in path.parts:
        assert "private" in explanation.lower(), "say that it is private to the collection"


@pytest.mark.parametrize("path", SHIPPED, ids=name)
def test_logic_does_without_ansible(path: Path) -> None:
    """Private logic is pure Python on the standard library, so that it runs on a target and is tested alone."""
    if "module_utils" not in path.parts:
        return
    tree = ast.parse(path.read_text("utf-8"))
    assert "ansible" not in _imports(list(ast.walk(tree)))
    assert _imports(tree.body) <= sys.stdlib_module_names | {"ansible_collections"}


def _imports(nodes: list[Any]) -> set[str]:
    """Return the packages that statements import, relative imports aside."""
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {module.split(".")[0] for module in modules}


# --- roles and playbooks ---


@pytest.mark.parametrize("role", ROLES, ids=name)
def test_a_role_has_what_a_reader_looks_for(role: Path) -> None:
    for file in ("README.md", "meta/main.yml", "meta/argument_specs.yml", "tasks/main.yml"):
        assert (role / file).is_file(), file
    assert role.name in (role / "README.md").read_text("utf-8").splitlines()[0]


def options(role: Path) -> dict[str, dict[str, Any]]:
    """Return the options of all entry points of a role, by name."""
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"]
    return {option: spec for entry in specs.values() for option, spec in (entry.get("options") or {}).items()}


@pytest.mark.parametrize("role", ROLES, ids=name)
def test_a_roles_defaults_and_its_documented_options_are_the_same(role: Path) -> None:
    defaults = set(load(role / "defaults" / "main.yml") or {})
    documented = options(role)
    assert not defaults - set(documented), "in defaults/main.yml, and not in meta/argument_specs.yml"
    for option, spec in documented.items():
        if spec.get("required"):
            assert option not in defaults, f"{option} is required and has a default"
        elif "default" in spec:
            assert option in defaults, f"{option} has a default in meta/argument_specs.yml alone"


@pytest.mark.parametrize("role", ROLES, ids=name)
def test_a_roles_variables_carry_its_name(role: Path) -> None:
    names = [*options(role), *(load(role / "defaults" / "main.yml") or {}), *(load(role / "vars" / "main.yml") or {})]
    assert not [one for one in names if not one.startswith(f"{role.name}_")]


@pytest.mark.parametrize("role", ROLES, ids=name)
def test_each_entry_point_of_a_role_is_a_file_and_documented(role: Path) -> None:
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"]
    assert not [entry for entry in specs if not (role / "tasks" / f"{entry}.yml").is_file()]
    for path in FILES:
        if path.suffix != ".yml" or path.is_relative_to(role):
            continue
        text = path.read_text("utf-8")
        for entry in re.findall(rf"name: llmfleet\.sglang\.{role.name}\n\s+tasks_from: (\w+)", text):
            assert str(entry) in specs, f"{name(path)} includes {role.name}'s {entry!r}"


def _known() -> set[str]:
    """Return every name that the collection gives to something, after `llmfleet.sglang.`."""
    plugins = [path for path in (ROOT / "plugins").glob("*/*") if path.suffix in (".py", ".yml")]
    filters = {key for path in (ROOT / "plugins" / "filter").glob("*.yml") for key in [path.stem]}
    playbooks = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
    groups = set(load(ROOT / "meta" / "runtime.yml")["action_groups"])
    roles = {role.name for role in ROLES}
    return {path.stem for path in plugins} | filters | playbooks | roles | groups | {"plugins"}


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix in (".yml", ".j2", ".md") or path in MODULES], ids=name
)
def test_whatever_is_named_in_the_collection_exists(path: Path) -> None:
    named = re.findall(r"\bllmfleet\.sglang\.([a-z][a-z0-9_]*)", path.read_text("utf-8"))
    assert not set(named) - _known()


@pytest.mark.parametrize("path", sorted((ROOT / "plugins" / "filter").glob("*.py")), ids=name)
def test_every_filter_is_documented(path: Path) -> None:
    """Read from the source: the keys of what filters() returns."""
    (returned,) = (
        node.value
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef) and function.name == "filters"
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict)
    )
    for key in returned.keys:
        assert isinstance(key, ast.Constant)
        assert isinstance(key.value, str)
        documentation = load(path.with_name(f"{key.value}.yml"))
        assert documentation["DOCUMENTATION"]["name"] == key.value


# --- every file ---

# In pieces, so that this file is clean itself.
REGISTRIES = [
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("security", "ubuntu", "com"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("static", "crates", "io"),
        ("index", "crates", "io"),
        ("galaxy", "ansible", "com"),
        ("conda", "anaconda", "org"),
    ]
]
THIS_MACHINES = [
    "/".join(("", *parts)) for parts in [("work", ""), ("root", ".pyenv"), ("opt", "pypi"), ("tmp", "lead")]
]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_file_names_a_registrys_host_or_a_path_of_the_machine_it_was_written_on(path: Path) -> None:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return  # an image or another binary file
    for number, line in enumerate(text.splitlines(), 1):
        found = [host for host in REGISTRIES if host in line]
        found += [place for place in THIS_MACHINES if re.search(rf"(?<![\w.~$}}-]){re.escape(place)}", line)]
        assert not found, f"{name(path)}:{number} names {found}"


def test_the_version_is_the_changelogs_newest() -> None:
    version = load(ROOT / "galaxy.yml")["version"]
    releases = load(ROOT / "changelogs" / "changelog.yaml")["releases"]
    newest = max(releases, key=lambda one: tuple(int(number) for number in one.split(".")))
    assert newest == version
    # antsibull-changelog escapes the points.
    headings = re.findall(r"^## v(\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8").replace("\\", ""), re.MULTILINE)
    assert headings[0] == version


def test_the_collection_says_which_ansible_it_needs() -> None:
    assert load(ROOT / "meta" / "runtime.yml")["requires_ansible"] == ">=2.19.0"
