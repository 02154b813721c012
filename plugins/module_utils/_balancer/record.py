# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we have taken out of a load balancer, so that we put back that and nothing else. Private to the collection.

An entry is written before the load balancer is told, and goes when it is undone: whoever dies in between leaves an
entry by which the next run undoes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._rollout import kept

SCHEMA = 1


class BalancerError(Exception):
    """The load balancer or the record does not do what is asked; the message says what to do."""


@dataclass(frozen=True)
class Done:
    """What came of it. ours: whether the server is out by our doing now; message: in a sentence, for a reader."""

    changed: bool
    ours: bool
    message: str


class Record:
    """A file of what is out by our doing: by name, what is needed to put it back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """Return the entries. Raises BalancerError when the file cannot be read, and OSError."""
        try:
            value = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise BalancerError(
                f"the record {self.path} cannot be read ({error}): look what is drained in the load balancer, remove it"
            ) from None
        if not isinstance(value, dict) or value.get("schema") != SCHEMA or not isinstance(value.get("out"), dict):
            raise BalancerError(f"the record {self.path} was written by another version: remove it when nothing is out")
        return dict(value["out"])

    def note(self, name: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry, or keep it as it is, for what it says was so before we came. Raises OSError."""
        with kept.guarded(self.path):
            self._write({name: dict(entry), **self.read()})

    def forget(self, name: str) -> None:
        """Take an entry out. Raises OSError."""
        with kept.guarded(self.path):
            self._write({key: entry for key, entry in self.read().items() if key != name})

    def _write(self, entries: Mapping[str, Any]) -> None:
        kept.write(self.path, {"schema": SCHEMA, "out": entries})
