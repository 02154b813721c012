# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with a structural edit: PRIVATE to the collection, may change at any time."""

from __future__ import annotations


class SourceError(Exception):
    """A refusal: nothing may be written. `str()` names file and line where they are known.

    :param reason: what is wrong and, where there is one, the next step.
    :param file: path relative to the root, or None.
    :param line: 1-based line, or None.
    :param state: the state this leaves the edit in, one of the six of `spec.STATES`.
    """

    def __init__(self, reason: str, file: str | None = None, line: int | None = None, state: str = "not_found") -> None:
        self.reason = reason
        self.file = file
        self.line = line
        self.state = state
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(where + reason)


class SpecError(SourceError):
    """The edit itself is wrong (a missing option, a value that is no expression)."""


class SplicesLost(Exception):
    """Text that a record says we wrote is not there; the record does not fit the file."""
