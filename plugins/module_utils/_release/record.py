# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a finished release is: where its modules come from, and the record that says so. Private to the collection."""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put

# Run in the release's own interpreter: import what the service imports, and each patched module, which the engine may
# import only once a model asks for it; say from which file each one came. launch_server alone imports little.
_PROBE = """
import importlib, importlib.metadata, importlib.util, json, platform, sys
import torch, sgl_kernel, sglang
print("\\nLLMFLEET-FROM " + str(sglang.__file__), flush=True)
import sglang.launch_server
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
for name in ("flashinfer",  # refuses its own other packages when they are of another version
             "sglang.srt.entrypoints.http_server"):
    if there(name):
        importlib.import_module(name)
origins = {name: importlib.import_module(name).__file__ for name in json.loads(sys.argv[1])}
packages = sorted(f"{d.metadata['Name']}=={d.version}" for d in importlib.metadata.distributions())
print("\\nLLMFLEET-FOUND " + json.dumps({"sglang": sglang.__file__, "origins": origins, "torch": torch.__version__,
    "cuda": torch.version.cuda, "python": platform.python_version(), "packages": packages}))
"""

_OF_AN_EDIT = ("id", "file", "line")
_MARK, _FROM = "LLMFLEET-FOUND ", "LLMFLEET-FROM "


class ImportFailed(RuntimeError):
    """The release does not import, or imports something other than its own tree."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def module_name(root: Path, path: Path) -> str:
    """Return the dotted name under which a file below `root` is imported."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def probe(folder: Path, patched: Mapping[Path, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Import the engine in the release's venv. Raises ImportFailed when it is not this release that is imported.

    patched: files below FOLDER/src/python whose modules must be the ones that are imported, with the SHA-256 that each
    had after it was patched. environment: variables for the import, over the caller's own.
    What has no bytecode yet gets it, for the service cannot write it. Raises OSError when there is no interpreter.
    """
    root = folder / "src" / "python"
    names = {module_name(root, path): path for path in patched}
    found = _ask(folder, sorted(names), environment)
    _check_origin(found["sglang"], root)
    problem = disagreement(found["packages"], found["cuda"])
    if problem:
        raise ImportFailed(problem)
    for name, path in names.items():
        origin = found["origins"][name]
        if origin is None or Path(origin).resolve() != path.resolve():
            raise ImportFailed(f"the patched module {name} is imported from {origin}, not from {path}")
        if file_digest(path) != patched[path]:
            raise ImportFailed(f"{path} is not as it was patched: somebody else has written it meanwhile")
    return found


def _check_origin(origin: str | None, root: Path) -> None:
    if not origin or not Path(origin).resolve().is_relative_to(root.resolve()):
        raise ImportFailed(f"sglang is imported from {origin}, not from {root}")


def disagreement(packages: Sequence[str], cuda: str | None) -> str:
    """Say which of the installed packages do not fit each other; "" when all do.

    packages: lines such as `torch==2.14.1`; cuda: what torch was built for, such as "13.0", None for the CPU.
    """
    versions = dict(line.split("==", 1) for line in packages)
    flashinfer = {name: versions[name] for name in sorted(versions) if re.match(r"flashinfer[-_]", name)}
    if len({version.partition("+")[0] for version in flashinfer.values()}) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in flashinfer.items())
        return f"FlashInfer's packages are of different versions: {listed}"
    lanes = sorted({match[1] for name in versions if (match := re.fullmatch(r"nvidia[-_]cudnn[-_]cu(\d+)", name))})
    if cuda and lanes and lanes != [cuda.partition(".")[0]]:
        return f"torch was built for CUDA {cuda}, and its libraries are for CUDA {' and '.join(lanes)}"
    return ""


def _ask(folder: Path, names: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Run the probe in the release's interpreter and return its answer."""
    # The service will not have the caller's PYTHONPATH or PYTHONHOME.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [str(folder / "venv" / "bin" / "python"), "-c", _PROBE, json.dumps(names)],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            cwd=str(folder),
            stdin=subprocess.DEVNULL,
            env={**inherited, **environment},
        )
    except subprocess.TimeoutExpired as error:
        raise ImportFailed(f"importing the release took longer than {error.timeout:.0f} s") from error
    answers = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]  # the engine prints too
    if done.returncode or not answers:
        # Another sglang in front of the tree breaks in ways that say less.
        for line in done.stdout.splitlines():
            if line.startswith(_FROM):
                _check_origin(line[len(_FROM) :], folder / "src" / "python")
        raise ImportFailed(f"the release does not import: {(done.stderr or done.stdout).strip()[-2000:]}")
    found: dict[str, Any] = json.loads(answers[-1][len(_MARK) :])
    return found


def patches(edits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Say of each edit what a release has of it: the state that was found, and the one after the edit."""
    listed = []
    for edit in edits:
        state = "present" if edit.get("changed") else edit.get("state")
        listed.append({"found": edit.get("state"), "state": state, **{key: edit.get(key) for key in _OF_AN_EDIT}})
    return listed


def settle(places: Sequence[Path], timeout: float = 1800) -> None:
    """Have the file systems of `places` written to their disks. Raises OSError.

    A record that a power cut left, and the files that it speaks of not, would be a lie.
    """
    for place in places:
        try:
            command = ["sync", "--file-system", str(place)]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{place} was not written to its disk within {timeout:.0f} s") from error
        except subprocess.CalledProcessError as error:
            raise OSError(f"{place} cannot be written to its disk: {error.stderr.strip()}") from error


def write_record(folder: Path, record: Mapping[str, Any], places: Sequence[Path] = ()) -> None:
    """Write release.json last and atomically: with it, and not before, the folder is a release.

    places: further folders that the release stands on; all is on the disks before the record appears. Raises OSError.
    """
    text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    settle([folder, *places])
    put(folder / "release.json", text.encode())
    settle([folder])
