# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that modules which tell their progress have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """The option that the action plugin of such a module sets."""

    DOCUMENTATION = r"""
options:
  progress_file:
    description:
      - A file that, during the work, says how far it is (phase, done, total, unit, start, seconds the last time), as
        JSON. It is removed in the end.
      - Without it, one of a name that nobody can guess, which is read and printed while the task runs.
    type: path
"""
