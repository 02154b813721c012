# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package depot: pinned wheels, fetched by pip, served as an index (PEP 503 and 658) and as one flat page."""

from __future__ import annotations

import html
import os
import sys
from pathlib import Path

from .cache import artefact
from .shell import FleetError, run, step
from .wheels import (
    KERNEL_SOURCE,
    Pin,
    batches,
    metadata_of,
    project_of,
    read_pins,
    sha256_of,
    version_of,
    write_kernel_stand_in,
)

REQUIREMENTS = Path(__file__).parent / "depot" / "requirements.txt"
GLIBC = 36  # Debian 12's glibc is 2.36


def pins() -> list[Pin]:
    """What the depot holds, as depot/requirements.txt says."""
    try:
        return read_pins(REQUIREMENTS.read_text(), str(REQUIREMENTS))
    except ValueError as error:
        raise FleetError(str(error)) from error


def platform_flags() -> list[str]:
    """pip's flags for the nodes' platform (CPython 3.11, Debian 12, x86-64), whatever runs here."""
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)]
    tags += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    flags = [flag for tag in tags for flag in ("--platform", tag)]
    return ["--implementation", "cp", "--python-version", "3.11", *flags, "--only-binary", ":all:"]


def download(cache: Path, wanted: list[Pin]) -> dict[Pin, Path]:
    """Fetch wheels into the cache's store, those that are there already left alone; their paths by pin."""
    store = cache / "wheels"
    store.mkdir(parents=True, exist_ok=True)
    found = _present(store, wanted)
    lacking = [pin for pin in wanted if pin not in found]
    if lacking:
        with step(f"fetch {len(lacking)} wheels"):
            for number, batch in enumerate(batches(lacking)):
                _fetch(store, batch, store / f".requirements-{number}.txt")
        found = _present(store, wanted)
    missing = [str(pin) for pin in wanted if pin not in found]
    if missing:
        raise FleetError(f"pip fetched no wheel for: {', '.join(missing)}")
    return found


def _fetch(store: Path, batch: list[Pin], requirements: Path) -> None:
    requirements.write_text("".join(f"{pin}\n" for pin in batch))
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--require-hashes", "--quiet"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run([*command, *platform_flags(), "--dest", store, "-r", requirements], timeout=3000, env=environment)
    requirements.unlink()


def _present(store: Path, wanted: list[Pin]) -> dict[Pin, Path]:
    """The store's wheels that have the digests of pins; those that have not are removed."""
    by_key: dict[tuple[str, str], list[Path]] = {}
    for path in store.glob("*.whl"):
        by_key.setdefault((project_of(path.name), version_of(path.name)), []).append(path)
    found = {}
    for pin in wanted:
        for path in by_key.get((pin.name, pin.version), []):
            if sha256_of(path) == pin.sha256:
                found[pin] = path
            else:
                # What a killed download left, or another platform's wheel.
                path.unlink()
    return found


def depot(cache: Path) -> Path:
    """Folder with depot/ (wheels and their flat page) and simple/ (index pages)."""
    wanted = pins()
    inputs = {"pins": [str(pin) for pin in wanted], "kernel": KERNEL_SOURCE, "format": 1}

    def build(target: Path) -> None:
        wheels = download(cache, wanted)
        folder = target / "depot"
        folder.mkdir()
        digests = {path.name: pin.sha256 for pin, path in wheels.items()}
        for path in wheels.values():
            os.link(path, folder / path.name)
        stand_in = write_kernel_stand_in(folder)
        digests[stand_in.name] = sha256_of(stand_in)
        write_pages(target, digests)

    return artefact(cache, "depot", inputs, build)


def forget_others(cache: Path, kept: list[Pin]) -> None:
    """Remove wheels from the store that no pin asks for any more."""
    names = {(pin.name, pin.version) for pin in kept}
    for path in (cache / "wheels").glob("*.whl"):
        if (project_of(path.name), version_of(path.name)) not in names:
            path.unlink()


def write_pages(target: Path, digests: dict[str, str]) -> None:
    """Write the metadata files, the flat page and the index pages for the wheels in `target`/depot."""
    links: dict[str, list[str]] = {}
    for name in sorted(digests):
        metadata = target / "depot" / f"{name}.metadata"
        metadata.write_bytes(metadata_of(target / "depot" / name))
        attribute = f'data-core-metadata="sha256={sha256_of(metadata)}"'
        shown = html.escape(name)
        link = f'<a href="{{}}{shown}#sha256={digests[name]}" {attribute}>{shown}</a><br>'
        links.setdefault(project_of(name), []).append(link)
    flat = [link.format("") for project in links.values() for link in project]
    _page(target / "depot", "Wheels of the llmfleet test fleet", flat)
    for project, own in links.items():
        _page(target / "simple" / project, project, [link.format("../../depot/") for link in own])
    _page(target / "simple", "Projects", [f'<a href="{project}/">{project}</a><br>' for project in sorted(links)])


def _page(folder: Path, title: str, lines: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    body = "\n".join(lines)
    (folder / "index.html").write_text(
        f"<!DOCTYPE html><html><head><title>{html.escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
    )
