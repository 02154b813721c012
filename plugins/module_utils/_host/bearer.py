# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The header that a key or token is sent in. PRIVATE to the collection.

http.client refuses a value that no header can hold with a message that quotes it, as repr does: Ansible's no_log hides
the value itself and not that. So nothing of ours hands it such a value.
"""

from __future__ import annotations

import re

NAME = "Authorization"
_SENT = re.compile(r"[!-~]*")


class Unsendable(ValueError):
    """No client can send this key or token; the message says why, and never what it is."""


def hindrance(secret: str) -> str:
    """Return what keeps a key or token from being sent, to go on behind its name; "" when nothing does."""
    if _SENT.fullmatch(secret):
        return ""
    if _SENT.fullmatch(secret.rstrip("\r\n")):
        return ended(secret)
    return "holds a blank, a line break or a character that is not ASCII, and no client can send that"


def ended(text: str) -> str:
    """Return what to do about a text that ends in a newline, to go on behind its name; "" where it does not."""
    if not text.endswith(("\n", "\r")):
        return ""
    return "ends in a newline, which does not belong to it: in YAML use `|-` for `|`, in a shell `printf %s` for `echo`"


def bearer(secret: str, name: str) -> str:
    """Return the value of the header. name: of the variable or option, for the message. Raises Unsendable."""
    why = hindrance(secret)
    if why:
        raise Unsendable(f"{name} {why}.")
    return f"Bearer {secret}"
