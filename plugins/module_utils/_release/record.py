# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a finished release is: where its modules come from, and the record that says so. Private to the collection."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Run in the release's own interpreter: import what the service imports, and say where each patched module really lies.
_PROBE = """
import importlib.metadata, importlib.util, json, platform, sys
import torch, sgl_kernel, sglang, sglang.launch_server
if importlib.util.find_spec("flashinfer"):
    import flashinfer  # refuses its own other packages when they are of another version
names = json.loads(sys.argv[1])
origins = {name: getattr(importlib.util.find_spec(name), "origin", None) for name in names}
packages = sorted(f"{d.name}=={d.version}" for d in importlib.metadata.distributions())
print("\\nLLMFLEET-FOUND " + json.dumps({"sglang": sglang.__file__, "origins": origins, "torch": torch.__version__,
    "cuda": torch.version.cuda, "python": platform.python_version(), "packages": packages}))
"""


_MARK = "LLMFLEET-FOUND "


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


def probe(folder: Path, patched: list[Path], environment: Mapping[str, str]) -> dict[str, Any]:
    """Import the engine in the release's venv. Raises ImportFailed when it is not this release that is imported.

    patched: files below FOLDER/src/python whose modules must be the ones that are imported.
    environment: variables for the import, over the caller's own. Raises OSError when there is no interpreter to ask.
    """
    root = folder / "src" / "python"
    names = {module_name(root, path): path for path in patched}
    found = _ask(folder, sorted(names), environment)
    if not found["sglang"] or not Path(found["sglang"]).resolve().is_relative_to(root.resolve()):
        raise ImportFailed(f"sglang is imported from {found['sglang']}, not from {root}")
    problem = disagreement(found["packages"], found["cuda"])
    if problem:
        raise ImportFailed(problem)
    for name, path in names.items():
        origin = found["origins"][name]
        if origin is None or Path(origin).resolve() != path.resolve():
            raise ImportFailed(f"the patched module {name} is imported from {origin}, not from {path}")
    return found


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
            env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        )
    except subprocess.TimeoutExpired as error:
        raise ImportFailed(f"importing the release took longer than {error.timeout:.0f} s") from error
    answers = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]  # the engine prints too
    if done.returncode or not answers:
        raise ImportFailed(f"the release does not import: {(done.stderr or done.stdout).strip()[-2000:]}")
    found: dict[str, Any] = json.loads(answers[-1][len(_MARK) :])
    return found


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write release.json last and atomically: with it, and not before, the folder is a release."""
    text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".release.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / "release.json")
    except OSError:
        os.unlink(temporary)
        raise
