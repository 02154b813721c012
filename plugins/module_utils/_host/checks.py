# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What preflight makes of a host. PRIVATE to the collection.

Pure: facts and wishes in, findings out. Supported systems and Python versions are those of design and of SGLang's
own requirements (3.10, and 3.11 from 0.5.22 on).
"""

from __future__ import annotations

from collections import defaultdict

from .._deployment import versions
from .._words.amounts import size
from .fabric_checks import check_fabric
from .facts import Facts
from .findings import BLOCKS, INFORMS, WARNS, Finding, sort
from .fit_checks import check_fit
from .gpu_checks import check_gpus
from .sockets import conflicts
from .wanted import Wanted

SUPPORTED_SYSTEMS = {("debian", "12"), ("ubuntu", "22.04"), ("ubuntu", "24.04")}
PACKAGES = {"git": "git", "rsync": "rsync", "systemctl": "systemd"}
LEAST_INODES = 200_000


def check(facts: Facts, wanted: Wanted) -> list[Finding]:
    """All findings on this host for this deployment, blocking ones first."""
    return sort(
        [
            *_system(facts),
            *_services(facts, wanted),
            *_commands(facts),
            *_python(facts, wanted),
            *_port(facts, wanted),
            *_paths(facts),
            *_disk(facts, wanted),
            *_clock(facts),
            *check_gpus(facts, wanted),
            *check_fabric(facts, wanted),
            *check_fit(facts, wanted),
        ]
    )


def _system(facts: Facts) -> list[Finding]:
    found = []
    seen = facts.os_name or f"{facts.os_id} {facts.os_version}".strip() or "an unknown system"
    if (facts.os_id, facts.os_version) not in SUPPORTED_SYSTEMS:
        known = ", ".join(sorted(f"{name} {version}" for name, version in SUPPORTED_SYSTEMS))
        found.append(Finding("os_release", BLOCKS, f"This is {seen}; the collection is made for {known}.", seen))
    if facts.architecture != "x86_64":
        found.append(
            Finding(
                "architecture",
                BLOCKS,
                f"This host is {facts.architecture}; the collection is made for x86_64.",
                facts.architecture,
            )
        )
    return found


def _clock(facts: Facts) -> list[Finding]:
    if facts.clock_synchronised is not False:
        return []
    return [
        Finding(
            "time_sync",
            WARNS,
            "The clock is not synchronised: certificates may be refused, and logs of hosts cannot be put in order.",
            "timedatectl: NTPSynchronized=no",
            "Run systemd-timesyncd or chrony.",
        )
    ]


def _services(facts: Facts, wanted: Wanted) -> list[Finding]:
    if not facts.systemd or facts.unit_problem:
        why = facts.unit_problem or "/run/systemd/system is not there"
        return [Finding("systemd", BLOCKS, f"systemd cannot be used: {why}.", why)]
    gone = [name for name in wanted.own_units[1:] if not facts.units[name].exists]
    missing = [
        Finding(
            "replaced_missing",
            INFORMS,
            f"{name}, which is to be replaced, does not exist on this host.",
            advice="Nothing needs to be done if that is right.",
        )
        for name in gone
    ]
    return [*_foreign_unit(facts, wanted), *_lost(facts), *_triggered(facts), *missing]


def _lost(facts: Facts) -> list[Finding]:
    """What runs and could not come back: said while it runs, for once it is stopped nobody can start it again."""
    return [
        Finding(
            "no_unit_file",
            BLOCKS,
            f"{name} runs, and there is no unit file that it could be started from again: there would be no way back.",
            facts.units[name].fragment or f"{name}: {facts.units[name].load}",
            f"Write /etc/systemd/system/{name} (systemctl show {name} tells its ExecStart, User and Environment) "
            "and run systemctl daemon-reload; accepted, the deployment goes on without a way back.",
        )
        for name in facts.lost
    ]


def _triggered(facts: Facts) -> list[Finding]:
    """What another unit starts would come up beside the instance: now, or after the next boot."""
    return [
        Finding(
            "triggered",
            BLOCKS,
            f"{name} has to be stopped, and {', '.join(by)} would start it again.",
            ", ".join(by),
            f"Run systemctl disable --now {' '.join(by)} on the host.",
        )
        for name, by in facts.triggers.items()
        if by
    ]


def _foreign_unit(facts: Facts, wanted: Wanted) -> list[Finding]:
    """A unit of the instance's own name that somebody else made: said here, before hours of downloading."""
    if not facts.foreign_unit or wanted.adopt:
        return []
    name = wanted.own_units[0].removesuffix(".service")
    return [
        Finding(
            "foreign_unit",
            BLOCKS,
            f"{facts.foreign_unit} was not made by this collection, and the instance would take its name.",
            facts.foreign_unit,
            f"To take it over, add {name} to sglang_adopt: it is kept byte for byte and comes back on rollback or "
            "uninstall.",
        )
    ]


def _commands(facts: Facts) -> list[Finding]:
    gone = [name for name, path in facts.commands.items() if not path]
    if not gone:
        return []
    packages = " ".join(PACKAGES.get(name, name) for name in gone)
    return [
        Finding(
            "commands",
            BLOCKS,
            f"Commands that the deployment needs are missing: {', '.join(gone)}.",
            ", ".join(gone),
            f"Install them: apt-get install {packages}.",
        )
    ]


def least_python(version: str) -> tuple[int, int]:
    """The oldest Python that this SGLang version runs on; the newest bound for a version that cannot be read."""
    try:
        return (3, 10) if versions.parse(version) < (0, 5, 22, 0) else (3, 11)
    except ValueError:
        return (3, 11)


def _python(facts: Facts, wanted: Wanted) -> list[Finding]:
    asked = facts.interpreter
    advice = "Install python3 and python3-venv, or name another interpreter in sglang_python."
    if asked.problem:
        return [
            Finding(
                "python", BLOCKS, f"The Python for the release cannot be used: {asked.problem}.", asked.path, advice
            )
        ]
    have = ".".join(str(part) for part in asked.version)
    least = least_python(wanted.sglang_version)
    found = []
    if asked.version[:2] < least:
        need = f"{least[0]}.{least[1]}"
        message = f"SGLang {wanted.sglang_version} needs Python {need} or newer; {asked.path} is {have}."
        found.append(Finding("python", BLOCKS, message, have, advice))
    if asked.missing:
        parts = ", ".join(asked.missing)
        message = f"{asked.path} cannot make virtual environments: it lacks {parts}."
        found.append(Finding("python", BLOCKS, message, parts, advice))
    return found


def _port(facts: Facts, wanted: Wanted) -> list[Finding]:
    found = []
    if facts.bind_problem:
        found.append(
            Finding(
                "listen_address",
                BLOCKS,
                f"This host cannot listen on {wanted.address}: {facts.bind_problem}.",
                facts.bind_problem,
                "Set sglang_listen_host to an address of this host.",
            )
        )
    for listener in facts.listeners:
        if conflicts(listener, wanted.address) and listener.unit not in wanted.own_units:
            found.append(
                Finding(
                    "port",
                    BLOCKS,
                    f"Somebody else holds {listener.describe()}.",
                    listener.describe(),
                    "Stop it, name its service in sglang_replaces, or set another sglang_port.",
                )
            )
    return found


def _paths(facts: Facts) -> list[Finding]:
    found = []
    for name, space in facts.spaces.items():
        why = space.problem or (f"{space.parent} is mounted read-only" if space.read_only else "")
        if why:
            found.append(Finding("path", BLOCKS, f"{space.path} ({name}) cannot be used: {why}.", space.parent))
    return found


def _disk(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Sum up what is needed for each file system, take off what is there already, and compare."""
    found = []
    missing = max(0, wanted.models_bytes - facts.checkpoint_bytes)
    if facts.checkpoint_bytes:
        message = f"{size(facts.checkpoint_bytes)} of the checkpoint lie on this host already."
        found.append(Finding("checkpoint_present", INFORMS, message, f"{facts.checkpoint_bytes} bytes"))
    built = bool(wanted.commit) and wanted.commit in facts.releases
    parts = [
        ("root", wanted.root_bytes, f"{size(wanted.root_bytes)} for a release in {wanted.paths.get('root', '')}"),
        ("models", missing, _checkpoint_part(facts, wanted, missing)),
    ]
    needs: dict[int, list[tuple[str, int, str]]] = defaultdict(list)
    for name, need, words in parts:
        if need and name in facts.spaces and not facts.spaces[name].problem:
            needs[facts.spaces[name].device].append((name, need, words))
    for rows in needs.values():
        space = facts.spaces[rows[0][0]]
        total = sum(need for _name, need, _words in rows)
        if space.free < total:
            # With a release of this commit in place there may be nothing left to build.
            only_build = built and all(name == "root" for name, _need, _words in rows)
            found.append(_too_little(space.parent, space.free, total, rows, WARNS if only_build else BLOCKS))
        elif 0 < space.free_inodes < LEAST_INODES:
            message = f"Only {space.free_inodes} inodes are free at {space.parent}; a release needs {LEAST_INODES}."
            found.append(Finding("disk", WARNS, message, str(space.free_inodes)))
    return found


def _checkpoint_part(facts: Facts, wanted: Wanted, missing: int) -> str:
    where = wanted.paths.get("models", "")
    if facts.checkpoint_bytes:
        whole, there = size(wanted.models_bytes), size(facts.checkpoint_bytes)
        return f"{size(missing)} for the checkpoint in {where} ({whole} less {there} that is there)"
    return f"{size(missing)} for the checkpoint in {where}"


def _too_little(where: str, free: int, total: int, rows: list[tuple[str, int, str]], severity: str) -> Finding:
    needs = " plus ".join(words for _name, _need, words in rows)
    sum_up = f" = {size(total)}" if len(rows) > 1 else ""
    return Finding(
        "disk",
        severity,
        f"Too little disk at {where}: needed {needs}{sum_up}, free {size(free)}, short of {size(total - free)}.",
        f"needed {total} bytes, free {free} bytes",
        "Free some space or put the folder elsewhere (sglang_root, sglang_models).",
    )
