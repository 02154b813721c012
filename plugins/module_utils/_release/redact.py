# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what URLs hold of secrets out of messages and files. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

HIDDEN = "***"
# The authority of a URL up to its last "@": name and password, or a token alone.
_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<name>[^\s/?#@:'\"]*)(?P<password>:[^\s/?#'\"]*)?@")


def redact_urls(text: str) -> str:
    """Return `text` with the password of each URL in it hidden, and a name without one too, for it may be a token."""

    def hidden(match: re.Match[str]) -> str:
        if match["password"] is not None:
            return f"{match['scheme']}://{match['name']}:{HIDDEN}@"
        return match[0] if match["scheme"] == "ssh" else f"{match['scheme']}://{HIDDEN}@"

    return _LOGIN.sub(hidden, text)


def secrets_of(urls: Iterable[str]) -> list[str]:
    """Return the passwords and tokens in `urls`, as they are written there and as they are meant; longest first."""
    found: set[str] = set()
    for url in urls:
        for match in _LOGIN.finditer(url):
            secret = match["password"][1:] if match["password"] is not None else match["name"]
            found |= {secret, unquote(secret)} - {""}
    return sorted(found, key=lambda secret: (-len(secret), secret))


def redact(text: str, urls: Iterable[str]) -> str:
    """Return `text` without the secrets of `urls`, wherever they stand in it."""
    for secret in secrets_of(urls):
        text = text.replace(secret, HIDDEN)
    return redact_urls(text)
