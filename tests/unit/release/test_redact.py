# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What URLs hold of secrets stays out of messages."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.redact import redact, redact_urls, secrets_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:word@host/x", "https://user:***@host/x"),
        ("https://user:@host/x", "https://user:***@host/x"),
        ("https://token@host/x", "https://***@host/x"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("git@host:x", "git@host:x"),
        ("https://host/x@y", "https://host/x@y"),
        ("https://host:8080/x?mail=a@b", "https://host:8080/x?mail=a@b"),
        ("http://a:b@one/ and http://c:d@two/", "http://a:***@one/ and http://c:***@two/"),
        ("'https://user:wo@rd@host/x'", "'https://user:***@host/x'"),
        ("no URL, but a@b", "no URL, but a@b"),
    ],
)
def test_urls(text: str, shown: str) -> None:
    assert redact_urls(text) == shown


def test_a_secret_is_known_as_it_is_written_and_as_it_is_meant() -> None:
    assert secrets_of(["https://user:a%40b-word@host/", "https://token-1@host/", "http://proxy:3128", ""]) == [
        "a%40b-word",
        "a@b-word",
        "token-1",
    ]


def test_a_secret_is_hidden_wherever_it_stands() -> None:
    said = "401 for https://user:a%40b-word@host/simple/ (password was 'a@b-word')"
    assert (
        redact(said, ["https://user:a%40b-word@host/"]) == "401 for https://user:***@host/simple/ (password was '***')"
    )
