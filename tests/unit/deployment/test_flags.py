# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that no engine and no unit takes are refused before any host is touched."""

from __future__ import annotations

import pytest

from tests.unit.deployment.example import problems


@pytest.mark.parametrize("secret", ["s3cr\x1bet", "s3cr\x00et", "s3cr\x7fet"])
def test_a_character_that_no_unit_holds_is_refused_by_name_and_not_quoted(secret: str) -> None:
    code = f"U+{ord(secret[4]):04X}"
    given = {"environment": {"TOKEN": secret}, "arguments": {"log-level": secret, "lora-paths": ["a", secret]}}
    found = [one for one in problems(**given) if code in one]
    assert found == [
        f"sglang_arguments sets log-level to a value with the character {code}, which a unit cannot hold.",
        f"sglang_arguments sets lora-paths to a value with the character {code}, which a unit cannot hold.",
        f"sglang_environment sets TOKEN to a value with the character {code}, which a unit cannot hold.",
    ]
    assert "s3cr" not in "".join(problems(**given))


def test_lines_and_tabs_reach_the_engine() -> None:
    assert problems(environment={"A": "a\tb\nc"}, arguments={"json-model-override-args": {"a": "\x1b"}}) == []


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("mem-fraction-static", 7.5, "to 7.5, and it has to be greater than 0 and less than 1"),
        ("mem_fraction_static", "1", "to '1', and it has to be greater than 0 and less than 1"),
        ("mem-fraction-static", 0, "greater than 0"),
        ("context-length", -1, "to -1, and it has to be greater than 0."),
    ],
)
def test_a_number_that_is_none_on_any_card_is_refused(flag: str, value: object, says: str) -> None:
    (found,) = problems(arguments={flag: value})
    assert found.startswith(f"sglang_arguments sets '{flag}' ") and says in found


@pytest.mark.parametrize("given", [{"mem-fraction-static": "0.85"}, {"context-length": 4096}, {"context-length": None}])
def test_numbers_that_an_engine_takes(given: dict[str, object]) -> None:
    assert problems(arguments=given) == []
