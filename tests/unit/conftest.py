# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings for all unit tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline for one example: a machine under load is no failure. Reproducible: what fails here fails everywhere.
settings.register_profile("llmfleet", deadline=None, derandomize=True)
settings.load_profile("llmfleet")
