# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels: parsing pinned requirements, naming, metadata, and a wheel made here as a stand-in."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;]+)\s+--hash=sha256:(?P<sha256>[0-9a-f]{64})$"
)


@dataclass(frozen=True)
class Pin:
    """One line of a pinned requirements file."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def normalised(name: str) -> str:
    """A project's name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(text: str, source: str) -> list[Pin]:
    """Parse a file of `name==version --hash=sha256:…` lines; ValueError names the line that is not one."""
    pins = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        match = PIN.match(line)
        if not match:
            raise ValueError(f"{source}:{number}: not of the form name==version --hash=sha256:DIGEST: {line}")
        pins.append(Pin(normalised(match["name"]), match["version"], match["sha256"]))
    return pins


def batches(pins: list[Pin]) -> list[list[Pin]]:
    """Split pins so that no batch names a project twice (pip refuses that)."""
    result: list[list[Pin]] = []
    for pin in pins:
        for batch in result:
            if all(other.name != pin.name for other in batch):
                batch.append(pin)
                break
        else:
            result.append([pin])
    return result


def project_of(wheel: str) -> str:
    """The normalised project name in a wheel's file name."""
    return normalised(wheel.split("-", 1)[0])


def version_of(wheel: str) -> str:
    """The version in a wheel's file name."""
    return wheel.split("-")[1]


def metadata_of(path: Path) -> bytes:
    """A wheel's METADATA file, which an index can serve beside the wheel (PEP 658)."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"[^/]+\.dist-info/METADATA", name):
                return archive.read(name)
    raise ValueError(f"{path}: no METADATA in it, so it is no wheel")


def sha256_of(path: Path) -> str:
    """Hex digest of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


KERNEL_NAME, KERNEL_VERSION = "sglang-kernel", "0.4.10"
KERNEL_SUMMARY = "Stand-in for sglang-kernel on machines without a GPU: every function raises. Not SGLang's."
KERNEL_SOURCE = f'''"""{KERNEL_SUMMARY}

The real kernels load only where a CUDA driver is. On SGLang's torch-native path no function of them is
called, but their package is imported. This one is made by the llmfleet.sglang test fleet.
"""

__version__ = "{KERNEL_VERSION}"
STAND_IN = True


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def needs_a_gpu(*arguments, **options):
        raise RuntimeError(name + " needs a GPU: this sgl_kernel is a stand-in")

    needs_a_gpu.__name__ = name
    return needs_a_gpu
'''


def write_kernel_stand_in(folder: Path) -> Path:
    """Write the stand-in wheel for `sglang-kernel` (package sgl_kernel); the same bytes every time."""
    info = f"sglang_kernel-{KERNEL_VERSION}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {KERNEL_NAME}\nVersion: {KERNEL_VERSION}\nSummary: {KERNEL_SUMMARY}\n"
        "Author: llmfleet engineers\nRequires-Python: >=3.9\n"
    )
    wheel = "Wheel-Version: 1.0\nGenerator: llmfleet fleet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"sgl_kernel/__init__.py": KERNEL_SOURCE, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    record = "".join(f"{name},{_record_digest(text)},{len(text.encode())}\n" for name, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = folder / f"sglang_kernel-{KERNEL_VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return path


def _record_digest(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
