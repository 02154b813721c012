# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a service that runs has stopped answering. Private to the collection."""

from __future__ import annotations

import time
from typing import Callable

from .._host.asking import NO_SUCH_ENDPOINT, NotYet, Server
from .unit import Unit

# SGLang's /health answers 200 when any token came within 20 s (HEALTH_CHECK_TIMEOUT in http_server.py, 0.5.23).
PATIENCE = 60.0
_LIMIT = 30.0
_PAUSE = 1.0


def why_hung(
    unit: Unit,
    url: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Say that a running service gives no answer; "" when it does, or is still loading.

    A unit of ours is active from when /health answered for the first time. url: of its /health, on this host. Takes
    PATIENCE seconds where there is no answer, since a busy server may miss one.
    """
    if unit.active != "active":
        return ""
    base, slash, path = url.rpartition("/")
    server, began, said = Server(base), clock(), ""
    while clock() - began < PATIENCE:
        try:
            status = server.status(slash + path, _LIMIT)
            if status == 200 or status in NO_SUCH_ENDPOINT:
                return ""
            said = f"{url} answers (HTTP {status})"
        except NotYet as error:
            said = str(error)
        sleep(_PAUSE)
    return f"it runs what is wanted, and has not answered for {PATIENCE:.0f} s: {said}"
