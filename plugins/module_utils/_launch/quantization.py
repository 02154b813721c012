# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a checkpoint says of its own quantization, as the rules look at it. Private to the collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = "hf_quant_config.json"  # as NVIDIA's ModelOpt writes it


def read(folder: Path) -> dict[str, Any]:
    """Return {"quantization": ...} from the checkpoint's own file; {} where there is none, or none that can be read.

    Whether the checkpoint is whole is not asked here.
    """
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = content.get("quantization") if isinstance(content, dict) else None
    return {"quantization": found} if isinstance(found, dict) else {}
