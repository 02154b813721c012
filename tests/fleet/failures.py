# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say once more which tests failed, for molecule prints its own recap below theirs.

python -m tests.fleet.failures REPORT      pytest's JUnit XML; nothing is printed when there is none
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

WIDTH = 600


def failures(report: str) -> list[str]:
    """One line for each test of a JUnit XML text that failed: its name, then what it said."""
    lines = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        for found in (*case.findall("failure"), *case.findall("error")):
            said = " ".join((found.get("message") or "").split())
            lines.append(f"{found.tag.upper()} {case.get('classname')}::{case.get('name')}: {said}"[:WIDTH])
    return lines


if __name__ == "__main__":
    file = Path(sys.argv[1])
    if file.exists():
        print("\n".join(failures(file.read_text())), file=sys.stderr)
