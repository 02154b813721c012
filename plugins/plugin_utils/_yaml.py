# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read YAML files on the controller. Private to the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

# Nine times as fast where PyYAML was built with libyaml; every task of every host that needs a file reads it anew.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Any:
    """Return the content of a file. Raises OSError, ValueError (it is no UTF-8) and yaml.YAMLError."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
