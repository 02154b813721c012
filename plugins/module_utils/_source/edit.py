# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the structural edits from a shell: PRIVATE to the collection, may change at any time.

python3 plugins/module_utils/_source/edit.py ROOT PATCH_SET [--check] [--diff]
"""

from __future__ import annotations

import os
import sys

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from _source.cli import main  # type: ignore[import-not-found, unused-ignore]
else:
    from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
