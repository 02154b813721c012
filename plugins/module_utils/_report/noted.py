# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host knows of the last cut-over of an instance, read from its own records alone. Private to the collection."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import judge
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import record as benchmarks
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark, Sample
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover import snapshot, times
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.aim import Places
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.snapshot import Snapshot
from ansible_collections.llmfleet.sglang.plugins.module_utils._cutover.units import File, UnitError, UnitFiles
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import changes

# The newest are handed to the controller; the host keeps all.
MOST_BENCHMARKS, MOST_SAMPLES = 4, 60
# The mark by which a run knows that one of ours took the host out of the load balancer (playbooks/tasks/drain.yml).
DRAINED = "drained.json"


def look(places: Places, run: str, now: float) -> dict[str, Any]:
    """Return all that a report needs of this host. run: who asks; now: seconds since 1970, by the host's clock.

    What cannot be read is named in `problems`, and never fails.
    """
    problems: list[str] = []
    kept = times.read(places.folder / times.NAME)
    before = _snapshot(places, problems)
    rolled_out = any(step.get("step") == times.BEGIN for step in kept.get("steps", []))
    mine = bool(run) and kept.get("run") == run
    after = _unit_of(places, before, rejected=mine and rolled_out)
    release = _release(places, changes.release_of(_ours(after)), problems)
    mark = places.folder / DRAINED
    return {
        "now": now,
        "drained": str(mark) if mark.exists() else "",
        "mine": mine,
        "times": kept,
        "phase": before.phase if before else "",
        "served": before.served if before else [],
        "service": after.name if after else "",
        "release": changes.release_of(_ours(after)),
        "model": changes.arguments(_ours(after)).get("served-model-name", ""),
        "checkpoint": changes.checkpoint_of(_ours(after)),
        "commit": str((release.get("inputs") or {}).get("commit", "")),
        "patches": _patches(release),
        # Of going back on demand it is not kept what served until then.
        "changes": _changes(places, before, after, release, problems) if rolled_out else [],
        "benchmarks": _benchmarks(places, problems),
        "problems": problems,
    }


def _snapshot(places: Places, problems: list[str]) -> Snapshot | None:
    try:
        return snapshot.load(places.snapshot)
    except (OSError, UnitError) as error:
        problems.append(f"{error}.")
        return None


def _unit_of(places: Places, before: Snapshot | None, *, rejected: bool) -> UnitFiles | None:
    """The unit that is there; where the cut-over of who asks went back (rejected), the one that was put aside."""
    name = f"sglang-{places.instance}"
    if before is not None and before.phase == "restored" and rejected:
        put_aside = File.read(places.folder / "rejected" / f"{name}.service")
        if put_aside:
            return UnitFiles(name, put_aside)
    found = UnitFiles.read(name)
    return found if found.unit else None


def _ours(files: UnitFiles | None) -> str:
    """The text of a unit of ours; "" for none, and for one that somebody else made."""
    return files.unit.content.decode(errors="replace") if files and files.unit and files.ours else ""


def _release(places: Places, name: str, problems: list[str]) -> dict[str, Any]:
    try:
        return (read_record(places.releases / name) if name else None) or {}
    except OSError as error:
        problems.append(f"the record of release {name} cannot be read: {error}.")
        return {}


def _patches(release: dict[str, Any]) -> list[dict[str, str]]:
    """Each edit of a release with the digest of the file that it is in."""
    digests = {str(path): str(digest) for path, digest in (release.get("digests") or {}).items()}
    return [
        {
            **{key: str(one.get(key) or "") for key in ("id", "state", "file")},
            "digest": digests.get(f"src/python/{one.get('file')}", ""),
        }
        for one in release.get("patched") or []
    ]


def _changes(
    places: Places, before: Snapshot | None, after: UnitFiles | None, release: dict[str, Any], problems: list[str]
) -> list[changes.Row]:
    """What the cut-over changed, or was to change: of the first service that ran before it."""
    if before is None or after is None:
        return []
    old = next((one.files for one in before.services if one.active), None)
    one, other = _ours(old), _ours(after)
    names = (old.name if old else "", after.name)
    ids = (changes.release_of(one), changes.release_of(other))
    return [
        *changes.of_services(names, one, other),
        *changes.of_releases(_release(places, ids[0], problems), release),
        *changes.of_units(one, other, ids),
    ]


def _benchmarks(places: Places, problems: list[str]) -> list[dict[str, Any]]:
    try:
        found, wrong = benchmarks.read(places.folder / benchmarks.NAME)
    except OSError as error:
        found, wrong = [], [f"{error}."]
    problems += wrong
    first = max(0, len(found) - MOST_BENCHMARKS)
    baselines = [judge.shown_against(found[:at], found[at]) for at in range(first, len(found))]
    named = {one.id for one in baselines if one}
    wanted = [one for at, one in enumerate(found) if at >= first or one.id in named]
    return [{**one.as_dict(), "samples": _samples(one)} for one in wanted]


def _samples(one: Benchmark) -> list[dict[str, float | None]]:
    """The host as a whole, at fewer moments."""
    return [_sum(sample) for sample in benchmarks.thinned(one.samples, MOST_SAMPLES)]


def _sum(sample: Sample) -> dict[str, float | None]:
    busy = [card.utilisation for card in sample.cards if card.utilisation is not None]
    return {
        "second": sample.second,
        "draw": sample.draw,
        "limit": _total(card.limit for card in sample.cards),
        "utilisation": round(statistics.fmean(busy), 1) if busy else None,
    }


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
