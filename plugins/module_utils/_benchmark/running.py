# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What serves on a host now, read from the process itself and from its release. Private to the collection.

The inventory says what is wanted; a benchmark has to say what was measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import MANIFEST
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import systemd
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import Runner
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.proc import PROC
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.identity import made_from, read_record
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.environment import of_service
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.unit import STATE_VARIABLE

HIDDEN = "***"
_SECRET = re.compile(r"(?i)(?:^|[_-])(?:api[_-]?key|key|token|secret|passw(?:or)?d|credentials?|auth)(?:$|[_-])")
_LOGIN = re.compile(r"://[^\s/@]*@")
# What systemd and the host's locale give to every service, unless its unit sets it.
_SYSTEMD = re.compile(
    r"LANG|LANGUAGE|LC_\w+|USER|LOGNAME|SHELL|PWD|CREDENTIALS_DIRECTORY|STATE_DIRECTORY|CACHE_DIRECTORY|INVOCATION_ID|"
    r"JOURNAL_STREAM|SYSTEMD_EXEC_PID|NOTIFY_SOCKET|MEMORY_PRESSURE_\w+"
)
# What every unit of ours sets beside what `of_service` says: name and value.
_OURS = re.compile(rf"{STATE_VARIABLE}=.*|SGLANG_LOGGING_CONFIG_PATH=.*/logging\.json")
# An assignment in a unit of ours, one a line (`_systemd.quote.environment_line`).
_ASSIGNED = re.compile(r'^Environment="?([A-Za-z_]\w*)=(\S*)', re.MULTILINE)
# How a variable of the process is, held against a value that is wanted.
AS_ASKED, OTHER, ABSENT = "as asked", "another value", "absent"
# Packages whose version decides about speed.
_PACKAGES = (
    "torch",
    "sglang-kernel",
    "sgl-kernel",
    "flashinfer_python",
    "flashinfer-python",
    "triton",
    "nvidia-nccl-cu13",
)


class NotServing(Exception):
    """There is nothing of ours to measure; the text says why, for the operator."""


@dataclass(frozen=True)
class Running:
    """One running instance.

    release: its record (release.json); environ: all of the process's, never to be shown; unit_text: the unit file as it
    is now, "" where it cannot be read.
    """

    unit: systemd.Unit
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    release: Mapping[str, Any]
    folder: Path
    unit_text: str = ""

    @property
    def state(self) -> str:
        """The state that it was started as."""
        return self.environ.get(STATE_VARIABLE, "")

    @property
    def arguments(self) -> dict[str, Any]:
        """Its launch arguments by flag, as texts; true for a flag without a value. No secret is ever among them."""
        return parse_arguments(self.argv)

    @property
    def checkpoint(self) -> str:
        """Repository and revision of the weights that it was started with, by their manifest; "" where there is none.

        The host record would tell those of the last deployment that was concluded.
        """
        told = host_record(Path(str(self.arguments.get("model-path", ""))) / MANIFEST)
        return f"{told['repository']}@{told['revision']}" if {"repository", "revision"} <= set(told) else ""

    @property
    def environment(self) -> dict[str, str]:
        """What its deployment added to its environment, without secrets."""
        release = {"id": self.folder.name, "path": str(self.folder)}
        bare = {"service": self.unit.name.removesuffix(".service"), "launch": {"environment": {}}}
        own, assigned = of_service(bare, release), self._assigned
        added = {name: value for name, value in self.environ.items() if own.get(name) != value}
        return hidden(
            {
                name: value
                for name, value in added.items()
                if not _OURS.fullmatch(f"{name}={value}") and (name in assigned or not _SYSTEMD.fullmatch(name))
            }
        )

    @property
    def unit_changed(self) -> bool:
        """Tell whether the unit is another one than the process was started from."""
        return self._assigned.get(STATE_VARIABLE, self.state) != self.state

    @property
    def _assigned(self) -> dict[str, str]:
        """What the unit sets now: names, and values as far as the first blank."""
        return dict(_ASSIGNED.findall(self.unit_text))

    def compared(self, wanted: Mapping[str, Any]) -> dict[str, str]:
        """Say of each variable whether the process has it with the value that is wanted, whoever set it; shows none.

        A variable that is not wanted (None) is as asked where it is absent.
        """
        return {str(name): _compared(self.environ.get(str(name)), value) for name, value in wanted.items()}

    @property
    def tensor_parallel(self) -> int:
        """Its tensor parallel size."""
        text = str(self.arguments.get("tp-size", "1"))
        return int(text) if text.isdigit() else 1

    @property
    def patch_sets(self) -> tuple[str, ...]:
        """The names of the patch sets that its release was built with."""
        return tuple(str(one.get("name")) for one in self.release.get("inputs", {}).get("patch_sets", []))

    @property
    def patches(self) -> tuple[dict[str, Any], ...]:
        """Each edit of its release."""
        return patches_of(self.release)

    @property
    def packages(self) -> dict[str, str]:
        """The versions of the packages that decide about speed."""
        found = dict(line.split("==", 1) for line in self.release.get("packages", []) if "==" in line)
        return {name: found[name] for name in _PACKAGES if name in found}


def _compared(have: str | None, wanted: Any) -> str:
    if have is None:
        return AS_ASKED if wanted is None else ABSENT
    return AS_ASKED if wanted is not None and have == str(wanted) else OTHER


def patches_of(release: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return each edit of a release (its record): patch set, identifier, state, file, and the patched file's digest."""
    digests = release.get("digests", {})
    sets = {
        edit.get("id"): one.get("name")
        for one in release.get("inputs", {}).get("patch_sets", [])
        for edit in one.get("edits", [])
    }
    return tuple(
        {
            "patch_set": sets.get(one.get("id"), ""),
            "id": one.get("id"),
            "state": one.get("state"),
            "file": one.get("file"),
            "digest": digests.get(f"src/python/{one.get('file')}", ""),
        }
        for one in release.get("patched", [])
    )


def read(run: Runner, service: str, root: Path, proc: str = PROC) -> Running:
    """Look at the main process of a service and at the release that it runs from. root: folder above `releases`.

    Raises NotServing when it does not run, or is no instance of ours; SystemdError when systemd cannot be asked.
    """
    unit = systemd.show(run, service)
    if unit.active != "active" or not unit.main_pid:
        raise NotServing(f"{service} is {unit.active}: there is nothing to measure")
    place = Path(proc, str(unit.main_pid))
    try:
        argv = tuple(_texts((place / "cmdline").read_bytes()))
        pairs = (one.partition("=") for one in _texts((place / "environ").read_bytes()))
        environ = {name: value for name, _equals, value in pairs}
    except OSError as error:
        raise NotServing(f"{service} cannot be looked at: {error}") from error
    folder = root / "releases"
    name = _below(folder, argv[0]) if argv else ""
    release = read_record(folder / name) if name else None
    if release is None or STATE_VARIABLE not in environ:
        raise NotServing(f"{service} was not deployed by this collection: deploy it first, and measure then")
    return Running(unit, argv, environ, release, folder / name, _text_of(unit.fragment))


def _text_of(fragment: str) -> str:
    try:
        return Path(fragment).read_text(encoding="utf-8", errors="replace") if fragment else ""
    except OSError:  # it was removed, and the service runs still
        return ""


def _texts(content: bytes) -> list[str]:
    words = content.split(b"\0")
    return [one.decode("utf-8", "replace") for one in (words if words[-1] else words[:-1])]


def _below(folder: Path, interpreter: str) -> str:
    try:
        return Path(interpreter).relative_to(folder).parts[0]
    except (ValueError, IndexError):
        return ""


def parse_arguments(argv: Sequence[str]) -> dict[str, Any]:
    """Return the flags of a command line by their name without dashes; several values are joined by blanks."""
    found: dict[str, Any] = {}
    flag = ""
    for word in argv:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            flag = flags.canonical(name)
            found[flag] = value if equals else True
        elif flag:
            found[flag] = word if found[flag] is True else f"{found[flag]} {word}"
    found.pop("config", None)  # the folder of a credential, another one at each start
    return found


def hidden(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with every value hidden that may be a secret, by its name or by a login in a URL."""
    return {
        name: HIDDEN if _SECRET.search(name) or _LOGIN.search(value) else value
        for name, value in sorted(environment.items())
    }


def host_record(path: Path) -> dict[str, Any]:
    """Return the host record of an instance, or another map in a file; empty where there is none that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def described(found: Running, wanted: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return what is known of a running instance as a module returns it: no secret among it.

    wanted: variables that its environment is compared with; those that it has are in `asked`, whoever set them.
    """
    asked = hidden({name: found.environ[name] for name in wanted if name in found.environ})
    return {
        "state": found.state,
        "release": str(found.release.get("id", "")),
        "commit": str(found.release.get("inputs", {}).get("commit", "")),
        "version": str(found.release.get("inputs", {}).get("version", "")),
        "patch_sets": list(found.patch_sets),
        "arguments": found.arguments,
        "environment": found.environment,
        "asked": asked,
        "compared": found.compared(wanted),
        "made_from": made_from(found.release.get("inputs", {})),
        "tensor_parallel": found.tensor_parallel,
        "unit_changed": found.unit_changed,
    }
