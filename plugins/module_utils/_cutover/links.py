# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which services come back after a reboot: the symbolic links that enable a unit. Private to the collection.

`systemctl disable` also removes the link by which a unit outside of /etc/systemd/system is known, and `systemctl
enable` does nothing for a unit without [Install]. So the links themselves are kept, taken away and put back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import units
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import UnitError, UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import settle

RUNTIME = Path("/run/systemd/system")
_INSTALL = re.compile(r"^\[Install\]\n(.*?)(?:^\[|\Z)", re.MULTILINE | re.DOTALL)
_WANTED = re.compile(r"^(Wanted|Required)By=(.*)$", re.MULTILINE)


def of(name: str) -> dict[str, str]:
    """Return the links that enable a service: each one's path and where it leads to."""
    return {str(path): os.readlink(path) for folder in (units.UNITS, RUNTIME) for path in _in(folder, name)}


def _in(folder: Path, name: str) -> Iterator[Path]:
    """The links to a unit in one of systemd's folders: what wants or requires it, and its other names."""
    own = f"{name}.service"
    for pattern in ("*.wants/*", "*.requires/*", "*.upholds/*", "*.service"):
        for path in sorted(folder.glob(pattern)):
            if path.is_symlink() and path != folder / own and own in (path.name, os.path.basename(os.readlink(path))):
                yield path


def fixed(name: str) -> list[str]:
    """Return the links that start a service at boot and stay whatever one does: a package or a generator made them."""
    folders = {folder.resolve(): folder for folder in units.ELSEWHERE if folder != RUNTIME}
    wanting = (place for one in folders.values() for how in ("wants", "requires") for place in one.glob(f"*.{how}"))
    return sorted(str(path) for place in wanting if os.path.lexists(path := place / f"{name}.service"))


def of_install(files: UnitFiles) -> dict[str, str]:
    """Return the links that the [Install] section of a unit of ours asks for."""
    text = files.unit.content.decode(errors="replace") if files.unit else ""
    section = _INSTALL.search(text)
    own = f"{files.name}.service"
    return {
        str(units.UNITS / f"{target}.{'wants' if how == 'Wanted' else 'requires'}" / own): str(units.UNITS / own)
        for how, targets in _WANTED.findall(section.group(1) if section else "")
        for target in targets.split()
    }


def switch(on: Mapping[str, Mapping[str, str]], off: Iterable[str]) -> bool:
    """Let services come back after a reboot, by their links, and others not; tell whether anything changed.

    A service without known links is enabled as systemctl does it. The new links are made before the old ones go, one
    after the other in one folder, so that a power cut finds either order, and never none. Raises UnitError if systemd
    says otherwise afterwards.
    """
    on, off = {name: dict(found) for name, found in on.items()}, list(off)
    touched: set[Path] = set()
    asked = [name for name, found in on.items() if not found and not units.enabled(name)]
    if asked:
        units.systemctl("enable", "--quiet", *(f"{name}.service" for name in asked))
        _verify(asked, [])  # it does nothing for a unit without [Install]; then nothing is disabled
    for found in on.values():
        touched |= {Path(path).parent for path, target in found.items() if units.link(Path(path), target)}
    surplus = [Path(path) for name in [*off, *(one for one in on if on[one])] for path in of(name)]
    wanted = {path for found in on.values() for path in found}
    for path in surplus:
        if str(path) not in wanted:
            path.unlink()
            touched.add(path.parent)
    for folder in sorted(touched):
        settle(folder)
    if touched:
        units.systemctl("daemon-reload")
    _verify(on, off)
    return bool(touched or asked)


def _verify(on: Iterable[str], off: Iterable[str]) -> None:
    for name, wanted in [*((one, True) for one in on), *((one, False) for one in off)]:
        state = units.systemctl("is-enabled", f"{name}.service", must=False) or "not found"
        if (state in units.ENABLED) != wanted:
            raise UnitError(
                f"{name}.service was {'enabled' if wanted else 'disabled'}, and `systemctl is-enabled` still says "
                f"'{state}': {'enable' if wanted else 'disable'} it by hand, then run this again (what wants it is "
                f"shown by `systemctl list-dependencies --reverse {name}.service`)"
            )
