# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked for, and what became of it. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .config import Wanted
from .errors import CheckpointError
from .fetch import Hf
from .hub import Hub
from .peers import Peers
from .place import Owner, Place
from .serve import Server

_REVISION = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked for. Sizes in bytes; `full` reads every file again although the stamp still holds.

    The files come from the Hub, from `peers` where they are given, or, with `here`, from nowhere: then what lies in
    its place already is read and has to be right; `optional` takes only what the stamp vouches for, and says whether.
    serve: to whom the files are given afterwards; wanted: what the checkpoint has to be.
    """

    place: Place
    hub: Hub
    hf: Hf
    owner: Owner = dataclasses.field(default_factory=Owner)
    full: bool = False
    threads: int = 0
    reserve: int = 1 << 30
    progress_file: str | None = None
    wanted: Wanted = dataclasses.field(default_factory=Wanted)
    peers: Peers | None = None
    here: bool = False
    optional: bool = False
    serve: Server | None = None


@dataclasses.dataclass
class Outcome:
    """What was found and done; `message` says it in one sentence. complete: every file is here, right and in place."""

    changed: bool = False
    complete: bool = False
    message: str = ""
    files: int = 0
    bytes: int = 0
    bytes_downloaded: int = 0
    bytes_hashed: int = 0
    verified_at: str = ""
    manifest_digest: str = ""
    before: str | None = None
    taken_from: list[str] = dataclasses.field(default_factory=list)
    fetched_again: list[dict[str, str]] = dataclasses.field(default_factory=list)
    to_download: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)


def check_names(repository: str, revision: str) -> None:
    """Refuses, with CheckpointError, a repository that is no owner/name and a revision that is no commit."""
    if not _REPOSITORY.fullmatch(repository):
        raise CheckpointError(f"The repository {repository!r} is not of the form owner/name.")
    if not _REVISION.fullmatch(revision):
        raise CheckpointError(
            f"The revision {revision!r} of {repository} is not a pin: branches and tags move. Give the commit as 40 "
            "lower-case hex digits; `ansible-playbook llmfleet.sglang.pin -i INVENTORY` looks it up and writes it "
            "to the inventory."
        )
