# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret gets into a report."""

from __future__ import annotations

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import hide


def test_the_secrets_of_a_host_are_known() -> None:
    found = hide.known(
        {
            "sglang_api_key": "sk-one",
            "sglang_hub_token": "hf_two",
            "sglang_smg_api_key": "smg-nine9",
            "ansible_become_password": "three3",
            "sglang_environment": {"NCCL_P2P_LEVEL": "SYS", "HF_TOKEN": "four4"},
            "sglang_arguments": {"tp-size": 8, "admin-api-key": "five5"},
            "sglang_download_environment": {"HTTPS_PROXY": "http://ops:six66@proxy:3128"},
            "sglang_index_url": "https://seven7@index.example/simple",
            "sglang_other": "eight8",
        }
    )
    assert found == {"sk-one", "hf_two", "smg-nine9", "three3", "four4", "five5", "six66", "seven7"}
    assert hide.known({"sglang_api_key": "abc", "sglang_environment": None}) == set()
    # A message may quote it, with what ends it as \n.
    assert hide.known({"sglang_api_key": "sk-one\n", "sglang_arguments": {"api-key": "five5\n"}}) == {"sk-one", "five5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the key sk-one was refused", "the key *** was refused"),
        ("git clone https://ops:pw@host/x", "git clone https://ops:***@host/x"),
        ("HF_TOKEN=abc NCCL_P2P_LEVEL=SYS", "HF_TOKEN=*** NCCL_P2P_LEVEL=SYS"),
        ("python -m x --api-key abc --tp-size 8", "python -m x --api-key *** --tp-size 8"),
        ("Authorization: Bearer abc.def", "Authorization: *** ***"),
        ("3740 tokens a second, the key is wrong", "3740 tokens a second, the key is wrong"),
        ("--max-total-tokens 2048", "--max-total-tokens 2048"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert hide.text(text, ["sk-one"]) == expected


@pytest.mark.parametrize(
    ("value", "shown", "kind"),
    [
        ("--api-key s3cret", "'--api-key ***'", "text"),
        ("https://ops:s3cret@host/x", "'https://ops:***@host/x'", "text"),
        ("main", "'main'", "text"),
        (["api-key=s3cret"], "a list", "a list"),
        (("s3cret",), "a list", "a list"),
        ({"url": "s3cret"}, "a map", "a map"),
        ({"s3cret"}, "a set", "a set"),
        (None, "None", "None"),
        (True, "True", "True"),
        (0.5, "0.5", "0.5"),
    ],
)
def test_what_a_message_quotes_of_a_wrong_value(value: object, shown: str, kind: str) -> None:
    assert (hide.shown(value), hide.kind(value)) == (shown, kind)


def test_it_reaches_everywhere() -> None:
    value = {"a": ["x sk-one", {"sk-one": ("sk-one-and-more", 3, None, True)}]}
    assert hide.everywhere(value, {"sk-one", "sk-one-and-more"}) == {"a": ["x ***", {"***": ["***", 3, None, True]}]}
