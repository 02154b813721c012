# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real systemd makes of our units: every byte of argv and environment, and the limits of starts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmfleet.sglang.plugins.filter.systemd import FilterModule
from testinfra.host import Host

from tests.fleet.hosts import SERVICE, UNIT, main_pid, root, show

FILTERS = FilterModule().filters()
WORDS = "llmfleet-test-words"
PROGRAM = ["/usr/bin/python3", "-c", "import time; time.sleep(600)"]  # takes no notice of further words
# Each is a trap: systemd splits, unquotes, expands or refuses it unless it is written as it has to be.
ODD = {
    "spaces": "  two  words  ",
    "quotes": 'it\'s "quoted"',
    "dollar": "$HOME costs $$5",
    "braces": "${HOME}",
    "specifier": "100% %n %i %%",
    "backslash": "C:\\new\\table\\",
    "json": '{"method": "mtp", "sizes": [1, 2.5, null], "text": "a \\"b\\" \\u00e9"}',
    "unicode": "Zürich 北京 🚀",
    "newline": "first\nsecond\r\n\tthird",
    "empty": "",
    "dash": "-leading --dash",
    "minus": "-",
    "semicolon": ";",
    "comment": "# no comment",
    "prefix": "@!-+:",
    "continued": "ends with a backslash \\",
    "tilde": "~/x *?[a-z] | & > <",
}
SPAN = re.compile(r"([\d.]+)(us|ms|s|min|h|d|w)?")
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def expected_words(arguments: dict[str, str]) -> list[str]:
    """The argv that these launch arguments mean: a value with a dash in front is one word with its flag."""
    words = list(PROGRAM)
    for flag, value in arguments.items():
        words += [f"--{flag}={value}"] if value.startswith("-") else [f"--{flag}", value]
    return words


@pytest.fixture
def odd_unit(node: Host) -> Iterator[int]:
    """The main process of a unit with odd words, written by the filters that write ours."""
    lines = [f"Environment={line}" for line in FILTERS["systemd_environment"]({f"ODD_{k}": v for k, v in ODD.items()})]
    text = "\n".join(["[Service]", "Type=exec", f"ExecStart={FILTERS['systemd_launch'](PROGRAM, ODD)}", *lines, ""])
    path = f"/run/systemd/system/{WORDS}.service"
    root(
        node,
        f"mkdir -p /run/systemd/system && echo %s | base64 --decode > {path}",
        base64.b64encode(text.encode()).decode(),
    )
    root(node, "systemctl daemon-reload")
    try:
        root(node, f"systemctl start {WORDS}")
        yield main_pid(node, WORDS)
    finally:
        root(node, f"systemctl stop {WORDS}; rm -f {path} && systemctl daemon-reload")


def entries(host: Host, file: Path) -> list[bytes]:
    """The entries of a file of /proc that end with a zero byte each, byte for byte."""
    content = base64.b64decode(root(host, f"base64 --wrap=0 {file}"))
    assert content.endswith(b"\0")
    return content[:-1].split(b"\0")


def test_every_argument_arrives_byte_for_byte(node: Host, odd_unit: int) -> None:
    found = entries(node, Path(f"/proc/{odd_unit}/cmdline"))
    assert found == [word.encode() for word in expected_words(ODD)]


def test_every_variable_arrives_byte_for_byte(node: Host, odd_unit: int) -> None:
    found = dict(one.split(b"=", 1) for one in entries(node, Path(f"/proc/{odd_unit}/environ")))
    assert {key: found.get(f"ODD_{key}".encode()) for key in ODD} == {key: value.encode() for key, value in ODD.items()}


@pytest.mark.parametrize("value", ["\0", "\x1b[1m", "\x7f", "\ud800"])
def test_what_systemd_does_not_pass_on_is_refused(value: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"must not hold the character U\+"):
        FILTERS["systemd_launch"](PROGRAM, {"flag": value})
    with pytest.raises(AnsibleFilterError, match=r"must not hold the character U\+"):
        FILTERS["systemd_environment"]({"NAME": value})


def seconds(span: str) -> float:
    """A time as systemd writes it ("16min 30s"), in seconds."""
    found = SPAN.findall(span)
    assert found and span != "infinity", span
    return sum(float(number) * SECONDS[unit or "s"] for number, unit in found)


def test_a_service_that_never_comes_up_meets_its_start_limit(host: Host) -> None:
    names = ("StartLimitInterval", "TimeoutStart", "TimeoutStop", "Restart")
    about = show(host, SERVICE, "StartLimitBurst", *(f"{name}USec" for name in names))
    interval, *each = (seconds(about[f"{name}USec"]) for name in names)
    assert int(about["StartLimitBurst"]) == 3
    assert interval > int(about["StartLimitBurst"]) * sum(each)
    # systemd takes them from [Unit] alone, and says nothing of those in another section.
    head = root(host, f"cat {UNIT}").partition("[Service]")[0]
    assert "\nStartLimitIntervalSec=" in head and "\nStartLimitBurst=3\n" in head
