# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the collection where ansible-test accepts it: in a folder ansible_collections/llmfleet/sglang."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from .pythons import ROOT

# What pip and git of the person who runs this are set up with; ansible-test hands on HOME and no other variable.
SETTINGS = (".config", ".pip", ".gitconfig", ".cache")


def copy(to: Path) -> Path:
    """Copy every file that Git has or would take below the folder `to`, and return the collection's folder.

    It becomes a repository of its own, since both ansible-test and our own tests ask Git for the files.
    """
    collection = to / "ansible_collections" / "llmfleet" / "sglang"
    shutil.rmtree(to, ignore_errors=True)
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (collection / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, collection / name, follow_symlinks=False)
    for command in (["git", "init", "--quiet"], ["git", "add", "--all"]):
        subprocess.run(command, cwd=collection, check=True, timeout=60)
    # The link that `make setup` makes: what a test starts finds this copy, and no other.
    link = collection / ".collections" / "ansible_collections" / "llmfleet" / "sglang"
    link.parent.mkdir(parents=True)
    link.symlink_to(collection)
    return collection


def home(folder: Path, bin_folder: Path) -> Path:
    """Return a home folder for ansible-test, in which pip can be had from the package index alone.

    :param bin_folder: of the environment whose ansible-test is to run; each wants its own version of pip.
    """
    cache = folder / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in SETTINGS:
        link = folder / name
        if (Path.home() / name).exists() and not link.is_symlink():
            link.symlink_to(Path.home() / name)
    (code,) = bin_folder.parent.glob("lib/python*/site-packages/ansible_test/_internal/python_requirements.py")
    version = re.findall(r"^\s+pip='([0-9.]+)'", code.read_text("utf-8"), re.MULTILINE)[0]
    shutil.copy(Path(__file__).with_name("get_pip.py"), cache / f"get_pip_{version.replace('.', '_')}.py")
    if not (cache / f"pip-{version}-py3-none-any.whl").exists():
        pip = [
            str(bin_folder / "pip"),
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--dest",
            str(cache),
        ]
        subprocess.run([*pip, f"pip=={version}"], check=True, timeout=300)
    return folder


def path_of(folder: Path, bin_folder: Path, pythons: list[Path]) -> str:
    """Return a PATH on which these interpreters are found, beside the environment and the system's programs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for python in dict.fromkeys(pythons):
        (folder / python.name).symlink_to(python)
    return f"{bin_folder}:{folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
