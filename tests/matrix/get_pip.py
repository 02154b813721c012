# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install pip from the wheel beside this file. A copy named get_pip_24_2.py, say, lies where ansible-test looks.

ansible-test fetches get-pip.py from a host of its own (ansible#77304), unless a file of that name is there. With this
this one, a machine that reaches a package index and nothing else runs the sanity tests too.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    version = Path(__file__).stem[len("get_pip_") :].replace("_", ".")
    sys.path.insert(0, str(Path(__file__).with_name(f"pip-{version}-py3-none-any.whl")))
    from pip._internal.cli.main import main

    # These two are get-pip.py's own. pip installs neither package unless it is asked to.
    sys.exit(main(["install", *(word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel"))]))
