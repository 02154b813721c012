# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with a checkpoint. PRIVATE to the collection: it can change at any time."""

from __future__ import annotations


class CheckpointError(Exception):
    """The checkpoint could not be made complete and right; the message says what and what to do next.

    `problems` names the wrong files, each as {file, expected, got}.
    """

    def __init__(self, message: str, problems: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.problems = problems or []


class FilesWrong(CheckpointError):
    """What lies on this host is not what the revision says, and this run may fetch nothing."""


class Busy(CheckpointError):
    """Another run works on the same revision on this host."""


class HubUnreachable(CheckpointError):
    """No usable answer from the Hub, after all tries."""


class HubRefused(CheckpointError):
    """The Hub answered, and the answer was no (401, 403, 404): trying again is no use."""
