# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written into a unit is what systemd reads, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.systemd import FilterModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import (
    environment_line,
    exec_line,
    exec_word,
    launch_line,
    launch_words,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.systemd import reader

# What systemd passes on: no surrogates, no non-characters, no control characters but tab and line ends.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cn", "Cc"]) | st.sampled_from("\t\n\r\"'\\$%;# {}-@+:!|=,*?~é日")
)
NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]*\Z")

WORDS = [
    "",
    " ",
    "two words",
    "--tp-size",
    "-",
    "@argv0",
    "+root",
    "!x",
    ":y",
    "|z",
    ";",
    "a;b",
    "#comment",
    "it's",
    'say "hello"',
    "$",
    "$HOME",
    "${HOME}",
    "$$",
    "%",
    "%%",
    "%i",
    "100%",
    "\\",
    "\\n",
    "C:\\dir\\",
    "tab\there",
    "line\nbreak",
    "line \\\n  break",
    "\r\n",
    '{"enable_multithread_load": true, "num_threads": 16}',
    "Grüße, 世界 🙂",
    "~/models",
    "*.json",
    "a=b",
]


@pytest.mark.parametrize(
    ("line", "means"),
    [  # examples of systemd.service(5) and systemd.syntax(7)
        ("/bin/echo \"two words\" 'one more'", ["/bin/echo", "two words", "one more"]),
        ("/bin/echo $$ONE $$TWO", ["/bin/echo", "$ONE", "$TWO"]),
        ("/bin/echo / >/dev/null & \\; ls", None),  # \; is an escape of Exec lines that nothing here writes
        (r'/bin/echo "a\x20b" \u00e9 \101', ["/bin/echo", "a b", "é", "A"]),
        ("/bin/echo 100%%", ["/bin/echo", "100%"]),
        ("/bin/echo %n", None),
        ("/bin/echo ${ONE}", None),
        ('/bin/echo "open', None),
        ("-/bin/false", None),
        ("/bin/a ; /bin/b", None),
    ],
)
def test_the_tests_own_reader_agrees_with_the_manual(line: str, means: list[str] | None) -> None:
    if means is None:
        with pytest.raises(reader.NotReadable):
            reader.argv(line)
    else:
        assert reader.argv(line) == means


@pytest.mark.parametrize("word", WORDS)
def test_a_word_reaches_argv(word: str) -> None:
    line = exec_line(["/bin/echo", word, "last"])
    assert "\n" not in line
    assert reader.argv(line) == ["/bin/echo", word, "last"]


@given(TEXT)
def test_any_word_reaches_argv(word: str) -> None:
    assert reader.argv(exec_line(["/bin/echo", word])) == ["/bin/echo", word]


@pytest.mark.parametrize("value", WORDS)
def test_a_value_reaches_the_environment(value: str) -> None:
    assert reader.environment([environment_line("NAME", value)]) == {"NAME": value}


@given(NAMES, TEXT)
def test_any_value_reaches_the_environment(name: str, value: str) -> None:
    line = environment_line(name, value)
    assert reader.environment([line]) == {name: value}
    assert reader.entries(f"[Service]\nEnvironment={line}\n") == [("Service", "Environment", line)]


@given(st.dictionaries(st.from_regex(r"\A[a-z]+(-[a-z]+)*\Z"), TEXT, max_size=5))
def test_any_map_of_arguments_survives_a_whole_unit(arguments: dict[str, str]) -> None:
    line = launch_line(["/opt/python", "-m", "sglang.launch_server"], arguments)
    ((section, key, value),) = reader.entries(f"[Service]\nExecStart={line}\n")
    assert (section, key) == ("Service", "ExecStart")
    words = [word for flag in launch_words(arguments) for word in flag]
    assert reader.argv(value) == ["/opt/python", "-m", "sglang.launch_server", *words]


@pytest.mark.parametrize("word", ["/opt/sglang/bin/python", "--tp-size", "0.85", "192.0.2.11", "[::1]", "a,b=c"])
def test_what_needs_no_quotes_is_readable(word: str) -> None:
    assert exec_word(word).strip('"') == word


@pytest.mark.parametrize(
    "character", ["\0", "\x01", "\x0b", "\x1b", "\x7f", "\ud800", "\ufdd0", "\uffff", "\U0001fffe"]
)
def test_a_character_that_systemd_does_not_pass_on_is_refused(character: str) -> None:
    with pytest.raises(ValueError, match=f"U\\+{ord(character):04X}"):
        exec_word(f"a{character}b")
    with pytest.raises(ValueError, match=f"U\\+{ord(character):04X}"):
        environment_line("NAME", f"a{character}b")


@pytest.mark.parametrize("name", ["", "1ST", "A-B", "A B", "A=B", "A\n", "Ä"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name for an environment variable"):
        environment_line(name, "1")


@pytest.mark.parametrize("program", ["python", "-/bin/sh", "+/bin/sh", "@/bin/sh", "", "/opt/$x/python"])
def test_a_program_that_systemd_would_take_in_another_way_is_refused(program: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        launch_line([program], {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tp-size": 8}, ["--tp-size", "8"]),
        ({"mem-fraction-static": 0.85}, ["--mem-fraction-static", "0.85"]),
        ({"enable-metrics": True}, ["--enable-metrics"]),
        ({"enable-metrics": False, "x": None}, []),
        ({"random-seed": 0}, ["--random-seed", "0"]),
        ({"schedule-conservativeness": 0.0}, ["--schedule-conservativeness", "0.0"]),
        ({"chunked-prefill-size": -1}, ["--chunked-prefill-size", "-1"]),
        ({"chat-template": "-x"}, ["--chat-template=-x"]),
        ({"cuda-graph-bs": [1, 2, 4]}, ["--cuda-graph-bs", "1", "2", "4"]),
        ({"chat-template": ""}, ["--chat-template", ""]),
    ],
)
def test_a_map_of_arguments_becomes_words(arguments: dict[str, Any], words: list[str]) -> None:
    assert [word for flag in launch_words(arguments) for word in flag] == words


def test_a_map_as_a_value_is_json() -> None:
    value = {"enable_multithread_load": True, "num_threads": 16, "note": "50 % of $HOME"}
    argv = reader.argv(launch_line(["/bin/python"], {"model-loader-extra-config": value}).replace("\\\n", " "))
    assert json.loads(argv[-1]) == value


def test_the_filters_say_what_is_wrong() -> None:
    filters = FilterModule().filters()
    with pytest.raises(AnsibleFilterError, match="absolute path"):
        filters["systemd_launch"](["python"], {})
    with pytest.raises(AnsibleFilterError, match="no name"):
        filters["systemd_environment"]({"A B": 1})
    assert filters["systemd_environment"]({"A": 1, "B": "b c"}) == ["A=1", '"B=b c"']
