# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A git repository of SGLang's real Python source, made from its wheel: the same commit every time.

Upstream publishes no source archive of this version on the package index; the wheel holds the whole tree
that upstream keeps under python/sglang. Nothing of it is committed to this project.
"""

from __future__ import annotations

import email
import json
import os
import re
import zipfile
from email.message import Message
from pathlib import Path

from .cache import artefact
from .config import ENGINE_VERSION
from .depot import download
from .shell import run
from .wheels import Pin, metadata_of

WHEEL = Pin("sglang", ENGINE_VERSION, "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937")
DATE = "2026-01-01T00:00:00+0000"
TAG = f"v{ENGINE_VERSION}"
ORIGIN = "as its published wheel holds it (upstream: github.com/sgl-project/sglang)"
README = f"""SGLang {ENGINE_VERSION}, Python source, {ORIGIN}.
Made by the llmfleet.sglang test fleet: python/pyproject.toml is written anew from the wheel's metadata, and the
commit is not one of upstream's.
"""


def repository(cache: Path) -> Path:
    """Folder with the bare repository sglang.git and a file `commit`."""
    inputs = {"wheel": WHEEL.sha256, "date": DATE, "readme": README, "format": 2}
    return artefact(cache, "git", inputs, lambda target: _build(cache, target))


def commit_of(repository_folder: Path) -> str:
    """The one commit of the repository (40 hex digits)."""
    return (repository_folder / "commit").read_text().strip()


def _build(cache: Path, target: Path) -> None:
    wheel = download(cache, [WHEEL])[WHEEL]
    tree, bare = target / "tree", target / "sglang.git"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("sglang/")]
        archive.extractall(tree / "python", names)
        license_name = next(name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        (tree / "LICENSE").write_bytes(archive.read(license_name))
        scripts = archive.read(f"sglang-{ENGINE_VERSION}.dist-info/entry_points.txt").decode()
    (tree / "python/pyproject.toml").write_text(pyproject(metadata_of(wheel).decode(), scripts))
    (tree / "README.md").write_text(README)
    (tree / ".gitignore").write_text("__pycache__/\n*.egg-info/\n")
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    git: list[str | Path] = ["git", "-c", "core.autocrlf=false", "-c", "gc.auto=0", "-C", tree]
    environment = _isolated(target)
    run(["git", "init", "--quiet", "--template=", "--initial-branch=main", tree], env=environment)
    run([*git, "add", "--all"], env=environment)
    run([*git, "commit", "--quiet", "--no-gpg-sign", f"--message=SGLang {ENGINE_VERSION}"], env=environment)
    run([*git, "tag", "--annotate", "--no-sign", f"--message=SGLang {ENGINE_VERSION}", TAG], env=environment)
    run(["git", "clone", "--quiet", "--bare", "--template=", tree, bare], env=environment)
    run(["git", "-C", bare, "remote", "remove", "origin"], env=environment)
    run(["git", "-C", bare, "repack", "-a", "-d", "-q"], env=environment)
    run(["git", "-C", bare, "update-server-info"], env=environment)
    (target / "commit").write_text(run(["git", "-C", bare, "rev-parse", "main^{commit}"], env=environment))
    run(["rm", "-rf", tree])


def _isolated(home: Path) -> dict[str, str]:
    """An environment in which git sees no configuration but its own defaults, and fixed people and dates."""
    people = {f"GIT_{role}_{field}": value for role in ("AUTHOR", "COMMITTER") for field, value in _PERSON.items()}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, **people, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


_PERSON = {"NAME": "llmfleet test fleet", "EMAIL": "fleet@llmfleet.invalid", "DATE": DATE}


def pyproject(metadata: str, entry_points: str) -> str:
    """A pyproject.toml that keeps the wheel's requirements, extras and scripts.

    metadata: text of the wheel's METADATA. entry_points: text of its entry_points.txt.
    """
    message = email.message_from_string(metadata)
    base, extras = split_requirements(message)
    lines = [
        "[build-system]",
        'requires = ["setuptools>=61.0"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f"name = {json.dumps(message['Name'])}",
        f"version = {json.dumps(message['Version'])}",
        f"description = {json.dumps(message['Summary'])}",
        f"requires-python = {json.dumps(message['Requires-Python'])}",
        f"dependencies = {_array(base)}",
        "",
        "[project.optional-dependencies]",
        *(f"{json.dumps(extra)} = {_array(names)}" for extra, names in extras.items()),
        "",
        "[project.scripts]",
        *(f"{json.dumps(name)} = {json.dumps(target)}" for name, target in console_scripts(entry_points).items()),
        "",
        "[tool.setuptools.packages.find]",
        'where = ["."]',
        'include = ["sglang*"]',
        "",
        "[tool.setuptools.package-data]",
        '"*" = ["*"]',
        "",
    ]
    return "\n".join(lines)


def split_requirements(metadata: Message) -> tuple[list[str], dict[str, list[str]]]:
    """A wheel's requirements without extras, and those of each extra."""
    base: list[str] = []
    extras: dict[str, list[str]] = {str(name): [] for name in metadata.get_all("Provides-Extra", [])}
    marker = re.compile(r"""\s*(?:;|\band)\s*extra == ["']([^"']+)["']\s*$""")
    for line in metadata.get_all("Requires-Dist", []):
        match = marker.search(str(line))
        if match:
            extras.setdefault(match[1], []).append(marker.sub("", str(line)))
        else:
            base.append(str(line))
    return base, extras


def console_scripts(entry_points: str) -> dict[str, str]:
    """Console scripts by name."""
    scripts: dict[str, str] = {}
    section = ""
    for line in entry_points.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == "console_scripts" and "=" in line:
            name, _equals, target = line.partition("=")
            scripts[name.strip()] = target.strip()
    return scripts


def _array(values: list[str]) -> str:
    return "[\n" + "".join(f"    {json.dumps(value)},\n" for value in values) + "]"
