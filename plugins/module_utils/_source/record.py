# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What we wrote into a tree, kept beside it: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

from .errors import SourceError, SplicesLost
from .spec import What, parse_what
from .text import SourceText, Splice, undo_splices
from .tree import Tree

VERSION = 1


def digest(raw: bytes) -> str:
    """Return the SHA-256 of some bytes, 64 lower-case hex digits."""
    return hashlib.sha256(raw).hexdigest()


@dataclass
class OwnEdit:
    """One edit that stands in a file. Splice offsets count characters of the text before this edit."""

    id: str
    slot: str
    what: What
    splices: list[Splice]


@dataclass
class OwnFile:
    """A file that we edited: digests before the first and after the last edit, and the edits in order."""

    before: str
    after: str
    edits: list[OwnEdit] = field(default_factory=list)


class Record:
    """All that we wrote into a tree.

    :raises SourceError: there is a record that cannot be read.
    """

    def __init__(self, files: dict[str, OwnFile] | None = None) -> None:
        self.files: dict[str, OwnFile] = files or {}

    @staticmethod
    def name(tree: Tree) -> str:
        """Return the record's file name in the tree's folder."""
        return ".python_source.json" if tree.single is None else f".{tree.single}.python_source.json"

    @classmethod
    def load(cls, tree: Tree) -> Record:
        """Read the record of a tree; an empty one if there is none."""
        path = os.path.join(tree.folder, cls.name(tree))
        try:
            with open(path, encoding="utf-8") as stream:
                return cls.from_data(json.load(stream))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SourceError) as exc:
            raise SourceError(f"the record {path} cannot be read ({exc}); restore or remove it") from exc

    @classmethod
    def from_data(cls, data: Any) -> Record:
        """Make a record of what `to_data` gave."""
        if data["version"] != VERSION:
            raise ValueError(f"its version is {data['version']!r}, this collection knows {VERSION}")
        files = {}
        for name, entry in data["files"].items():
            edits = [
                OwnEdit(
                    edit["id"],
                    edit["slot"],
                    parse_what(edit["what"], f"record: {edit['id']}"),
                    [Splice(item["at"], item["removed"], item["inserted"]) for item in edit["splices"]],
                )
                for edit in entry["edits"]
            ]
            files[name] = OwnFile(entry["before"], entry["after"], edits)
        return cls(files)

    def to_data(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {
            "about": "written by the module llmfleet.sglang.python_source; needed to take its edits back",
            "version": VERSION,
            "files": {
                name: {
                    "before": entry.before,
                    "after": entry.after,
                    "edits": [
                        {
                            "id": edit.id,
                            "slot": edit.slot,
                            "what": edit.what.to_data(),
                            "splices": [
                                {"at": splice.start, "removed": splice.removed, "inserted": splice.inserted}
                                for splice in edit.splices
                            ],
                        }
                        for edit in entry.edits
                    ],
                }
                for name, entry in sorted(self.files.items())
            },
        }

    def to_bytes(self) -> bytes:
        """Return the record as it is written."""
        return (json.dumps(self.to_data(), indent=1, sort_keys=True) + "\n").encode()


def original(source: SourceText, own: OwnFile) -> SourceText | None:
    """Return a file as it was before all our edits; None where the record does not fit the file."""
    if digest(source.raw) != own.after:
        return None
    text = source.text
    try:
        for edit in reversed(own.edits):
            text = undo_splices(text, edit.splices)
        before = source.with_text(text)
    except (SplicesLost, SourceError):
        return None
    return before if digest(before.raw) == own.before else None
