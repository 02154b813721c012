# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the attributes that all modules have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """What each attribute means; a module says how far it supports it."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and say what it would change, without changing anything.
  diff_mode:
    description: Returns what has changed, or would change in check mode, when in diff mode.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second run changes nothing.
"""

    ACTIONGROUP_SGLANG = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/llmfleet.sglang.sglang) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - llmfleet.sglang.sglang
"""
