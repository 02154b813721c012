# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for secrets where they must not be: in texts, files and processes of this machine, which has the nodes' too."""

from __future__ import annotations

import base64
import contextlib
import secrets
import subprocess
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

PROC = Path("/proc")
# File systems that keep what is written to them; the others are the kernel's own.
_KEPT_BY = {"overlay", "tmpfs", "ramfs", "ext4", "xfs", "btrfs"}


@dataclass(frozen=True)
class Secret:
    """A secret made for one test, of two random halves with a sign between that a URL has to quote."""

    name: str
    value: str

    @classmethod
    def of(cls, name: str, sign: str = "") -> Secret:
        """Make a secret."""
        return cls(name, f"{secrets.token_hex(12)}{sign}{secrets.token_hex(12)}")

    @property
    def halves(self) -> tuple[str, str]:
        """Either of them is found out as a leak alone."""
        return self.value[:24], self.value[-24:]

    @property
    def forms(self) -> set[str]:
        """What is looked for: each half, and in base64, at each place that it may have in a longer text."""
        found = set(self.halves)
        for text in (self.value, quote(self.value, safe="")):
            for before in range(3):
                # The first and last signs of base64 depend on what stands beside the text.
                code = base64.b64encode(b"x" * before + text.encode()).decode()
                found.add(code[4 : len(code) - 4])
        return found


def found_in(text: str, looked_for: Iterable[Secret]) -> set[str]:
    """The names of the secrets in a text."""
    return {one.name for one in looked_for if any(form in text for form in one.forms)}


@dataclass(frozen=True, order=True)
class Held:
    """A process, file or the like that holds a secret. who: the user; what: its command or its path."""

    where: str
    who: str
    what: str
    secret: str


def files(folders: Iterable[Path], mark: Path, looked_for: Iterable[Secret], below: Path = Path("/")) -> set[Held]:
    """The files that hold a secret, of those below `folders` that were made or changed after `mark` was.

    Paths are given as seen from `below`. Other file systems, mounted there, are folders of their own.
    """
    secrets_known = list(looked_for)
    starts = [str(one) for one in folders if one.exists()]
    if not starts:
        return set()
    # -H: /proc/PID/root is a link.
    listed = subprocess.run(
        ["find", "-H", *starts, "-xdev", "-type", "f", "-cnewer", str(mark), "-size", "+0", "-print0"],
        check=False,  # what goes while it looks is no failure
        capture_output=True,
        timeout=300,
    ).stdout
    # grep is told what to look for by its input: whoever reads /proc must not find it there.
    forms = "\n".join(form for one in secrets_known for form in sorted(one.forms))
    found = set()
    paths = [path for path in listed.split(b"\0") if path]
    for first in range(0, len(paths), 500):
        words = [b"grep", b"--text", b"--files-with-matches", b"--null", b"--fixed-strings", b"--file=-", b"--"]
        held = subprocess.run(
            [*words, *paths[first : first + 500]], check=False, input=forms.encode(), capture_output=True, timeout=300
        ).stdout
        for path in filter(None, held.split(b"\0")):
            found |= _held(Path(path.decode()), secrets_known, below)
    return found


def _held(path: Path, looked_for: list[Secret], below: Path) -> set[Held]:
    with contextlib.suppress(OSError):
        about = path.stat()
        text = path.read_bytes().decode(errors="replace")
        who = f"{about.st_uid} {about.st_mode & 0o777:04o}"
        return {Held("file", who, f"/{path.relative_to(below)}", name) for name in found_in(text, looked_for)}
    return set()


def mounts(pid: int) -> list[Path]:
    """The folders at which a process's file systems begin, of those that keep what is written, reached by /proc."""
    rows = [line.partition(" - ") for line in (PROC / str(pid) / "mountinfo").read_text().splitlines()]
    points = [before.split()[4] for before, _dash, after in rows if after.split()[0] in _KEPT_BY]
    return [PROC / str(pid) / "root" / point.lstrip("/") for point in dict.fromkeys(points)]


class Sampler:
    """Looks at every process of this machine, and at the files of a few folders, until it is stopped."""

    def __init__(self, looked_for: Iterable[Secret], folders: Iterable[Path], mark: Path) -> None:
        self._secrets, self._folders, self._mark = list(looked_for), list(folders), mark
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.found: set[Held] = set()
        self.rounds = 0

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(60)

    def _work(self) -> None:
        while not self._stopped.wait(0.2):
            self.found |= set(self.processes())
            if self.rounds % 10 == 0:
                self.found |= files(self._folders, self._mark, self._secrets)
            self.rounds += 1

    def processes(self) -> Iterator[Held]:
        """What the processes hold in their arguments and in their environment now."""
        for entry in PROC.iterdir():
            if not entry.name.isdigit():
                continue
            for where in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    text = (entry / where).read_bytes().decode(errors="replace")
                    for name in found_in(text, self._secrets):
                        command = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                        yield Held(where, str(entry.stat().st_uid), command.strip()[:300], name)


def user(number: int | str, passwd: Path) -> str:
    """The name of a user in a machine's /etc/passwd; the number where there is none."""
    for line in passwd.read_text().splitlines():
        fields = line.split(":")
        if fields[2] == str(number):
            return fields[0]
    return str(number)
