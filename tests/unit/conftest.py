# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings for all unit tests."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

# `ansible-test units` has a sys.path of its own; the helpers of the tests, and fleet, are found from the root.
ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)

# No deadline for one example: a machine under load is no failure. Reproducible: what fails here fails everywhere.
settings.register_profile("llmfleet", deadline=None, derandomize=True)
settings.load_profile("llmfleet")
