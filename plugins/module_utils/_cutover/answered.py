# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What once answered rightly on a host, kept so that one can go back to it by name. Private to the collection.

One file for each instance, release and wanted state, `<state>/<instance>/answered/<release>@<12 hex digits>.json`: the
unit's bytes, what the host record said then, and how to prove that it answers. Before, it was `<release>.json`, which
is still read. Pruning releases does not count these files: a release that is gone cannot be named
any more, and its files go when the next one is written. Of one release the newest MOST are kept, and what a snapshot
of the instance holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles

SCHEMA = 1
FOLDER = "answered"
MOST = 10
STATE_DIGITS = 12


@dataclass(frozen=True)
class Answered:
    """An instance as it last answered from a release.

    record: the host record's content (instance, service, release, served_model_name, …); verify: what the module
    `completion` needs to ask it (host, port, prompts, …); at: when it was kept, in UTC.
    """

    record: dict[str, Any]
    files: UnitFiles
    verify: dict[str, Any]
    at: str

    @property
    def release(self) -> str:
        """The release that it ran from."""
        return str(self.record["release"])

    @property
    def key(self) -> str:
        """How it is named: its release and the state that was wanted then, as other deployments of it have others."""
        state = str(self.record.get("state") or "")
        return f"{self.release}@{state[:STATE_DIGITS]}" if state else self.release

    def missing(self, releases: Path) -> str:
        """Say what it would need to serve again and is not there any more; "" when all is. `releases`: their folder."""
        if not is_built(releases, self.release):
            return f"its release {releases / self.release}"
        weights = str(self.record.get("model_path", ""))
        return f"its checkpoint {weights}" if weights and not Path(weights).exists() else ""

    @property
    def service(self) -> str:
        """The service's name, without `.service`."""
        return self.files.name

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "schema": SCHEMA,
            "record": self.record,
            "files": self.files.as_dict(),
            "verify": self.verify,
            "at": self.at,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Answered:
        """Read what `as_dict` wrote. Raises UnitError for another schema."""
        if value.get("schema") != SCHEMA:
            raise UnitError(f"it has schema {value.get('schema')}, and this collection reads {SCHEMA}")
        return cls(dict(value["record"]), UnitFiles.from_dict(value["files"]), dict(value["verify"]), str(value["at"]))


def keep(folder: Path, entry: Answered, releases: Path) -> bool:
    """Keep what answers in an instance's folder, and forget what nobody can go back to; tell if it was new.

    releases: the folder of the releases.
    """
    place = folder / FOLDER
    kept = {path: found for path in sorted(place.glob("*.json")) if (found := _readable(path))}
    path = place / f"{entry.key}.json"
    before = kept.pop(path, None)
    for other in _useless(folder, entry, kept, releases):
        other.unlink()
    if before is not None and (before.record, before.files, before.verify) == (entry.record, entry.files, entry.verify):
        return False
    File((json.dumps(entry.as_dict(), indent=2) + "\n").encode(), 0o600).write(path)
    return True


def _readable(path: Path) -> Answered | None:
    try:
        return load(path)
    except UnitError:
        return None


def _useless(folder: Path, entry: Answered, kept: dict[Path, Answered], releases: Path) -> list[Path]:
    """The other files that are not needed beside `entry`: of releases that are gone, under old names, too many."""
    held = snapshot.load(folder / snapshot.SNAPSHOT)
    needed = [one.files for one in held.services] if held else []
    gone = [path for path, one in kept.items() if not is_built(releases, one.release) or one.key == entry.key]
    same = [path for path, one in kept.items() if path not in gone and one.release == entry.release]
    newest = sorted(same, key=lambda path: kept[path].at, reverse=True)
    return gone + [path for path in newest[MOST - 1 :] if kept[path].files not in needed]


def load(path: Path) -> Answered | None:
    """Read one; None when there is none. Raises UnitError when it cannot be read."""
    try:
        return Answered.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, UnitError) as error:
        raise UnitError(f"{path} cannot be read: {error}") from error


def all_of(state: Path, releases: Path) -> list[Answered]:
    """Everything that once answered on this host and still could, the newest first."""
    found = [load(path) for path in sorted(state.glob(f"*/{FOLDER}/*.json"))]
    return sorted((one for one in found if one and not one.missing(releases)), key=lambda one: one.at, reverse=True)


def of_unit(state: Path, files: UnitFiles) -> Answered | None:
    """What was kept of exactly this unit, whether it still could answer or not."""
    found = (load(path) for path in sorted(state.glob(f"*/{FOLDER}/*.json")))
    return next((one for one in found if one is not None and one.files == files), None)


def is_built(releases: Path, release: str) -> bool:
    """Tell whether a finished release of that name is there."""
    return (releases / release / "release.json").is_file()
